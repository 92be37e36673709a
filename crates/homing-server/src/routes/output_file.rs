//! `GET /v1/tasks/{ref}/output/file`: all that is kept of the output, as a file to save.
//!
//! It is read piece by piece as the client takes it, up to what there was when it was asked for: a task that prints on does not make it endless. What is no longer kept is left out;
//! a header says how much that is.

use std::io;

use axum::http::HeaderName;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use axum::response::IntoResponse;
use bytes::Bytes;
use homing_engine::{Engine, OutputQuery};
use homing_model::TaskId;
use homing_model::nesting::TaskAccess;

use crate::http::answer::Answer;
use crate::http::call::Call;
use crate::http::stream::{self, Source};

/// Read, and held for a client, at once.
const PIECE: u64 = 256 * 1024;

/// What the headers of the answer say.
pub(crate) const HEADERS: &[(&str, &str)] =
    &[("Homing-Dropped", "Bytes of this task that are no longer kept, in all, and so not in the file.")];

/// Serves it.
pub(crate) async fn read(call: Call) -> Answer {
    let id = call.task(TaskAccess::Read).await?;
    let engine = call.app.engine.clone();
    let end = OutputQuery { tail: Some(0), limit: 1, ..OutputQuery::default() };
    let last = engine.read_output(&id, end).await?;
    let name = HeaderValue::try_from(format!("attachment; filename=\"{id}.log\"")).ok();
    let body = stream::body(File { engine, id, at: 0, end: last.offset }, call.app.shutdown.clone());
    let mut response =
        ([(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))], body).into_response();
    response.headers_mut().insert(HeaderName::from_static("homing-dropped"), last.dropped.into());
    if let Some(name) = name {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

struct File {
    engine: Engine,
    id: TaskId,
    at: u64,
    end: u64,
}

impl Source for File {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        if self.at >= self.end {
            return None;
        }
        let limit = usize::try_from(PIECE.min(self.end - self.at)).unwrap_or(usize::MAX);
        let query = OutputQuery { offset: Some(self.at), limit, ..OutputQuery::default() };
        match self.engine.read_output(&self.id, query).await {
            Ok(part) if part.bytes.is_empty() => None,
            Ok(part) => {
                self.at = part.next;
                Some((Ok(part.bytes.into()), self))
            }
            // Cut off, so that nobody takes it for whole.
            Err(error) => Some((Err(io::Error::other(error)), self)),
        }
    }
}
