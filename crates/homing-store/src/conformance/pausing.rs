//! A task that stands still: told once each time, over and over, and able to end (P1).

use homing_model::{Attempt, Ending, EventKind, Status, Verdict};
use serde_json::json;

use super::fixture::{Ledger, at, create, done, ending, finish, first, get, id, rejected, start, submit};
use crate::outbox::Report;
use crate::store::{Applied, EventFilter};

/// What a shim says twice is one step.
pub async fn a_pause_and_a_resume_are_taken_once_each_time(store: Ledger) {
    create(&store, submit(1), 0).await;
    start(&store, 1, 1).await;
    for round in 0..3 {
        let paused = done(store.paused(first(1), at(10 * round + 2)).await.expect("taken"));
        assert_eq!((paused.status, paused.pid), (Status::Paused, Some(7)));
        assert_eq!(store.paused(first(1), at(10 * round + 3)).await, Ok(Applied::Rejected(paused.clone())));
        assert_eq!(get(&store, 1).await, paused);
        let running = done(store.resumed(first(1), at(10 * round + 4)).await.expect("taken"));
        assert_eq!(running.status, Status::Running);
        assert_eq!(store.resumed(first(1), at(10 * round + 5)).await, Ok(Applied::Rejected(running)));
    }
    let filter =
        EventFilter { kinds: vec![EventKind::TaskPaused, EventKind::TaskResumed], ..EventFilter::default() };
    let events = store.events(0, filter, 100).await.expect("the log is there").events;
    let told: Vec<_> = events.iter().map(|event| (event.kind, event.at)).collect();
    let (paused, resumed) = (EventKind::TaskPaused, EventKind::TaskResumed);
    let rounds = |round: i64| [(paused, at(10 * round + 2)), (resumed, at(10 * round + 4))];
    assert_eq!(told, [rounds(0), rounds(1), rounds(2)].concat());
    assert!(events.iter().all(|event| event.data == json!({"attempt": 1})
        && event.task_id == Some(id(1))
        && event.owner.as_deref() == Some("ann")));
}

/// Neither before the start, nor on the way to the end, nor after it, nor of another attempt.
pub async fn p1_only_a_running_task_is_paused(store: Ledger) {
    assert_eq!(store.paused(first(1), at(0)).await, Ok(Applied::Unknown));
    assert_eq!(store.resumed(first(1), at(0)).await, Ok(Applied::Unknown));
    let starting = create(&store, submit(1), 0).await;
    assert_eq!(rejected(store.paused(first(1), at(1)).await.expect("judged")), starting);
    let running = start(&store, 1, 1).await;
    let stale = Attempt { task: id(1), number: 2 };
    assert_eq!(rejected(store.paused(stale.clone(), at(2)).await.expect("judged")), running);
    let paused = done(store.paused(first(1), at(3)).await.expect("taken"));
    assert_eq!(rejected(store.resumed(stale, at(4)).await.expect("judged")), paused);
    let stopping = done(store.stop_requested(id(1), "ann".into(), 1, None, at(5)).await.expect("taken"));
    assert_eq!(stopping.status, Status::Stopping);
    for late in [store.paused(first(1), at(6)).await, store.resumed(first(1), at(6)).await] {
        assert_eq!(rejected(late.expect("judged")), stopping);
    }
    let ended = finish(&store, 1, 7, 0).await;
    for late in [store.paused(first(1), at(8)).await, store.resumed(first(1), at(8)).await] {
        assert_eq!(rejected(late.expect("judged")), ended);
    }
    assert_eq!(get(&store, 1).await, ended);
}

/// Whatever ends it, and it is listed as live until then.
pub async fn p1_a_paused_task_can_end_in_every_way(store: Ledger) {
    for (n, verdict) in (1..).zip(Verdict::ALL) {
        create(&store, submit(n), 0).await;
        start(&store, n, 1).await;
        done(store.paused(first(n), at(2)).await.expect("taken"));
        let (live, _) = store.live().await.expect("they can be read");
        assert_eq!(live.iter().map(|record| record.status).collect::<Vec<_>>(), [Status::Paused]);
        assert_eq!(store.counts().await.expect("counted").running, 1);
        let end = Ending { verdict, ..ending(3, 0) };
        let end = store.finish(first(n), end, Report::default()).await;
        assert_eq!(done(end.expect("taken")).status, verdict.status());
    }
}
