//! `GET /v1/tasks/{ref}/output`: a stretch of raw bytes, and in the headers what is before and after it.

use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::response::IntoResponse;
use homing_engine::Stream;
use homing_engine::{OutputPart, OutputQuery};
use homing_model::nesting::TaskAccess;

use crate::http::answer::Answer;
use crate::http::call::Call;
use crate::http::query::Query;
use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};

/// The most that one answer holds.
const MOST: u64 = 4 << 20;

/// Which bytes.
pub(crate) const QUERY: &[Parameter] = &[
    Parameter::new("offset", Kind::ANY_NUMBER, "From this byte on; from the first if absent."),
    Parameter::new("limit", Kind::Number { least: 1, most: MOST }, "At most so many bytes; 4 MiB if absent."),
    Parameter::new("tail", Kind::ANY_NUMBER, "The last so many bytes instead of an offset."),
    Parameter::new("stream", Kind::OneOf(&["stdout", "stderr"]), "Only this stream."),
    Parameter::new("wait_ms", Kind::ANY_NUMBER, "How long to wait for something to be there."),
];

/// What the headers of the answer say.
pub(crate) const HEADERS: &[(&str, &str)] = &[
    ("Homing-Offset", "Offset of the first byte."),
    ("Homing-End", "Ask for this offset next."),
    ("Homing-Gap", "Bytes between the asked offset and the first one that are no longer kept."),
    ("Homing-Dropped", "Bytes of this task that are no longer kept, in all."),
    ("Homing-Complete", "`true` once the task has ended and nothing follows."),
];

/// Serves it.
pub(crate) async fn read(call: Call) -> Answer {
    let query = parse(&call.query)?;
    let id = call.task(TaskAccess::Read).await?;
    let part = call.app.engine.read_output(&id, query).await?;
    let name = HeaderName::from_static;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (name("homing-offset"), part.offset.into()),
        (name("homing-end"), part.next.into()),
        (name("homing-gap"), part.gap.into()),
        (name("homing-dropped"), part.dropped.into()),
        (name("homing-complete"), HeaderValue::from_static(if part.complete { "true" } else { "false" })),
    ];
    let OutputPart { bytes, .. } = part;
    Ok((headers, bytes).into_response())
}

fn parse(query: &Query) -> Result<OutputQuery, Refusal> {
    let (offset, tail) = (query.number("offset"), query.number("tail"));
    if offset.is_some() && tail.is_some() {
        return Err(Refusal::invalid("`offset` and `tail` are both given: choose one"));
    }
    let stream =
        query.text("stream").map(|name| if name == "stderr" { Stream::Stderr } else { Stream::Stdout });
    let limit = usize::try_from(query.number("limit").unwrap_or(MOST)).unwrap_or(usize::MAX);
    Ok(OutputQuery { offset, tail, limit, stream, wait: query.millis("wait_ms") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<OutputQuery, Refusal> {
        let uri = format!("/?{text}").parse().unwrap();
        Query::parse(&uri, QUERY).and_then(|query| parse(&query))
    }

    #[test]
    fn the_query_says_which_bytes() {
        let query = read("offset=5&limit=10&stream=stderr&wait_ms=20").unwrap();
        assert_eq!((query.offset, query.tail, query.limit), (Some(5), None, 10));
        assert_eq!(query.stream, Some(Stream::Stderr));
        assert_eq!(query.wait.unwrap().as_millis(), 20);
        assert_eq!(read("").unwrap().limit, 4 << 20);
        for wrong in ["offset=1&tail=1", "limit=0", "limit=4194305", "stream=both"] {
            assert_eq!(read(wrong).unwrap_err().problem().code, "HM0003", "{wrong}");
        }
    }
}
