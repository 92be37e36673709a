//! Retention: what is forgotten, in which order, and what is still answered (P12).

use crate::outbox::Report;
use std::time::Duration;

use homing_model::notify::When;
use homing_model::retention::Policy;
use homing_model::{Ending, Kind, Reference, TaskId};

use super::fixture::{
    Ledger, at, create, done, ending, finish, finished, first, get, id, named, rejected, requested, submit,
    telling,
};
use crate::store::{Error, EventFilter, Found, Submitted};

/// Nothing is past this one.
fn keep_all() -> Policy {
    let ever = Duration::from_secs(1 << 32);
    Policy { age: ever, count: u64::MAX, bytes: u64::MAX, tombstones: ever }
}

async fn retire(store: &Ledger, policy: Policy, millis: i64, limit: u32) -> Vec<TaskId> {
    let retired = store.retire(policy, at(millis), limit).await.expect("it can be retired");
    retired.into_iter().map(|task| task.id).collect()
}

/// Status, outcome, times, name and command stay; the rest is gone.
pub async fn p12_a_forgotten_task_is_still_answered(store: Ledger) {
    let mut task = named(1, "build");
    task.task.spec.labels.insert("x".into(), "1".into());
    create(&store, task, 0).await;
    let ended = done(store.finish(first(1), ending(5, 10), Report::default()).await.expect("taken"));
    let tombstone = done(store.forget(id(1), at(6)).await.expect("taken"));
    assert_eq!(get(&store, 1).await, tombstone);
    assert!(tombstone.forgotten);
    assert_eq!(
        (tombstone.seq, tombstone.status, &tombstone.outcome, tombstone.attempt),
        (ended.seq, ended.status, &ended.outcome, ended.attempt)
    );
    assert_eq!(
        (tombstone.created_at, tombstone.started_at, tombstone.ended_at, tombstone.duration_ms),
        (ended.created_at, ended.started_at, ended.ended_at, ended.duration_ms)
    );
    assert_eq!(
        (&tombstone.owner, &tombstone.command, tombstone.spec.name.as_deref(), tombstone.output_bytes),
        (&ended.owner, &ended.command, Some("build"), 10)
    );
    assert!(
        tombstone.spec.argv.is_empty() && tombstone.spec.labels.is_empty() && tombstone.env_names.is_empty()
    );
    let prefix = Reference::parse(&id(1).as_str()[..6]);
    assert_eq!(store.find(prefix, "ann".into()).await, Ok(Found::One(id(1))));
}

/// A live task is not forgotten, a tombstone not again.
pub async fn forgetting_waits_for_the_end_and_happens_once(store: Ledger) {
    let live = create(&store, submit(1), 0).await;
    assert_eq!(rejected(store.forget(id(1), at(1)).await.expect("judged")), live);
    store.finish(first(1), ending(2, 0), Report::default()).await.expect("taken");
    let tombstone = done(store.forget(id(1), at(3)).await.expect("taken"));
    let events = store.last_event().await;
    assert_eq!(rejected(store.forget(id(1), at(4)).await.expect("judged")), tombstone);
    assert_eq!(store.last_event().await, events);
    let late = store
        .finish(first(1), Ending::lost("late", Vec::new(), at(5)), Report::default())
        .await
        .expect("judged");
    assert_eq!(rejected(late), tombstone);
}

/// By when they ended, not by when they were accepted; live ones stay.
pub async fn retention_by_age_takes_the_oldest_end_first(store: Ledger) {
    create(&store, submit(9), 0).await;
    for (n, ended) in [(1, 3_000), (2, 1_000), (3, 2_000), (4, 9_000)] {
        finished(&store, n, ended, 0).await;
    }
    let policy = Policy { age: Duration::from_secs(5), ..keep_all() };
    assert_eq!(retire(&store, policy, 5_999, 100).await, [] as [TaskId; 0]);
    assert_eq!(retire(&store, policy, 8_500, 100).await, [id(2), id(3), id(1)]);
    assert_eq!(retire(&store, policy, 8_500, 100).await, [] as [TaskId; 0]);
    assert!(
        get(&store, 2).await.forgotten && !get(&store, 4).await.forgotten && !get(&store, 9).await.forgotten
    );
}

/// Exactly as many as are too many.
pub async fn retention_by_count_keeps_the_newest(store: Ledger) {
    for n in 0..6 {
        finished(&store, n, i64::try_from(n).unwrap_or(0), 0).await;
    }
    let policy = Policy { count: 4, ..keep_all() };
    assert_eq!(retire(&store, policy, 10, 100).await, [id(0), id(1)]);
    finished(&store, 6, 20, 0).await;
    assert_eq!(retire(&store, policy, 30, 100).await, [id(2)]);
}

/// What was dropped from an output takes no space.
pub async fn retention_by_bytes_counts_what_is_kept(store: Ledger) {
    create(&store, submit(0), 0).await;
    let huge = Ending { output_dropped: 1_000_000, ..ending(0, 1_000_100) };
    store.finish(first(0), huge, Report::default()).await.expect("taken");
    for n in 1..4 {
        finished(&store, n, i64::try_from(n).unwrap_or(0), 100).await;
    }
    assert_eq!(retire(&store, Policy { bytes: 400, ..keep_all() }, 10, 100).await, [] as [TaskId; 0]);
    let retired = store.retire(Policy { bytes: 250, ..keep_all() }, at(10), 100).await.expect("taken");
    assert_eq!(
        retired.iter().map(|task| (task.id.clone(), task.output_bytes)).collect::<Vec<_>>(),
        [(id(0), 100), (id(1), 100)]
    );
}

/// The rest goes next time.
pub async fn retention_is_paced_by_its_limit(store: Ledger) {
    for n in 0..5 {
        finished(&store, n, i64::try_from(n).unwrap_or(0), 1).await;
    }
    let policy = Policy { age: Duration::ZERO, ..keep_all() };
    assert_eq!(retire(&store, policy, 100, 2).await, [id(0), id(1)]);
    assert_eq!(retire(&store, policy, 100, 2).await, [id(2), id(3)]);
    assert_eq!(retire(&store, policy, 100, 2).await, [id(4)]);
}

/// An entry in an inbox keeps what it tells of. Where there is room for no more, the owner who has the most loses its oldest.
pub async fn p5_what_is_unread_outlives_its_age_and_goes_after_all_others(store: Ledger) {
    for n in 1..=4 {
        let mut unread = telling(n, When::Always, &[]);
        unread.task.owner = if n == 1 { "bob" } else { "ann" }.into();
        create(&store, unread, 0).await;
        finish(&store, n, i64::try_from(n).unwrap_or(0), 10).await;
    }
    finished(&store, 5, 5, 10).await;
    let aged = Policy { age: Duration::ZERO, ..keep_all() };
    assert_eq!(retire(&store, aged, 1_000, 100).await, [id(5)]);
    let few = Policy { count: 3, ..keep_all() };
    assert_eq!(retire(&store, few, 1_000, 100).await, [id(2)], "not the oldest, which is all that bob has");
    store.acknowledge("ann".into(), Vec::new(), vec![id(4)]).await.expect("taken");
    assert_eq!(
        retire(&store, Policy { bytes: 20, ..few }, 1_000, 100).await,
        [id(4)],
        "what was read goes first"
    );
    assert_eq!(retire(&store, aged, 1_000, 100).await, [] as [TaskId; 0]);
}

/// What came of one task displaces itself, at whatever depth, and not what else its owner has not read.
pub async fn p5_what_a_task_started_displaces_none_of_its_owners_results(store: Ledger) {
    create(&store, submit(10), 0).await;
    let parents = [(1, None), (2, None), (3, Some(10)), (4, Some(3)), (5, Some(10)), (6, None), (7, Some(4))];
    for (n, parent) in parents {
        let mut unread = telling(n, When::Always, &[]);
        unread.task.parent = parent.map(id);
        create(&store, unread, 0).await;
        finish(&store, n, i64::try_from(n).unwrap_or(0), 10).await;
    }
    let few = Policy { count: 6, ..keep_all() };
    assert_eq!(retire(&store, few, 1_000, 100).await, [id(3)]);
}

/// A thousand commands that told of one task push no task out; of themselves the oldest go.
pub async fn p12_hooks_use_up_nothing_of_what_is_kept_for_tasks(store: Ledger) {
    finished(&store, 1, 0, 10).await;
    let before = store.counts().await;
    let hooks = 100..1_102;
    let submits: Vec<_> = hooks
        .clone()
        .map(|n| {
            let mut hook = submit(n);
            (hook.task.kind, hook.task.owner) = (Kind::Hook, String::new());
            store.submit(hook, at(1))
        })
        .collect();
    for submit in submits {
        submit.await.expect("taken");
    }
    let ends: Vec<_> = hooks
        .map(|n| store.finish(first(n), ending(i64::try_from(n).expect("small"), 500), Report::default()))
        .collect();
    for end in ends {
        done(end.await.expect("taken"));
    }
    assert_eq!(store.counts().await, before);
    let policy = Policy { count: 1, bytes: 100, ..keep_all() };
    assert_eq!(retire(&store, policy, 2_000, 9).await, [id(100), id(101)], "the oldest hooks, and no task");
    assert_eq!(retire(&store, policy, 2_000, 9).await, []);
    let aged = Policy { age: Duration::from_secs(1), ..keep_all() };
    let gone = retire(&store, aged, 2_100, 2_000).await;
    assert_eq!(gone.len(), 1_000, "and by age as tasks are");
    assert_eq!(store.check().await, Ok(()));
}

/// The tombstone goes in its time; the id does not come back.
pub async fn p12_an_id_is_never_reused_even_after_its_tombstone(store: Ledger) {
    for n in 0..3 {
        finished(&store, n, 0, 0).await;
        done(store.forget(id(n), at(1_000)).await.expect("taken"));
    }
    let last = get(&store, 2).await.seq;
    let policy = Policy { tombstones: Duration::from_secs(5), ..keep_all() };
    assert_eq!(store.trim(policy, at(5_999), 100).await.expect("taken").tombstones, 0);
    assert_eq!(store.trim(policy, at(6_000), 2).await.expect("taken").tombstones, 2);
    assert_eq!(store.trim(policy, at(6_000), 2).await.expect("taken").tombstones, 1);
    for n in 0..3 {
        assert_eq!(store.get(id(n)).await, Ok(None));
        assert_eq!(store.submit(submit(n), at(7_000)).await, Ok(Submitted::IdTaken));
    }
    assert!(create(&store, submit(3), 7_000).await.seq > last, "the order of acceptance never starts over");
}

/// Nothing but the id is left, and that is told apart from one that never was.
pub async fn p12_an_id_whose_tombstone_is_gone_is_told_from_one_that_never_was(store: Ledger) {
    finished(&store, 1, 0, 0).await;
    done(store.forget(id(1), at(0)).await.expect("taken"));
    let policy = Policy { tombstones: Duration::ZERO, ..keep_all() };
    assert_eq!(store.trim(policy, at(1), 100).await.expect("taken").tombstones, 1);
    let find = |text: &str| store.find(Reference::parse(text), "ann".into());
    assert_eq!(find(id(1).as_str()).await, Ok(Found::Expired(id(1))));
    assert_eq!(find(&id(1).as_str()[..8]).await, Ok(Found::Expired(id(1))));
    assert_eq!(find(id(2).as_str()).await, Ok(Found::None));
    create(&store, named(3, id(1).as_str().trim_start_matches("t-")), 2).await;
    assert_eq!(
        find(id(1).as_str().trim_start_matches("t-")).await,
        Ok(Found::One(id(3))),
        "a name comes first"
    );
}

/// Only a beginning of the log goes, and the log says how much.
pub async fn trimmed_events_are_owned_up_to(store: Ledger) {
    create(&store, submit(1), 0).await;
    create(&store, submit(2), 1_000).await;
    create(&store, submit(3), 9_000).await;
    create(&store, submit(4), 2_000).await;
    let last = store.last_event().await.expect("the log can be read");
    let policy = Policy { age: Duration::from_secs(5), ..keep_all() };
    store.trim(policy, at(10_000), 1).await.expect("taken");
    let once = store.events(0, EventFilter::default(), 10).await.expect("the log can be read");
    assert_eq!(once.events.len(), 3, "at most as many as were asked for");
    store.trim(policy, at(10_000), 100).await.expect("taken");
    let rest = store.events(0, EventFilter::default(), 10).await.expect("the log can be read");
    assert_eq!(rest.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [last - 1, last]);
    assert_eq!((rest.trimmed_to, rest.cursor), (last - 2, last));
    store.trim(policy, at(99_000), 100).await.expect("taken");
    assert_eq!(store.last_event().await, Ok(last), "the cursor never goes back");
    let none = store.events(0, EventFilter::default(), 10).await.expect("the log can be read");
    assert_eq!((none.events.len(), none.trimmed_to, none.cursor), (0, last, last));
    create(&store, submit(5), 99_000).await;
    assert!(store.last_event().await.is_ok_and(|newest| newest > last));
}

/// A clock that was ahead for a while, and was set right, keeps nothing for ever.
pub async fn what_was_written_by_a_clock_that_was_ahead_goes_with_what_follows_it(store: Ledger) {
    for (n, millis) in (1..).zip([1_000_000, 0, 1_000_000, 1_000, 9_000]) {
        create(&store, submit(n), millis).await;
    }
    let last = store.last_event().await.expect("the log can be read");
    let policy = Policy { age: Duration::from_secs(5), ..keep_all() };
    store.trim(policy, at(10_000), 100).await.expect("taken");
    let rest = store.events(0, EventFilter::default(), 10).await.expect("the log can be read");
    assert_eq!(rest.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [last]);
}

/// After their day.
pub async fn expired_request_keys_are_dropped(store: Ledger) {
    create(&store, requested(1, "r", "body"), 0).await;
    store.trim(keep_all(), at(86_399_999), 100).await.expect("taken");
    assert_eq!(store.submit(requested(2, "r", "other"), at(1)).await, Ok(Submitted::IdempotencyMismatch));
    store.trim(keep_all(), at(86_400_000), 100).await.expect("taken");
    // Asked as if the clock had been set back: only a dropped key lets this one in.
    create(&store, requested(2, "r", "other"), 1).await;
}

/// Whatever the store keeps beside the tasks agrees with them.
pub async fn the_whole_checks_out_after_all_that(store: Ledger) {
    assert_eq!(store.check().await, Ok(()));
    for n in 0..20 {
        finished(&store, n, i64::try_from(n).unwrap_or(0), n).await;
    }
    create(&store, submit(20), 0).await;
    retire(&store, Policy { count: 10, ..keep_all() }, 100, 100).await;
    store.trim(Policy { tombstones: Duration::ZERO, ..keep_all() }, at(100), 5).await.expect("taken");
    assert_eq!(store.check().await, Ok(()));
}

/// And closing twice is no error.
pub async fn a_closed_store_says_so(store: Ledger) {
    create(&store, submit(1), 0).await;
    assert_eq!(store.close().await, Ok(()));
    assert_eq!(store.close().await, Ok(()));
    assert_eq!(store.get(id(1)).await, Err(Error::Closed));
    assert_eq!(store.submit(submit(2), at(0)).await, Err(Error::Closed));
    assert_eq!(store.check().await, Err(Error::Closed));
}
