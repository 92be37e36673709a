//! `GET /v1/tasks/{ref}/attach`: a WebSocket on a task's terminal. `POST /v1/tasks/{ref}/resize`: its size.
//!
//! Who may attach is who may send input: what is typed here is input. The handshake is answered like any other request, so that every rule for
//! requests (the gate, the owner, nesting, confinement) holds here by being the same code; only then does the connection become a viewer's, in
//! the same task that served it, so that whatever cuts connections cuts this one too.

mod feeder;
mod keys;
mod model;
mod modes;
mod picture;
mod ring;
mod session;
mod stage;

use axum::body::Body;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use homing_api::Code;
use homing_engine::{LARGEST_SIZE, Size};
use homing_model::TerminalSize;
use homing_model::nesting::TaskAccess;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

pub(crate) use self::keys::as_asked_for;
pub(crate) use self::stage::Stages;
use crate::app::to_the_end;
use crate::http::answer::{Answer, json};
use crate::http::call::Call;
use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};

const COLS: Kind = Kind::Number { least: 1, most: LARGEST_SIZE.0 as u64 };
const ROWS: Kind = Kind::Number { least: 1, most: LARGEST_SIZE.1 as u64 };

/// The viewer's terminal.
pub(crate) const QUERY: &[Parameter] = &[
    Parameter::new("cols", COLS, "Columns of the viewer's terminal; with `rows`, or neither."),
    Parameter::new(
        "rows",
        ROWS,
        "Rows of the viewer's terminal. Without a size the viewer has no part in deciding the task's, and is shown what comes byte for byte.",
    ),
];

/// Serves the attachment.
pub(crate) async fn attach(mut call: Call) -> Answer {
    let number = |name| call.query.number(name).and_then(|number| u16::try_from(number).ok());
    let size = match (number("cols"), number("rows")) {
        (Some(cols), Some(rows)) => Some(sized(TerminalSize { cols, rows })?),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(Refusal::invalid("a size is both `cols` and `rows`"));
        }
    };
    let id = call.task(TaskAccess::Control).await?;
    let engine = call.app.engine.clone();
    engine.has_terminal(&id).await?;
    let key = key(&call.headers)?;
    let (Some(upgrade), Some(handover)) = (call.upgrade.take(), call.handover.take()) else {
        return Err(refused("this connection cannot become one"));
    };
    let viewer = call.app.stages.join(&engine, &id, size)?;
    handover.give(Box::pin(session::serve(upgrade, viewer, engine, id, call.app.shutdown.clone())));
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, derive_accept_key(key.as_bytes()))
        .body(Body::empty());
    response.map_err(|error| Refusal::new(Code::Internal, format!("no answer could be made: {error}")))
}

/// Serves the size.
pub(crate) async fn resize(call: Call) -> Answer {
    let size = sized(call.json::<TerminalSize>()?)?;
    let id = call.task(TaskAccess::Control).await?;
    let engine = call.app.engine.clone();
    let (task, asked) = (id.clone(), size);
    let given = to_the_end(async move { engine.resize(&task, asked).await }).await?;
    let given = given.ok_or_else(|| {
        let detail = format!("task {id} was begun by an earlier release, whose terminals keep their size");
        Refusal::new(Code::NotApplicable, detail)
    })?;
    json(&TerminalSize { cols: given.cols, rows: given.rows })
}

fn sized(size: TerminalSize) -> Result<Size, Refusal> {
    session::size(size).map_err(|problem| Refusal::from(*problem))
}

fn refused(why: &str) -> Refusal {
    Refusal::new(Code::NotAWebSocket, why)
}

/// What the handshake is answered to.
fn key(headers: &HeaderMap) -> Result<String, Refusal> {
    let words =
        |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let has = |name, word: &str| words(name).split(',').any(|one| one.trim().eq_ignore_ascii_case(word));
    if !has(UPGRADE, "websocket") || !has(CONNECTION, "upgrade") {
        return Err(refused("the request does not ask for a WebSocket"));
    }
    if words(SEC_WEBSOCKET_VERSION) != "13" {
        return Err(refused("the WebSocket is not of version 13"));
    }
    match words(SEC_WEBSOCKET_KEY) {
        "" => Err(refused("the request has no `Sec-WebSocket-Key`")),
        key => Ok(key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_handshake_is_taken_for_one() {
        let headers = |pairs: &[(HeaderName, &str)]| {
            pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect::<HeaderMap>()
        };
        let whole = [
            (UPGRADE, "WebSocket"),
            (CONNECTION, "keep-alive, Upgrade"),
            (SEC_WEBSOCKET_VERSION, "13"),
            (SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let key_of = key(&headers(&whole)).unwrap();
        assert_eq!(derive_accept_key(key_of.as_bytes()), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for left_out in 0..whole.len() {
            let mut some = whole.to_vec();
            some.remove(left_out);
            assert_eq!(key(&headers(&some)).unwrap_err().problem().code, "HM0293");
        }
    }
}
