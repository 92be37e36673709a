//! `GET /v1/tasks/{ref}/output/index`: which stream the bytes came from, and when.

use homing_model::Timestamp;
use homing_model::nesting::TaskAccess;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::answer::{Answer, json};
use crate::http::call::Call;
use crate::http::route::{Kind, Parameter};

/// The most spans in one answer.
const MOST: u64 = 10_000;

/// Which spans.
pub(crate) const QUERY: &[Parameter] = &[
    Parameter::new("offset", Kind::ANY_NUMBER, "From this byte on; from the first if absent."),
    Parameter::new(
        "limit",
        Kind::Number { least: 1, most: MOST },
        "At most so many spans; 10,000 if absent.",
    ),
];

/// Bytes of one stream, from `offset` to the next span.
#[derive(Serialize, JsonSchema)]
struct OutputSpan {
    /// Where it begins.
    offset: u64,
    /// `stdout`, `stderr`, `pty`, or `mixed` where they change too often to tell.
    stream: &'static str,
    /// When its first byte came.
    at: Timestamp,
}

/// Answer of the index.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OutputIndex {
    /// In order; as many as were asked for means that there may be more after the last one's offset.
    spans: Vec<OutputSpan>,
}

/// Serves it.
pub(crate) async fn read(call: Call) -> Answer {
    let id = call.task(TaskAccess::Read).await?;
    let offset = call.query.number("offset").unwrap_or(0);
    let limit = call.query.number("limit").unwrap_or(MOST);
    let spans = call.app.engine.output_index(&id, offset, u64::MAX).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let spans = spans.into_iter().take(most).map(|span| OutputSpan {
        offset: span.offset,
        stream: span.stream.as_str(),
        at: Timestamp::from_millis(span.at),
    });
    json(&OutputIndex { spans: spans.collect() })
}
