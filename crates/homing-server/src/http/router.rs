//! The table of routes as an axum router.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{Extension, RawPathParams, Request, State};
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use bytes::Bytes;
use homing_engine::Ancestry;
use homing_model::reservation::Confirmer;
use homing_sys::memory;

use crate::app::App;
use crate::http::answer::Answer;
use crate::http::body;
use crate::http::call::{Call, OWNER, Peer};
use crate::http::command;
use crate::http::query::Query;
use crate::http::refusal::{Refusal, no_method, no_route};
use crate::http::route::{Route, Verb};
use crate::http::route_table::ROUTES;
use crate::mcp;
use crate::page;

/// Everything that is served.
pub(crate) fn router(app: App) -> Router {
    let shutdown = app.shutdown.clone();
    page::mount(mcp::mount(api(app), shutdown))
}

/// The table, and what is answered to all else.
fn api(app: App) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        router = router.route(route.path, endpoint(route));
    }
    router
        .fallback(|method: Method, uri: Uri| async move { no_route(method.as_str(), uri.path()) })
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            no_method(method.as_str(), uri.path())
        })
        .with_state(app)
}

type Path = Result<RawPathParams, RawPathParamsRejection>;

fn endpoint(route: &'static Route) -> MethodRouter<App> {
    let filter = match route.verb {
        Verb::Get => MethodFilter::GET,
        Verb::Post => MethodFilter::POST,
        Verb::Delete => MethodFilter::DELETE,
    };
    on(
        filter,
        move |State(app): State<App>, Extension(peer): Extension<Peer>, path: Path, request: Request| {
            serve(route, app, peer, path, request)
        },
    )
}

async fn serve(route: &'static Route, app: App, peer: Peer, path: Path, request: Request) -> Response {
    let (traffic, bodies) = (Arc::clone(&app.traffic), app.bodies.clone());
    let mut body = Bytes::new();
    let answer: Answer = async {
        let call = read(route, app, peer, path, request).await?;
        body = call.body.clone();
        // A call confirms what was delivered to its caller before: from inside a task, what was delivered there. One that reserves goes with
        // another call, or repeats it by itself, and confirms nothing.
        let reserves = call.query.flag("reserve") == Some(true);
        match (call.scope.limited_to(), call.header(OWNER.name)?) {
            _ if reserves => {}
            (Some(task), _) => call.app.engine.confirm(Confirmer::Inside(task.clone())).await,
            (None, Some(owner)) => call.app.engine.confirm(Confirmer::Owner(owner.to_owned())).await,
            (None, None) => {}
        }
        (route.handler)(call).await
    }
    .await;
    let response = answer.unwrap_or_else(IntoResponse::into_response);
    // It may have held secrets, and nobody else has it any more.
    if let Ok(mut body) = body.try_into_mut() {
        memory::overwrite(&mut body);
    }
    traffic.answered(response.status());
    bodies.watch(response)
}

async fn read(
    route: &Route,
    app: App,
    peer: Peer,
    path: Path,
    request: Request<Body>,
) -> Result<Call, Refusal> {
    let path = path.map_err(|error| Refusal::invalid(format!("the path cannot be read: {error}")))?;
    let reference = path.iter().next().map(|(_, value)| value.to_owned());
    let (mut head, body) = request.into_parts();
    let (upgrade, handover) = (head.extensions.remove(), head.extensions.remove());
    let ancestry: Ancestry = head.extensions.remove().unwrap_or_default();
    let mut scope = app.engine.caller_scope(&ancestry).await?;
    if let Some(owner) = head.headers.get(OWNER.name).and_then(|owner| owner.to_str().ok()) {
        scope = app.engine.claim_session(scope, owner).await?;
    }
    let query = Query::parse(&head.uri, route.query)?;
    let body = match &route.takes {
        Some(taken) => {
            let body = body::read(body, taken.limit).await?;
            app.bodies.passed(body.len() as u64);
            if peer == Peer::Network && !body.is_empty() {
                body::check_kind(&head.headers, taken.contents)?;
            }
            body
        }
        None => Bytes::new(),
    };
    Ok(Call {
        app,
        peer,
        name: command::of(route.name),
        scope,
        reference,
        query,
        headers: head.headers,
        body,
        upgrade,
        handover,
    })
}
