//! The newest events, kept in memory for those who follow the log.
//!
//! Whoever follows is told of a commit and asks for what is new. One that has kept up is answered from here, without a turn of the
//! reading thread; any other from the file, which always has all of it. So a slow one holds nothing, and nobody more than these few.
//!
//! The writer reads what is new back from its own transaction, whose pages it has in its cache, and shows it only after the commit: an
//! event is seen here no sooner than in the file. It does so only while somebody asks, so without followers a commit costs no more.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use homing_model::Event;
use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;
use serde_json::Value;

use crate::sqlite::notices::events;
use crate::store::{Error, EventFilter, Events};

/// So many events are kept, at most, and for so many commits after somebody last asked.
const KEPT: u32 = 128;

/// What a single commit may add, in bytes of text; more is read from the file, by each who wants it.
const LARGEST: usize = 64 * 1024;

/// The end of the log.
#[derive(Debug)]
pub(in crate::sqlite) struct Recent {
    /// Commits since somebody asked.
    unasked: AtomicU32,
    end: Mutex<End>,
}

/// All events with `after < seq <= newest`.
#[derive(Debug, Default)]
struct End {
    after: u64,
    newest: u64,
    trimmed_to: u64,
    events: VecDeque<Event>,
}

impl Recent {
    /// Knows nothing yet: every question goes to the file.
    pub(in crate::sqlite) fn new() -> Self {
        Self { unasked: AtomicU32::new(KEPT), end: Mutex::default() }
    }

    /// The events after a cursor, if they are here.
    pub(in crate::sqlite) fn after(&self, cursor: u64, filter: &EventFilter, limit: u32) -> Option<Events> {
        self.unasked.store(0, Ordering::Relaxed);
        let end = self.end();
        if limit == 0 || end.newest == 0 || !(end.after..=end.newest).contains(&cursor) {
            return None;
        }
        let later = end.events.iter().filter(|event| event.seq > cursor && filter.passes(event));
        let found: Vec<Event> = later.take(limit as usize).cloned().collect();
        let reached = match found.last() {
            Some(last) if found.len() == limit as usize => last.seq,
            Some(_) | None => end.newest,
        };
        Some(Events { events: found, cursor: reached, trimmed_to: end.trimmed_to, newest: end.newest })
    }

    /// What a transaction that is about to be committed adds, if anybody wants to know.
    pub(in crate::sqlite) fn gather(&self, conn: &Connection) -> Result<Option<Events>, Error> {
        let unasked = self.unasked.load(Ordering::Relaxed);
        if unasked >= KEPT {
            return Ok(None);
        }
        self.unasked.store(unasked + 1, Ordering::Relaxed);
        let known = self.end().newest;
        // With nothing to go on from, this finds where the log ends.
        let from =
            if known == 0 { events::last(conn).map(crate::sqlite::tasks::row::unsigned)? } else { known };
        events::after(conn, from, &EventFilter::default(), KEPT).map(Some)
    }

    /// Shows what was gathered, once it is committed; without it, nothing is known any more.
    pub(in crate::sqlite) fn show(&self, news: Option<Events>) {
        let mut end = self.end();
        let Some(news) = news.filter(|news| news.cursor == news.newest && size(&news.events) <= LARGEST)
        else {
            *end = End::default();
            return;
        };
        if end.newest == 0 {
            end.after = news.newest;
        }
        (end.newest, end.trimmed_to) = (news.newest, news.trimmed_to);
        end.events.extend(news.events);
        while end.events.len() > KEPT as usize {
            end.after = end.events.pop_front().map_or(end.after, |gone| gone.seq);
        }
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock()
    }
}

/// How much text events hold, about.
fn size(events: &[Event]) -> usize {
    events.iter().map(|event| weight(&event.data)).sum()
}

fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

#[cfg(test)]
mod tests {
    use homing_model::{EventKind, Timestamp};

    use super::*;

    fn events(seqs: std::ops::RangeInclusive<u64>) -> Events {
        let event = |seq| Event {
            seq,
            kind: EventKind::TaskStarted,
            at: Timestamp::from_millis(0),
            task_id: None,
            owner: Some(if seq % 2 == 0 { "even" } else { "odd" }.to_owned()),
            data: Value::Null,
        };
        let newest = *seqs.end();
        Events { events: seqs.map(event).collect(), cursor: newest, trimmed_to: 0, newest }
    }

    fn seqs(found: Option<Events>) -> Option<Vec<u64>> {
        found.map(|found| found.events.iter().map(|event| event.seq).collect())
    }

    fn any() -> EventFilter {
        EventFilter::default()
    }

    #[test]
    fn whoever_keeps_up_is_answered_and_whoever_is_behind_reads_the_file() {
        let recent = Recent::new();
        assert_eq!(recent.after(0, &any(), 10), None);
        recent.show(Some(Events { events: Vec::new(), ..events(1..=5) }));
        assert_eq!(seqs(recent.after(5, &any(), 10)), Some(vec![]));
        recent.show(Some(events(6..=8)));
        assert_eq!(seqs(recent.after(5, &any(), 10)), Some(vec![6, 7, 8]));
        assert_eq!(recent.after(4, &any(), 10), None);
        assert_eq!(recent.after(9, &any(), 10), None);
    }

    #[test]
    fn a_filter_and_a_limit_say_where_to_go_on() {
        let recent = Recent::new();
        recent.show(Some(Events { events: Vec::new(), ..events(1..=5) }));
        recent.show(Some(events(6..=10)));
        let even = EventFilter { owner: Some("even".to_owned()), ..any() };
        let first = recent.after(5, &even, 2).unwrap();
        assert_eq!((seqs(Some(first.clone())), first.cursor), (Some(vec![6, 8]), 8));
        let rest = recent.after(first.cursor, &even, 2).unwrap();
        assert_eq!((seqs(Some(rest.clone())), rest.cursor), (Some(vec![10]), 10));
    }

    #[test]
    fn no_more_than_so_many_are_held() {
        let recent = Recent::new();
        recent.show(Some(Events { events: Vec::new(), ..events(1..=1) }));
        for seq in 2..=1_000 {
            recent.show(Some(events(seq..=seq)));
        }
        assert_eq!(recent.end().events.len(), KEPT as usize);
        assert_eq!(recent.after(1_000 - u64::from(KEPT) - 1, &any(), 10), None);
        let found = recent.after(1_000 - u64::from(KEPT), &any(), 1_000);
        assert_eq!(seqs(found).map(|seqs| seqs.len()), Some(KEPT as usize));
    }

    #[test]
    fn a_gap_or_nobody_who_asks_ends_it() {
        let recent = Recent::new();
        recent.show(Some(Events { events: Vec::new(), ..events(1..=5) }));
        recent.show(Some(Events { newest: 900, ..events(6..=10) }));
        assert_eq!(recent.after(5, &any(), 10), None);
        recent.show(Some(Events { events: Vec::new(), ..events(1..=900) }));
        assert!(recent.after(900, &any(), 10).is_some());
        recent.show(None);
        assert_eq!(recent.after(900, &any(), 10), None);
    }

    #[test]
    fn what_is_large_is_left_to_the_file() {
        let recent = Recent::new();
        recent.show(Some(Events { events: Vec::new(), ..events(1..=5) }));
        let mut large = events(6..=6);
        large.events[0].data = serde_json::json!({ "answer": "x".repeat(LARGEST) });
        recent.show(Some(large));
        assert_eq!(recent.after(5, &any(), 10), None);
    }
}
