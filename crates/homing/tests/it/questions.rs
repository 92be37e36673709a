//! A wait whose answer tells comes before every hook, waiter and wake: nobody is told twice what they asked for.

use std::time::Duration;

use homing_api::{CompleteRequest, TakeRequest};
use homing_engine::{Caller, Engine, Question, WaitMode};
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
async fn answer(engine: &Engine, mut question: Question, ids: &[TaskId]) {
    let waiting = engine.wait(ids, WaitMode::All, Some(Duration::from_secs(60)));
    let answer = question.during(waiting).await.expect("it ends");
    assert!(answer.done);
    question.answered(ids.to_vec(), None).await.expect("told");
}

#[tokio::test]
async fn p6_five_hundred_ends_that_are_waited_for_are_told_by_the_wait_alone() {
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
        let question = engine.ask(OWNER, &ids, None).await;
        tokio::join!(complete(&engine, OWNER, &id), answer(&engine, question, &ids));
        assert!(!taker.is_finished() && !waiter.is_finished(), "round {round}: {id} was told twice");
        // The owner calls again.
        engine.confirm(OWNER).await;
    }
    // They were there all the time.
    let last = begin(&engine, OWNER).await;
    complete(&engine, OWNER, &last).await;
    assert_eq!(taker.await.expect("it ends"), [last]);
    waiter.abort();
}

#[tokio::test]
async fn p6_a_wait_that_is_dropped_leaves_the_end_to_whoever_waits_for_the_inbox() {
    let home = super::home();
    let engine = engine(&home).await;
    let id = begin(&engine, OWNER).await;
    let question = engine.ask(OWNER, std::slice::from_ref(&id), None).await;
    complete(&engine, OWNER, &id).await;
    assert_eq!(take(&engine, OWNER, 0).await, []);
    let looked = engine.inbox(OWNER, None, Duration::ZERO).await.expect("readable");
    assert_eq!(looked.items.len(), 1, "whoever only looks sees it");
    let taker = take(&engine, OWNER, 600_000);
    let (taken, ()) = tokio::join!(taker, async { drop(question) });
    assert_eq!(taken, [id]);
}

#[tokio::test]
async fn p6_a_question_of_one_owner_is_nothing_to_another() {
    let home = super::home();
    let engine = engine(&home).await;
    let (mine, theirs) = (begin(&engine, OWNER).await, begin(&engine, "claude:t").await);
    let ids = [mine.clone(), theirs.clone()];
    let question = engine.ask(OWNER, &ids, None).await;
    complete(&engine, OWNER, &mine).await;
    complete(&engine, "claude:t", &theirs).await;
    assert_eq!(take(&engine, "claude:t", 0).await, [theirs]);
    assert_eq!(take(&engine, OWNER, 0).await, []);
    question.answered(vec![mine], None).await.expect("told");
    assert_eq!(take(&engine, OWNER, 0).await, [], "held for its next call");
}

#[tokio::test]
async fn p6_of_several_that_are_waited_for_the_first_is_kept_until_the_last() {
    let home = super::home();
    let engine = engine(&home).await;
    let ids = [begin(&engine, OWNER).await, begin(&engine, OWNER).await];
    let question = engine.ask(OWNER, &ids, None).await;
    let waiting = tokio::spawn({
        let (engine, ids) = (engine.clone(), ids.clone());
        async move { answer(&engine, question, &ids).await }
    });
    complete(&engine, OWNER, &ids[0]).await;
    assert_eq!(take(&engine, OWNER, 0).await, []);
    // The time of one question is over, and the next is asked: in between it stands.
    let second = engine.ask(OWNER, &ids, None).await;
    second.stands().await;
    complete(&engine, OWNER, &ids[1]).await;
    waiting.await.expect("it is answered");
    assert_eq!(take(&engine, OWNER, 0).await, []);
    engine.confirm(OWNER).await;
    assert_eq!(engine.inbox_owners(None).await.expect("readable").items, [], "both were told, and heard");
}
