//! The life of a task: every step at most once, the first finisher wins (P1).

use crate::outbox::Report;
use homing_model::{Attempt, Ending, Status, Verdict};
use tokio::task::JoinSet;

use super::fixture::{Ledger, at, create, done, ending, finish, first, get, id, rejected, start, submit};
use crate::record::{Started, Stop};
use crate::store::Applied;

/// The second is told what the first said.
pub async fn p1_first_finisher_wins(store: Ledger) {
    create(&store, submit(1), 0).await;
    start(&store, 1, 1).await;
    let ended = finish(&store, 1, 2, 10).await;
    assert_eq!((ended.status, ended.ended_at, ended.output_bytes), (Status::Succeeded, Some(at(2)), 10));
    let late =
        store.finish(first(1), Ending::lost("supervisor killed", Vec::new(), at(3)), Report::default()).await;
    assert_eq!(late, Ok(Applied::Rejected(ended.clone())));
    assert_eq!(get(&store, 1).await, ended);
}

/// Sixteen at once, each with another opinion.
pub async fn p1_concurrent_finishers_agree_on_one_end(store: Ledger) {
    create(&store, submit(1), 0).await;
    let mut finishers = JoinSet::new();
    for n in 0..16_usize {
        let verdict = Verdict::ALL[n % Verdict::ALL.len()];
        let opinion = Ending { verdict, ..ending(i64::try_from(n).unwrap_or(0), 0) };
        finishers.spawn(store.finish(first(1), opinion, Report::default()));
    }
    let (mut winners, mut seen) = (0, Vec::new());
    for answer in finishers.join_all().await {
        match answer.expect("the end is judged") {
            Applied::Done(record) => {
                winners += 1;
                seen.push(record);
            }
            Applied::Rejected(record) => seen.push(record),
            Applied::Unknown => panic!("the task exists"),
        }
    }
    assert_eq!(winners, 1);
    let kept = get(&store, 1).await;
    assert!(seen.iter().all(|record| *record == kept), "everyone was told of the same end");
}

/// Neither an earlier attempt nor one that never was.
pub async fn p1_a_stale_attempt_changes_nothing(store: Ledger) {
    let before = create(&store, submit(1), 0).await;
    for number in [0, 2] {
        let stale = Attempt { task: id(1), number };
        let started = Started { pid: 9, at: at(1) };
        assert_eq!(rejected(store.started(stale.clone(), started).await.expect("judged")), before);
        assert_eq!(
            rejected(store.finish(stale, ending(1, 0), Report::default()).await.expect("judged")),
            before
        );
    }
    assert_eq!(get(&store, 1).await, before);
}

/// Replays are no news.
pub async fn p1_a_message_that_comes_twice_changes_nothing(store: Ledger) {
    create(&store, submit(1), 0).await;
    let running = start(&store, 1, 1).await;
    let again = store.started(first(1), Started { pid: 8, at: at(9) }).await;
    assert_eq!(again, Ok(Applied::Rejected(running)));
    done(store.stop_requested(id(1), "ann".into(), 1, None, at(2)).await.expect("taken"));
    let events = store.last_event().await;
    let again = store.started(first(1), Started { pid: 8, at: at(9) }).await.expect("judged");
    assert_eq!(rejected(again).pid, Some(7));
    finish(&store, 1, 3, 0).await;
    rejected(store.finish(first(1), ending(3, 0), Report::default()).await.expect("judged"));
    rejected(store.stop_requested(id(1), "bob".into(), 1, None, at(4)).await.expect("judged"));
    assert_eq!(store.last_event().await, events.map(|last| last + 1), "only the end was told");
}

/// A daemon that was away hears of the end first; the end brings what the start would have.
pub async fn p1_an_end_may_overtake_the_start(store: Ledger) {
    create(&store, submit(1), 0).await;
    let ended = finish(&store, 1, 5, 0).await;
    assert_eq!((ended.pid, ended.started_at), (Some(7), Some(at(4))));
    rejected(store.started(first(1), Started { pid: 8, at: at(9) }).await.expect("judged"));
    assert_eq!(get(&store, 1).await, ended);
}

/// The first who asks is recorded.
pub async fn a_stop_is_taken_once_and_the_late_start_still_counts(store: Ledger) {
    create(&store, submit(1), 0).await;
    let asked = Stop { by: "ann".into(), signal: Some(2), grace_ms: Some(40_000) };
    let stopping = done(store.stop_requested(id(1), asked.clone(), 1, None, at(1)).await.expect("taken"));
    assert_eq!((stopping.status, &stopping.stop), (Status::Stopping, &Some(asked.clone())));
    assert_eq!(
        store.stop_requested(id(1), "bob".into(), 1, None, at(2)).await,
        Ok(Applied::Rejected(stopping.clone())),
        "a second request changes nothing"
    );
    let started = start(&store, 1, 3).await;
    assert_eq!((started.status, started.pid), (Status::Stopping, Some(7)));
    let stopped = Ending { verdict: Verdict::Stopped, ..ending(4, 0) };
    assert_eq!(
        done(store.finish(first(1), stopped, Report::default()).await.expect("taken")).status,
        Status::Stopped
    );
    assert_eq!(get(&store, 1).await.stop, Some(asked));
}

/// And not an error.
pub async fn what_does_not_exist_is_unknown(store: Ledger) {
    let started = Started { pid: 7, at: at(0) };
    assert_eq!(store.started(first(1), started).await, Ok(Applied::Unknown));
    assert_eq!(store.stop_requested(id(1), "ann".into(), 1, None, at(0)).await, Ok(Applied::Unknown));
    assert_eq!(store.finish(first(1), ending(0, 0), Report::default()).await, Ok(Applied::Unknown));
    assert_eq!(store.forget(id(1), at(0)).await, Ok(Applied::Unknown));
    assert_eq!(store.get(id(1)).await, Ok(None));
}
