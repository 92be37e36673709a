//! `GET /v1/events`: the log so far as JSON lines, or as it grows as server-sent events.
//!
//! Whoever follows holds a cursor and nothing else. Each page is read from the store after that cursor, and the engine only tells
//! that there is something to read: so nothing is missed, nothing is told twice, and a slow client holds one page.
//!
//! A cursor that the log cannot go on from (too old, or of another log) is answered with `reset`: the tasks as they are, read in one moment
//! with the newest event, after which the stream goes on. So no event falls between the two.

use std::io;

use axum::http::HeaderName;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::IntoResponse;
use bytes::Bytes;
use homing_api::{EventsReset, Problem, ResetKind, ResetReason};
use homing_engine::{CallerScope, Engine, Error};
use homing_engine::{EventFilter, TaskFilter};
use homing_model::Event;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::http::answer::Answer;
use crate::http::call::Call;
use crate::http::route::{Kind, Parameter};
use crate::http::sse::{self, Events};
use crate::http::stream::{self, Source};

/// Events read, and held for a client, at once.
const PAGE: u32 = 128;

/// Tasks that a `reset` holds at most; the rest can be asked for.
const SNAPSHOT: u32 = 500;

/// Which events.
pub(crate) const QUERY: &[Parameter] = &[
    Parameter::new(
        "after",
        Kind::ANY_NUMBER,
        "After this event; `Last-Event-ID` wins over it. Where the log cannot go on from it, `reset` says so.",
    ),
    Parameter::new(
        "from",
        Kind::OneOf(&["oldest", "now"]),
        "Where to begin without a cursor. Absent: `now`, or with `follow=false` the `oldest` event that is kept.",
    ),
    Parameter::new("owner", Kind::Text, "Only events of this owner."),
    Parameter::new("types", Kind::Words, "Only events of these types, separated by commas."),
    Parameter::new("follow", Kind::Flag, "`false`: the log so far, as JSON lines."),
];

/// What the headers of JSON lines say.
pub(crate) const HEADERS: &[(&str, &str)] =
    &[("Homing-Trimmed-To", "There if `after` is too old: events up to this one are no longer kept.")];

/// Serves both.
pub(crate) async fn read(call: Call) -> Answer {
    let engine = call.app.engine.clone();
    let filter =
        EventFilter { owner: call.query.text("owner").map(str::to_owned), kinds: call.query.words("types")? };
    let follow = call.query.flag("follow").unwrap_or(true);
    let after = call.last_event_id()?.or_else(|| call.query.number("after"));
    let news = engine.newest_event();
    let cursor = match (after, call.query.text("from")) {
        (Some(after), _) => after,
        (None, Some("oldest")) => engine.events(0, EventFilter::default(), 1).await?.trimmed_to,
        (None, None) if !follow => 0,
        (None, _) => engine.last_event().await?,
    };
    let log = Log { engine, filter, cursor, scope: call.scope.clone(), owner: call.owner()?.to_owned() };
    if follow {
        return Ok(sse::response(stream::body(
            Follower { log, news, over: false },
            call.app.shutdown.clone(),
        )));
    }
    lines(log, after.is_some(), &call).await
}

async fn lines(mut log: Log, resumed: bool, call: &Call) -> Answer {
    let first = log.page().await?;
    let trimmed = resumed.then_some(first.trimmed_to).filter(|_| first.lost == Some(ResetReason::TooOld));
    let body = stream::body(Lines { log, first: Some(first) }, call.app.shutdown.clone());
    let mut response =
        ([(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"))], body).into_response();
    if let Some(trimmed_to) = trimmed {
        response.headers_mut().insert(HeaderName::from_static("homing-trimmed-to"), trimmed_to.into());
    }
    Ok(response)
}

/// The log after a cursor.
struct Log {
    engine: Engine,
    filter: EventFilter,
    cursor: u64,
    /// Where its reader stands, and whom it speaks for.
    scope: CallerScope,
    owner: String,
}

/// A stretch of it.
struct Page {
    events: Vec<Event>,
    /// Why the log could not go on from the cursor, if it could not.
    lost: Option<ResetReason>,
    /// Events up to this one are gone.
    trimmed_to: u64,
    /// There was nothing after the cursor.
    at_end: bool,
}

impl Log {
    async fn page(&mut self) -> Result<Page, Error> {
        let found = self.engine.events(self.cursor, self.filter.clone(), PAGE).await?;
        let lost = match self.cursor {
            cursor if cursor < found.trimmed_to => Some(ResetReason::TooOld),
            cursor if cursor > found.newest => Some(ResetReason::Unknown),
            _ => None,
        };
        let reached = found.cursor.max(found.trimmed_to).max(self.cursor);
        let at_end = reached == self.cursor;
        self.cursor = reached;
        let events = self.seen(found.events).await?;
        Ok(Page { events, lost, trimmed_to: found.trimmed_to, at_end })
    }

    /// Those that the reader may see: inside a task, of what it started.
    async fn seen(&self, events: Vec<Event>) -> Result<Vec<Event>, Error> {
        if self.scope.limited_to().is_none() {
            return Ok(events);
        }
        let mut seen = Vec::new();
        for event in events {
            if let Some(task) = &event.task_id
                && self.engine.sees(&self.scope, &self.owner, task).await?
            {
                seen.push(event);
            }
        }
        Ok(seen)
    }

    /// What to begin anew with. The log goes on after it.
    async fn reset(&mut self, reason: ResetReason, trimmed_to: u64) -> Result<EventsReset, Error> {
        let at = self.engine.now();
        let filter = TaskFilter {
            owner: self.filter.owner.clone(),
            within: self.scope.limited_to().cloned(),
            limit: SNAPSHOT,
            ..TaskFilter::default()
        };
        let (tasks, as_of) = self.engine.list_as_of(filter).await?;
        self.cursor = as_of;
        Ok(EventsReset { seq: as_of, kind: ResetKind::Reset, at, reason, trimmed_to, tasks })
    }
}

struct Follower {
    log: Log,
    news: watch::Receiver<u64>,
    over: bool,
}

impl Follower {
    /// What is next, and whether that was all there is.
    async fn read(&mut self) -> Result<(Events, bool), Error> {
        let mut events = Events::default();
        let page = self.log.page().await?;
        if let Some(reason) = page.lost {
            let reset = self.log.reset(reason, page.trimmed_to).await?;
            events.push("reset", Some(reset.seq), &reset);
            return Ok((events, false));
        }
        for event in &page.events {
            events.push(event.kind.as_str(), Some(event.seq), event);
        }
        Ok((events, page.at_end))
    }
}

impl Source for Follower {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        if self.over {
            return None;
        }
        loop {
            // Marked as seen before reading: whatever is committed after this wakes us again.
            self.news.mark_unchanged();
            let (events, at_end) = match self.read().await {
                Ok(read) => read,
                Err(error) => {
                    self.over = true;
                    let mut events = Events::default();
                    events.push_problem(&Problem::from(error));
                    return Some((Ok(events.into_bytes()), self));
                }
            };
            if !events.is_empty() {
                return Some((Ok(events.into_bytes()), self));
            }
            if at_end {
                match timeout(sse::KEEP_ALIVE, self.news.changed()).await {
                    Ok(Ok(())) => {}
                    // The engine is gone.
                    Ok(Err(_)) => return None,
                    Err(_) => return Some((Ok(sse::keep_alive()), self)),
                }
            }
        }
    }
}

struct Lines {
    log: Log,
    first: Option<Page>,
}

impl Lines {
    /// The next page. One that is not there any more would be a hole in the middle, and is an error.
    async fn page(&mut self) -> io::Result<Page> {
        if let Some(page) = self.first.take() {
            return Ok(page);
        }
        let page = self.log.page().await.map_err(io::Error::other)?;
        match page.lost {
            Some(_) => Err(io::Error::other("the log was trimmed while it was read")),
            None => Ok(page),
        }
    }
}

impl Source for Lines {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        loop {
            let page = match self.page().await {
                Ok(page) if page.at_end => return None,
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(%error, "an answer was cut off");
                    return Some((Err(error), self));
                }
            };
            let mut text = Vec::new();
            for event in &page.events {
                if serde_json::to_writer(&mut text, event).is_ok() {
                    text.push(b'\n');
                }
            }
            if !text.is_empty() {
                return Some((Ok(text.into()), self));
            }
        }
    }
}
