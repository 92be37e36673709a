//! `GET /v1/tasks/{ref}/follow`: output as it comes, then the task.

use std::io;

use bytes::Bytes;
use homing_api::{OutputGap, Problem};
use homing_engine::{Engine, Error, OutputPart, OutputQuery};
use homing_model::TaskId;
use homing_model::nesting::TaskAccess;

use crate::http::answer::Answer;
use crate::http::call::Call;
use crate::http::route::{Kind, Parameter};
use crate::http::sse::{self, Events};
use crate::http::stream::{self, Source};
use crate::http::utf8_chunker::Held;

/// The most output in one event.
const CHUNK: usize = 64 * 1024;

/// From where.
pub(crate) const QUERY: &[Parameter] =
    &[Parameter::new("offset", Kind::ANY_NUMBER, "From this byte on; `Last-Event-ID` wins over it.")];

/// Serves it.
pub(crate) async fn follow(call: Call) -> Answer {
    let id = call.task(TaskAccess::Read).await?;
    let offset = call.last_event_id()?.or_else(|| call.query.number("offset")).unwrap_or(0);
    let mut follower = Follower {
        engine: call.app.engine.clone(),
        id,
        asked: offset,
        held: Held::default(),
        first: None,
        over: false,
    };
    // The first stretch is read before the answer begins, so that a task that is not there is a refusal.
    follower.first = Some(follower.read(false).await?);
    Ok(sse::response(stream::body(follower, call.app.shutdown.clone())))
}

struct Follower {
    engine: Engine,
    id: TaskId,
    /// The next offset to read; what is held lies before it.
    asked: u64,
    held: Held,
    first: Option<OutputPart>,
    over: bool,
}

impl Follower {
    async fn read(&self, wait: bool) -> Result<OutputPart, Error> {
        let query = OutputQuery {
            offset: Some(self.asked),
            tail: None,
            limit: CHUNK - self.held.len(),
            stream: None,
            wait: wait.then_some(sse::KEEP_ALIVE),
        };
        self.engine.read_output(&self.id, query).await
    }

    /// Adds what a stretch of output says. The id of every event is the offset to go on from.
    fn tell(&mut self, part: OutputPart, events: &mut Events) {
        if part.gap > 0 {
            self.flush(events);
            let gap = OutputGap { offset: part.offset.saturating_sub(part.gap), bytes: part.gap };
            events.push("gap", Some(part.offset), &gap);
        }
        self.asked = part.next;
        if let Some(chunk) = self.held.push(part.offset, part.bytes) {
            events.push("output", Some(chunk.offset + chunk.bytes), &chunk);
        }
    }

    fn flush(&mut self, events: &mut Events) {
        if let Some(chunk) = self.held.finish() {
            events.push("output", Some(chunk.offset + chunk.bytes), &chunk);
        }
    }

    /// The last words: the rest of the output and the task as it is now.
    async fn end(&mut self, events: &mut Events) {
        self.over = true;
        self.flush(events);
        match self.engine.task(&self.id).await {
            Ok(task) => events.push("end", None, &task),
            Err(error) => events.push_problem(&Problem::from(error)),
        }
    }
}

impl Source for Follower {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        if self.over {
            return None;
        }
        let mut events = Events::default();
        while events.is_empty() {
            let part = match self.first.take() {
                Some(part) => Ok(part),
                None => self.read(true).await,
            };
            match part {
                Ok(part) => {
                    let (complete, silent) = (part.complete, part.bytes.is_empty() && part.gap == 0);
                    self.tell(part, &mut events);
                    if complete {
                        self.end(&mut events).await;
                    } else if silent {
                        return Some((Ok(sse::keep_alive()), self));
                    }
                }
                // Forgetting a task is an end too.
                Err(Error::OutputGone(_)) => self.end(&mut events).await,
                Err(error) => {
                    self.over = true;
                    events.push_problem(&Problem::from(error));
                }
            }
        }
        Some((Ok(events.into_bytes()), self))
    }
}
