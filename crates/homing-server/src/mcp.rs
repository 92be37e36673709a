//! `/mcp`: the tools of MCP on the same listeners as the API, carried out by calls of that API in this process.
//!
//! A call of a tool may do what its caller may do and nothing else (P11): the calls that it makes are made as the peer that it came from, by
//! the way of a request of its own. So the rules for callers from inside a task, and for those of the network, hold for tools without being
//! written down twice.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request};
use axum::response::IntoResponse;
use axum::routing::any;
use homing_client::{Client, Connect};
use homing_engine::Ancestry;
use homing_model::environment::DEFAULT_OWNER;
use hyper_util::service::TowerToHyperService;

use crate::body;
use crate::call::Peer;
use crate::connection::{self, Admission};
use crate::leaving::Leaving;
use crate::refusal::Refusal;

/// Where it is.
pub(crate) const PATH: &str = "/mcp";

/// What is on its way in a pipe between a tool and the API.
const PIPE: usize = 64 * 1024;

/// The API, and the tools over it.
pub(crate) fn mount(api: Router, leaving: Leaving) -> Router {
    let service = homing_mcp::service();
    let inner = TowerToHyperService::new(api.clone());
    let serve = move |Extension(peer): Extension<Peer>,
                      Extension(ancestry): Extension<Ancestry>,
                      request: Request| {
        let (service, client) = (service.clone(), client(inner.clone(), (peer, ancestry), leaving.clone()));
        async move {
            let mut request = match whole(request).await {
                Ok(request) => request,
                Err(refusal) => return refusal.into_response(),
            };
            request.extensions_mut().insert(client);
            service.handle(request).await.into_response()
        }
    };
    api.route(PATH, any(serve))
}

/// The request with all of its body, which has to come as soon as that of any other: what answers it waits for ever.
async fn whole(request: Request) -> Result<Request, Refusal> {
    let (head, body) = request.into_parts();
    Ok(Request::from_parts(head, Body::from(body::read(body, homing_mcp::LARGEST_REQUEST).await?)))
}

/// A client of the API in the name of this peer.
fn client(api: TowerToHyperService<Router>, (peer, ancestry): (Peer, Ancestry), leaving: Leaving) -> Client {
    let connect: Connect = Arc::new(move || {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let serving = connection::serve(
            theirs,
            Admission::Welcome(peer, ancestry.clone()),
            api.clone(),
            leaving.clone(),
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
