//! `/mcp`: the tools of MCP on the same listeners as the API, carried out by calls of that API in this process.
//!
//! A call of a tool may do what its caller may do and nothing else (P11): the calls that it makes are made as the peer that it came from, by
//! the way of a request of its own. So the rules for callers from inside a task, and for those of the network, hold for tools without being
//! written down twice.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request};
use axum::routing::any;
use homing_client::{Client, Connect};
use homing_engine::Ancestry;
use homing_model::environment::DEFAULT_OWNER;
use hyper_util::service::TowerToHyperService;

use crate::call::Peer;
use crate::connection::{self, Admission};
use crate::leaving::Leaving;

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
                      mut request: Request| {
        let (service, client) = (service.clone(), client(inner.clone(), (peer, ancestry), leaving.clone()));
        request.extensions_mut().insert(client);
        async move { service.handle(request).await }
    };
    api.route(PATH, any(serve))
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
