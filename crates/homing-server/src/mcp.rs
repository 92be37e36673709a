//! `/mcp`: the tools of MCP on the same listeners as the API, carried out by calls of that API in this process.
//!
//! A call of a tool may do what its caller may do and nothing else (P11): the calls that it makes are made as the peer that it came from, by
//! the way of a request of its own. So the rules for callers from inside a task, and for those of the network, hold for tools without being
//! written down twice.
//!
//! What its transport refuses (a method, a media type) is told as every other route tells it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use homing_api::{Code, Problem};
use homing_client::{Client, Connect};
use homing_engine::Ancestry;
use homing_model::environment::DEFAULT_OWNER;
use hyper_util::service::TowerToHyperService;
use tokio_util::sync::CancellationToken;

use crate::http::body;
use crate::http::call::Peer;
use crate::http::refusal::Refusal;
use crate::net::connection::{self, Admission};
use crate::net::connection_limits::Place;

/// Where it is.
pub(crate) const PATH: &str = "/mcp";

/// What is on its way in a pipe between a tool and the API.
const PIPE: usize = 64 * 1024;

/// The API, and the tools over it.
pub(crate) fn mount(api: Router, shutdown: CancellationToken) -> Router {
    let service = homing_mcp::service();
    let inner = TowerToHyperService::new(api.clone());
    let serve = move |Extension(peer): Extension<Peer>,
                      Extension(ancestry): Extension<Ancestry>,
                      request: Request| {
        let (service, client) = (service.clone(), client(inner.clone(), (peer, ancestry), shutdown.clone()));
        async move {
            let mut request = match whole(request).await {
                Ok(request) => request,
                Err(refusal) => return refusal.into_response(),
            };
            request.extensions_mut().insert(client);
            let method = request.method().clone();
            in_our_words(&method, service.handle(request).await.map(Body::new)).await
        }
    };
    api.route(PATH, any(serve))
}

/// No refusal of the transport is longer, in bytes.
const LONGEST: usize = 16 * 1024;

/// A refusal in plain text as a problem, with all else that was answered; what is JSON-RPC stays as it is.
async fn in_our_words(method: &Method, response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).map(axum::http::HeaderValue::as_bytes);
    let is_json = kind.is_some_and(|kind| kind.starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (head, body) = response.into_parts();
    let said = axum::body::to_bytes(body, LONGEST).await.unwrap_or_default();
    let detail = match status {
        StatusCode::METHOD_NOT_ALLOWED => format!("{PATH} does not take {method}"),
        _ => homing_model::sanitize::line(&String::from_utf8_lossy(&said)),
    };
    let code = match status {
        StatusCode::FORBIDDEN => Code::ForeignSite,
        StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
        status if status.is_server_error() => Code::Internal,
        _ => Code::McpRequest,
    };
    let problem = Problem { status: status.as_u16(), ..Problem::new(code, detail) };
    let mut told = Refusal::from(problem).into_response();
    let kept = head.headers.iter().filter(|(name, _)| **name != CONTENT_TYPE && **name != CONTENT_LENGTH);
    told.headers_mut().extend(kept.map(|(name, value)| (name.clone(), value.clone())));
    told
}

/// The request with all of its body, which has to come as soon as that of any other: what answers it waits for ever.
async fn whole(request: Request) -> Result<Request, Refusal> {
    let (head, body) = request.into_parts();
    Ok(Request::from_parts(head, Body::from(body::read(body, homing_mcp::LARGEST_REQUEST).await?)))
}

/// A client of the API in the name of this peer.
fn client(
    api: TowerToHyperService<Router>,
    (peer, ancestry): (Peer, Ancestry),
    shutdown: CancellationToken,
) -> Client {
    let connect: Connect = Arc::new(move || {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let serving = connection::serve(
            theirs,
            Admission::Welcome(peer, ancestry.clone()),
            api.clone(),
            shutdown.clone(),
            None,
            Place::uncounted(),
        );
        // It ends with its client, which drops the other end of the pipe; on a panic that end is closed.
        drop(tokio::spawn(serving));
        ours
    });
    Client::within(connect, DEFAULT_OWNER)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::BodyExt;

    use super::*;

    /// What begins, and never goes on.
    struct Half(Option<Bytes>);

    impl hyper::body::Body for Half {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
            match self.0.take() {
                Some(half) => std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(half)))),
                None => std::task::Poll::Pending,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_request_is_not_waited_for_for_ever_and_one_that_is_too_large_is_refused() {
        let half = Body::new(Half(Some(Bytes::from_static(b"{\"jsonrpc\""))));
        let refusal = whole(Request::new(half)).await.unwrap_err();
        assert!(refusal.problem().detail.contains("did not arrive"), "{}", refusal.problem().detail);
        let large = Body::from(vec![b' '; homing_mcp::LARGEST_REQUEST + 1]);
        assert_eq!(whole(Request::new(large)).await.unwrap_err().problem().code, "HM0027");
        let sound = whole(Request::new(Body::from("{}"))).await.unwrap();
        assert_eq!(sound.into_body().collect().await.unwrap().to_bytes(), "{}");
    }
}
