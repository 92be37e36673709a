//! Requests to the HTTP server of an agent.

use std::time::Duration;

use bytes::Bytes;
use homing_agents::BoxFuture;
use homing_agents::wake::HttpClient;

use crate::client::Client;
use crate::endpoint::{Caller, Endpoint};
use crate::guard::Policy;

/// All of it is on this machine.
const DEADLINE: Duration = Duration::from_secs(10);
/// What a server says of its sessions, or of the last messages of one, is no longer; where it is, nothing can be learned from it.
const MAX_BODY_BYTES: usize = 8 << 20;

/// Sends nothing to a listener of another user of this machine.
#[derive(Debug)]
pub(super) struct AgentClient;

impl HttpClient for AgentClient {
    fn send(
        &self,
        request: ::http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<::http::Response<Vec<u8>>, String>> {
        Box::pin(async {
            // Checked against the configuration at submit; here it may only be a port of this machine or what was let through then.
            let policy = Policy::default();
            let (parts, body) = request.into_parts();
            let endpoint = Endpoint::parse(&parts.uri.to_string(), Caller::Local, &policy)
                .map_err(|why| why.to_string())?;
            let client =
                Client::new(policy).with_deadline(DEADLINE).with_most_body(MAX_BODY_BYTES).with_only_own();
            let sent = client.send(parts.method, &endpoint, parts.headers, body).await;
            let answer = sent.map_err(|error| error.line())?;
            let mut response = ::http::Response::new(answer.body);
            *response.status_mut() = answer.status;
            Ok(response)
        })
    }
}
