//! Server-sent events: names, ids and one line of JSON each.

use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use homing_api::Problem;
use serde::Serialize;

/// How long a stream is silent at most: then a comment shows both ends that the other is there.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Events on their way out, together.
#[derive(Debug, Default)]
pub(crate) struct Events(String);

impl Events {
    /// Adds one. Names are ours and never hold a line break; JSON on one line holds none either.
    pub(crate) fn push(&mut self, name: &str, id: Option<u64>, data: &impl Serialize) {
        let Ok(data) = serde_json::to_string(data) else { return };
        if let Some(id) = id {
            let _ = writeln!(self.0, "id: {id}");
        }
        let _ = write!(self.0, "event: {name}\ndata: {data}\n\n");
    }

    /// Why a stream ends early. Its client may resume it from the last id.
    pub(crate) fn push_problem(&mut self, problem: &Problem) {
        self.push("problem", None, problem);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.0.into()
    }
}

/// Not an event.
pub(crate) fn keep_alive() -> Bytes {
    Bytes::from_static(b": still here\n\n")
}

/// A streamed answer.
pub(crate) fn response(body: Body) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_event_is_one_block_whatever_its_text() {
        let mut events = Events::default();
        events.push("output", Some(7), &json!({ "text": "a\nb\r\u{2028}\n\nid: 9" }));
        events.push("end", None, &json!(null));
        let text = String::from_utf8(events.into_bytes().to_vec()).unwrap();
        let blocks: Vec<_> = text.split("\n\n").collect();
        assert_eq!(blocks.len(), 3);
        assert!(blocks[0].starts_with("id: 7\nevent: output\ndata: {"), "{text}");
        assert_eq!(blocks[0].lines().count(), 3);
        assert_eq!(blocks[1], "event: end\ndata: null");
    }
}
