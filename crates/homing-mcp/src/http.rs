//! MCP over HTTP: a service for whoever has a listener.
//!
//! There are no sessions: every request stands for itself, so a daemon that was restarted goes on where the last one was, for clients of every
//! protocol. Whoever mounts it puts a [`Client`](homing_client::Client) of the API among the extensions of each request, which decides what the
//! caller may do, and guards the listener; the checks here (loopback names only) are the second lock.

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::handler::Handler;

/// The largest request. Whoever mounts the service reads it first, in a time of its own choosing.
pub const LARGEST_REQUEST: usize = 4 << 20;

/// So often a client that waits hears that the connection lives.
const BEAT: Duration = Duration::from_secs(15);

/// What answers `/mcp`.
pub type Service = StreamableHttpService<Handler, NeverSessionManager>;

/// A service for requests that bring their own client of the API.
#[must_use]
pub fn service() -> Service {
    StreamableHttpService::new(
        || Ok(Handler::of_requests()),
        Arc::new(NeverSessionManager::default()),
        config(),
    )
}

/// How requests are served. Which ports are ours is for the listener to know.
#[must_use]
pub fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(false)
        .with_sse_keep_alive(Some(BEAT))
        .with_max_request_body_bytes(LARGEST_REQUEST)
        .with_allowed_hosts(["localhost", "127.0.0.1", "::1"])
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
        .enforce_origin_validation()
}
