//! Tasks that wait for their start.

use homing_model::Status;
use homing_model::queue::StartPolicy;
use tokio::task::JoinSet;

use super::fixture::{Ledger, at, create, ending, finish, first, get, rejected, requested, start, submit};
use crate::outbox::Report;
use crate::record::{Record, Started};
use crate::store::{Applied, ClaimQueued, Submit, Submitted};

fn held(n: u64) -> Submit {
    Submit { policy: StartPolicy::HoldAll, ..submit(n) }
}

fn claim(policy: StartPolicy, limit: u32) -> ClaimQueued {
    ClaimQueued { policy, node: "there".into(), boot_id: "next".into(), limit }
}

async fn claimed(store: &Ledger, policy: StartPolicy, limit: u32) -> Vec<Record> {
    store.claim_queued(claim(policy, limit)).await.expect("the claim is answered")
}

/// Oldest first, each once, on the node that claims it.
pub async fn a_held_task_waits_until_it_is_claimed(store: Ledger) {
    for n in 1..=3 {
        let record = create(&store, held(n), 0).await;
        assert_eq!((record.status, record.attempt), (Status::Queued, 1));
        assert_eq!(get(&store, n).await, record);
    }
    create(&store, submit(4), 0).await;
    assert_eq!(claimed(&store, StartPolicy::HoldAll, 10).await, []);
    assert_eq!(store.counts().await.expect("they are counted").queued, 3);
    let two = claimed(&store, StartPolicy::StartAll, 2).await;
    assert_eq!(two, [get(&store, 1).await, get(&store, 2).await]);
    for record in &two {
        assert_eq!((record.status, record.attempt), (Status::Starting, 1));
        assert_eq!((record.node.as_str(), record.boot_id.as_str()), ("there", "next"));
    }
    assert_eq!(claimed(&store, StartPolicy::StartAll, 2).await, [get(&store, 3).await]);
    assert_eq!(claimed(&store, StartPolicy::StartAll, 2).await, []);
    assert_eq!(start(&store, 1, 1).await.status, Status::Running);
    assert_eq!(finish(&store, 1, 2, 0).await.status, Status::Succeeded);
}

/// However many claim at once.
pub async fn p10_a_waiting_task_is_claimed_once(store: Ledger) {
    for n in 0..20 {
        create(&store, held(n), 0).await;
    }
    let mut claims = JoinSet::new();
    for _ in 0..8 {
        claims.spawn(store.claim_queued(claim(StartPolicy::StartAll, 7)));
    }
    let mut ids = Vec::new();
    for claimed in claims.join_all().await {
        ids.extend(claimed.expect("the claim is answered").into_iter().map(|record| record.id));
    }
    assert_eq!(ids.len(), 20);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20);
}

/// No report of a start or of an end applies before the claim.
pub async fn p1_a_waiting_task_neither_starts_nor_ends_before_its_claim(store: Ledger) {
    let before = create(&store, held(1), 0).await;
    let started = store.started(first(1), Started { pid: 7, at: at(1) }).await.expect("answered");
    assert_eq!(rejected(started), before);
    let ended = store.finish(first(1), ending(1, 0), Report::default()).await.expect("answered");
    assert_eq!(rejected(ended), before);
    assert_eq!(get(&store, 1).await, before);
}

/// A stop ends it at once, and no claim finds it.
pub async fn p1_a_waiting_task_that_is_stopped_is_not_claimed(store: Ledger) {
    create(&store, held(1), 0).await;
    let stopped = store.stop_requested(super::fixture::id(1), "ann".into(), 1, None, at(1)).await;
    let Ok(Applied::Done(stopped)) = stopped else { panic!("expected it to stop, got {stopped:?}") };
    assert_eq!((stopped.status, stopped.started_at), (Status::Stopped, None));
    assert_eq!(claimed(&store, StartPolicy::StartAll, 10).await, []);
    assert_eq!(get(&store, 1).await, stopped);
}

/// A repeated request and a live key find it as any other task.
pub async fn a_waiting_task_is_found_by_request_and_key(store: Ledger) {
    let mut waiting = Submit { policy: StartPolicy::HoldAll, ..requested(1, "r", "body") };
    waiting.task.spec.key = Some("build".into());
    create(&store, waiting.clone(), 0).await;
    let again = store.submit(waiting.clone(), at(1)).await;
    assert!(
        matches!(&again, Ok(Submitted::Repeated(one)) if one.record.status == Status::Queued),
        "{again:?}"
    );
    let other = Submit {
        idempotency: None,
        task: crate::NewTask { id: super::fixture::id(2), ..waiting.task },
        ..waiting
    };
    let joined = store.submit(other, at(1)).await;
    assert!(matches!(&joined, Ok(Submitted::Joined(one)) if one.status == Status::Queued), "{joined:?}");
}
