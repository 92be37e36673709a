//! A wait that reserves comes before every hook, waiter and wake: no owner gets a result twice.

use std::time::Duration;

use homing_api::{CompleteRequest, TakeRequest};
use homing_engine::{Caller, Engine, ReservedWait, WaitMode};
use homing_model::reservation::{ConfirmedBy, Confirmer};
use homing_model::{Kind, Notify, Spec, TaskId};
use homing_testkit::Home;

const OWNER: &str = "claude:s";

async fn engine(home: &Home) -> Engine {
    let engine = Engine::builder(home.path()).helper(home.program().to_owned());
    engine.open().await.expect("an engine")
}

/// A task that ends when it is completed.
async fn begin(engine: &Engine, owner: &str) -> TaskId {
    let spec = Spec {
        kind: Kind::External,
        owner: Some(owner.into()),
        lease_ms: Some(600_000),
        notify: Some(Notify::usual()),
        ..Spec::default()
    };
    engine.submit(spec, Caller::default(), None).await.expect("taken").task.id
}

async fn complete(engine: &Engine, owner: &str, id: &TaskId) {
    let completed = engine.complete(id.as_str(), owner, CompleteRequest::default()).await.expect("taken");
    assert!(completed.completed);
}

async fn take(engine: &Engine, owner: &str, wait_ms: u64) -> Vec<TaskId> {
    let request = TakeRequest { wait_ms: Some(wait_ms), ..TakeRequest::default() };
    let taken = engine.take(owner, request).await.expect("taken");
    taken.items.into_iter().map(|notice| notice.task.id).collect()
}

/// The end of a wait, as the server makes it.
async fn answer(engine: &Engine, mut reserved: ReservedWait, ids: &[TaskId]) {
    let waiting = engine.wait(ids, WaitMode::All, Some(Duration::from_secs(60)));
    let answer = reserved.during(waiting).await.expect("it ends");
    assert!(answer.done);
    reserved.deliver(ids.to_vec(), ConfirmedBy::Call, None).await.expect("delivered");
}

#[tokio::test]
async fn p6_five_hundred_reserved_ends_go_to_the_wait_alone() {
    let home = super::home();
    let engine = engine(&home).await;
    let taker = tokio::spawn({
        let engine = engine.clone();
        async move { take(&engine, OWNER, 600_000).await }
    });
    let waiter = tokio::spawn({
        let engine = engine.clone();
        async move { engine.await_inbox(OWNER, None, Duration::from_secs(600)).await.expect("readable") }
    });
    for round in 0..500 {
        let id = begin(&engine, OWNER).await;
        let ids = [id.clone()];
        let reserved = engine.reserve(OWNER, &ids, None).await;
        tokio::join!(complete(&engine, OWNER, &id), answer(&engine, reserved, &ids));
        assert!(!taker.is_finished() && !waiter.is_finished(), "round {round}: {id} was delivered twice");
        // The owner calls again.
        engine.confirm(Confirmer::Owner(OWNER.to_owned())).await;
    }
    // They were there all the time.
    let last = begin(&engine, OWNER).await;
    complete(&engine, OWNER, &last).await;
    assert_eq!(taker.await.expect("it ends"), [last]);
    waiter.abort();
}

#[tokio::test]
async fn p6_a_dropped_wait_frees_the_end_for_other_readers() {
    let home = super::home();
    let engine = engine(&home).await;
    let id = begin(&engine, OWNER).await;
    let reserved = engine.reserve(OWNER, std::slice::from_ref(&id), None).await;
    complete(&engine, OWNER, &id).await;
    assert_eq!(take(&engine, OWNER, 0).await, []);
    let looked = engine.inbox(OWNER, None, Duration::ZERO).await.expect("readable");
    assert_eq!(looked.items.len(), 1, "looking is free");
    let taker = take(&engine, OWNER, 600_000);
    let (taken, ()) = tokio::join!(taker, async { drop(reserved) });
    assert_eq!(taken, [id]);
}

#[tokio::test]
async fn p6_a_wait_reserves_nothing_of_another_owner() {
    let home = super::home();
    let engine = engine(&home).await;
    let (mine, theirs) = (begin(&engine, OWNER).await, begin(&engine, "claude:t").await);
    let ids = [mine.clone(), theirs.clone()];
    let reserved = engine.reserve(OWNER, &ids, None).await;
    complete(&engine, OWNER, &mine).await;
    complete(&engine, "claude:t", &theirs).await;
    assert_eq!(take(&engine, "claude:t", 0).await, [theirs]);
    assert_eq!(take(&engine, OWNER, 0).await, []);
    reserved.deliver(vec![mine], ConfirmedBy::Call, None).await.expect("delivered");
    assert_eq!(take(&engine, OWNER, 0).await, [], "held for its next call");
}

#[tokio::test]
async fn p6_a_wait_for_several_holds_the_first_until_the_last() {
    let home = super::home();
    let engine = engine(&home).await;
    let ids = [begin(&engine, OWNER).await, begin(&engine, OWNER).await];
    let reserved = engine.reserve(OWNER, &ids, None).await;
    let waiting = tokio::spawn({
        let (engine, ids) = (engine.clone(), ids.clone());
        async move { answer(&engine, reserved, &ids).await }
    });
    complete(&engine, OWNER, &ids[0]).await;
    assert_eq!(take(&engine, OWNER, 0).await, []);
    // The time of one request is over, and the next follows: in between the reservation lingers.
    let second = engine.reserve(OWNER, &ids, None).await;
    second.linger().await;
    complete(&engine, OWNER, &ids[1]).await;
    waiting.await.expect("it is answered");
    assert_eq!(take(&engine, OWNER, 0).await, []);
    engine.confirm(Confirmer::Owner(OWNER.to_owned())).await;
    assert_eq!(
        engine.inbox_owners(None).await.expect("readable").items,
        [],
        "both were delivered and confirmed"
    );
}
