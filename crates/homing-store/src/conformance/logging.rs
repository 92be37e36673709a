//! The log of events.

use crate::outbox::Report;
use homing_model::{Event, EventKind, Status};
use serde_json::json;

use super::fixture::{Ledger, at, create, done, ending, finish, first, id, named, start, submit};
use crate::store::{EventFilter, Events, Filter};

async fn after(store: &Ledger, cursor: u64, filter: EventFilter, limit: u32) -> Events {
    store.events(cursor, filter, limit).await.expect("the log can be read")
}

fn kinds(events: &[Event]) -> Vec<EventKind> {
    events.iter().map(|event| event.kind).collect()
}

/// Read in steps of any size, each event is seen once, in order, and those of changes that did not apply do not exist.
pub async fn events_are_ordered_and_told_once(store: Ledger) {
    for n in 0..10 {
        create(&store, submit(n), 0).await;
        start(&store, n, 1).await;
    }
    for n in 0..10 {
        finish(&store, n, 2, 0).await;
        store.finish(first(n), ending(3, 0), Report::default()).await.expect("the end is judged");
    }
    let whole = after(&store, 0, EventFilter::default(), 1000).await;
    assert_eq!(whole.events.len(), 30);
    assert!(whole.events.is_sorted_by(|a, b| a.seq < b.seq));
    assert_eq!((Ok(whole.cursor), whole.trimmed_to), (store.last_event().await, 0));
    for step in [1, 7, 30] {
        let (mut cursor, mut seen) = (0, Vec::new());
        loop {
            let part = after(&store, cursor, EventFilter::default(), step).await;
            if part.events.is_empty() {
                break;
            }
            cursor = part.cursor;
            seen.extend(part.events);
        }
        assert_eq!(seen, whole.events, "in steps of {step}");
    }
}

/// Not all of them are synced before they are told: those that a power cut took are numbers that somebody has seen.
pub async fn p5_no_number_of_an_event_is_told_twice_after_the_machine_started_anew(store: Ledger) {
    let note = || store.note(EventKind::DaemonStarted, json!({}), at(1));
    store.booted("one".into()).await.expect("noted");
    assert_eq!(note().await, Ok(1), "nothing can have been told before");
    store.booted("one".into()).await.expect("noted");
    assert_eq!(note().await, Ok(2));
    store.booted("two".into()).await.expect("noted");
    let beyond = note().await.expect("noted");
    assert!(beyond > 100_000, "{beyond}");
    store.booted("two".into()).await.expect("noted");
    assert_eq!(note().await, Ok(beyond + 1));
    let seen = after(&store, 2, EventFilter::default(), 10).await;
    assert_eq!(seen.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [beyond, beyond + 1]);
}

/// One who asks after every change, one who asks now and then, and one who reads it all at the end see the same log.
pub async fn followers_and_readers_see_one_log(store: Ledger) {
    let owned = EventFilter { owner: Some("user".to_owned()), ..EventFilter::default() };
    let started = EventFilter { kinds: vec![EventKind::TaskStarted], ..EventFilter::default() };
    let mut followers = [
        (EventFilter::default(), 1, 1000),
        (owned, 3, 2),
        (started, 7, 1000),
        (EventFilter::default(), 97, 64),
    ]
    .map(|(filter, every, page)| (filter, every, page, 0, Vec::new()));
    for n in 0..200 {
        create(&store, submit(n), 0).await;
        start(&store, n, 1).await;
        if n % 3 == 0 {
            finish(&store, n, 2, 0).await;
        }
        for (filter, every, page, cursor, seen) in &mut followers {
            if n % *every != 0 && n != 199 {
                continue;
            }
            loop {
                let part = after(&store, *cursor, filter.clone(), *page).await;
                if part.cursor == *cursor {
                    break;
                }
                *cursor = part.cursor;
                seen.extend(part.events);
            }
        }
    }
    for (filter, every, _, _, seen) in followers {
        let whole = after(&store, 0, filter, 1000).await;
        assert_eq!(seen, whole.events, "asked after every {every} changes");
    }
}

/// A list says up to which event it holds everything, and the log says when a cursor is none of its own.
pub async fn a_list_and_the_log_go_on_where_the_other_ends(store: Ledger) {
    for n in 0..3 {
        create(&store, submit(n), 0).await;
    }
    finish(&store, 1, 1, 0).await;
    let live = Filter { statuses: vec![Status::Starting], limit: 10, ..Filter::default() };
    let listed = store.list(live.clone()).await.expect("readable");
    assert_eq!((listed.records.len(), Ok(listed.as_of)), (2, store.last_event().await));
    create(&store, submit(9), 2).await;
    let since = after(&store, listed.as_of, EventFilter::default(), 10).await;
    assert_eq!(since.events.iter().map(|event| event.task_id.clone()).collect::<Vec<_>>(), [Some(id(9))]);
    assert_eq!(Ok(since.newest), store.last_event().await);
    let beyond = after(&store, since.newest + 5, EventFilter::default(), 10).await;
    assert_eq!((beyond.events.len(), beyond.newest), (0, since.newest));
}

/// The data of each kind.
pub async fn events_carry_what_their_kind_promises(store: Ledger) {
    create(&store, named(1, "build"), 0).await;
    start(&store, 1, 1).await;
    done(store.stop_requested(id(1), "bob".into(), 1, None, at(2)).await.expect("taken"));
    let ended = finish(&store, 1, 3, 0).await;
    store.forget(id(1), at(4)).await.expect("it can be forgotten");
    let noted = store.note(EventKind::DaemonStarted, json!({"version": "0"}), at(5)).await;
    let events = after(&store, 0, EventFilter::default(), 100).await.events;
    assert_eq!(
        kinds(&events),
        [
            EventKind::TaskQueued,
            EventKind::TaskStarted,
            EventKind::TaskStopping,
            EventKind::TaskCompleted,
            EventKind::TaskForgotten,
            EventKind::DaemonStarted,
        ]
    );
    assert_eq!(events[0].data, json!({"command": "true", "name": "build"}));
    assert_eq!(events[1].data, json!({"pid": 7, "attempt": 1}));
    assert_eq!(events[2].data, json!({"by": "bob"}));
    let completed = &events[3].data;
    assert_eq!((&completed["status"], &completed["duration_ms"]), (&json!("succeeded"), &json!(1)));
    assert_eq!((&completed["outcome"], &completed["seq"]), (&json!(ended.outcome), &json!(events[3].seq)));
    assert_eq!(Ok(events[5].seq), noted);
    assert_eq!((&events[5].task_id, &events[5].owner), (&None, &None));
    for (event, millis) in events.iter().zip(0..5) {
        assert_eq!(
            (event.at, event.task_id.as_ref(), event.owner.as_deref()),
            (at(millis), Some(&id(1)), Some("ann"))
        );
    }
}

/// So that a reader of a rare kind does not walk the whole log again and again.
pub async fn a_filtered_reader_still_moves_its_cursor(store: Ledger) {
    for n in 0..5 {
        let mut task = submit(n);
        if n == 2 {
            task.task.owner = "bob".into();
        }
        create(&store, task, 0).await;
    }
    finish(&store, 0, 1, 0).await;
    create(&store, submit(9), 0).await;
    let completed = EventFilter { kinds: vec![EventKind::TaskCompleted], ..EventFilter::default() };
    let part = after(&store, 0, completed.clone(), 100).await;
    assert_eq!(kinds(&part.events), [EventKind::TaskCompleted]);
    assert_eq!(Ok(part.cursor), store.last_event().await);
    let full = after(&store, 0, completed, 1).await;
    assert_eq!(full.cursor, full.events[0].seq, "a full answer goes on behind its last event");
    let bob = EventFilter { owner: Some("bob".into()), ..EventFilter::default() };
    assert_eq!(after(&store, 0, bob, 100).await.events.len(), 1);
    let nothing = after(&store, part.cursor, EventFilter::default(), 100).await;
    assert_eq!((nothing.events.len(), nothing.cursor), (0, part.cursor));
}
