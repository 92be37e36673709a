//! What an owner asks for itself is told by the answer, and by nobody else. Keeps P6.

use homing_model::binding::GRACE_MS;
use homing_model::inbox::InboxState;
use homing_model::notify::{Notify, When};
use homing_model::{Agent, DeliveryState, TaskId, wake};

use super::fixture::{Ledger, at, channel, create, done, ending, finish, first, id, submit, telling};
use crate::outbox::{DeliveryFilter, Redeliver, Report, Terms, Wake};
use crate::{Hearer, Proof, Question};

const OWNER: &str = "claude:1";
const TERMS: Terms = Terms { budget: wake::Budget { per_hour: 9 }, at_most: When::Always };

fn question(owner: &str, tasks: &[u64], call: u64, until: i64) -> Question {
    Question { owner: owner.into(), tasks: tasks.iter().map(|n| id(*n)).collect(), call, until: at(until) }
}

/// What somebody who tells may take of an owner's, and when more of it is free.
async fn tellable(store: &Ledger, owner: &str, millis: i64) -> (Vec<TaskId>, Option<i64>) {
    let there = store.peek_to_tell(owner.into(), 9, at(millis)).await.expect("readable");
    let tasks = there.notices.into_iter().map(|notice| notice.task.id).collect();
    (tasks, there.free_at.map(homing_model::Timestamp::as_millis))
}

async fn read(store: &Ledger, owner: &str, millis: i64) -> usize {
    store.peek(owner.into(), 9, at(millis)).await.expect("readable").notices.len()
}

/// Two end, one is asked for: the other is free to be told, both to be read; the answer tells the first.
pub async fn p6_what_an_owner_asks_for_is_told_by_the_answer_and_by_nobody_else(store: Ledger) {
    for n in 1..=2 {
        create(&store, telling(n, When::Always, &[]), 0).await;
    }
    store.ask(question("ann", &[1], 7, 100), at(1)).await.expect("taken");
    store.ask(question("bob", &[2], 8, 100), at(1)).await.expect("none of his");
    for n in 1..=2 {
        finish(&store, n, 2, 0).await;
    }
    assert_eq!(read(&store, "ann", 3).await, 2, "looking never counts");
    let state = async |n: u64| store.notices(id(n), 9, at(3)).await.expect("readable").remove(0).inbox;
    assert_eq!((state(1).await, state(2).await), (InboxState::Held, InboxState::Waiting));
    assert_eq!(tellable(&store, "ann", 3).await, (vec![id(2)], Some(at(100).as_millis())));
    let taken = store.take("ann".into(), 9, at(50), at(3)).await.expect("taken");
    assert_eq!(taken.iter().map(|notice| notice.task.id.clone()).collect::<Vec<_>>(), [id(2)]);
    store
        .answer(question("ann", &[1], 7, 100), vec![id(1)], Hearer::Known, at(80), at(4))
        .await
        .expect("taken");
    assert_eq!(
        (tellable(&store, "ann", 60).await.0, read(&store, "ann", 60).await),
        (vec![id(2)], 1),
        "told"
    );
    assert_eq!(tellable(&store, "ann", 80).await.0, [id(1), id(2)], "nobody came back, and nobody asks");
}

/// Given up, it is free at once; forgotten, by the clock; and while another asks, not at all.
pub async fn p6_a_question_that_is_given_up_leaves_the_end_to_everybody(store: Ledger) {
    create(&store, telling(1, When::Always, &[]), 0).await;
    store.ask(question("ann", &[1], 7, 100), at(1)).await.expect("taken");
    store.ask(question("ann", &[1], 8, 60), at(1)).await.expect("taken");
    finish(&store, 1, 2, 0).await;
    store.withdraw(question("ann", &[1], 7, 100), at(3)).await.expect("taken");
    assert_eq!(tellable(&store, "ann", 59).await.0, [], "another asks");
    assert_eq!(tellable(&store, "ann", 60).await.0, [id(1)], "for so long");
    store.ask(question("ann", &[1], 8, 200), at(61)).await.expect("renewed");
    assert_eq!(tellable(&store, "ann", 62).await.0, []);
    store.withdraw(question("ann", &[1], 8, 200), at(63)).await.expect("taken");
    assert_eq!(tellable(&store, "ann", 63).await, (vec![id(1)], None));
}

/// A submit says that its end will be asked for: an end before the question is held for it, and the question takes its place.
pub async fn p6_an_end_that_comes_before_the_question_is_kept_for_it(store: Ledger) {
    for n in 1..=2 {
        let mut submit = telling(n, When::Always, &[]);
        submit.task.spec.awaited_ms = Some(50);
        create(&store, submit, 0).await;
        finish(&store, n, 1, 0).await;
    }
    assert_eq!((tellable(&store, "ann", 2).await.0, read(&store, "ann", 2).await), (vec![], 2));
    store.ask(question("ann", &[1], 7, 100), at(3)).await.expect("taken");
    store.withdraw(question("ann", &[1], 7, 100), at(4)).await.expect("taken");
    assert_eq!(tellable(&store, "ann", 4).await.0, [id(1)], "it was asked for, and is not any more");
    assert_eq!(tellable(&store, "ann", 49 + GRACE_MS).await.0, [id(1)]);
    assert_eq!(tellable(&store, "ann", 50 + GRACE_MS).await.0, [id(1), id(2)], "nobody asked");
}

async fn with_a_wake(store: &Ledger, n: u64) {
    let mut task = submit(n);
    task.task.owner = OWNER.into();
    let targets = ["wake", "inbox"].map(|text| text.parse().expect("a target")).to_vec();
    task.task.spec.notify = Some(Notify { on: When::Always, targets, secret: None });
    create(store, task, 0).await;
}

async fn end(store: &Ledger, n: u64) {
    let report = Report { entropy: n << 20, ..Report::default() };
    done(store.finish(first(n), ending(1, 0), report).await.expect("taken"));
}

/// What would be handed to a wake.
async fn woken(store: &Ledger, millis: i64) -> Vec<TaskId> {
    let entropy = 1_000_000 + millis.unsigned_abs();
    assert!(store.admit(channel(OWNER, "wake"), TERMS, entropy, at(millis)).await.expect("judged"));
    let claims = store.claim(channel(OWNER, "wake"), 9, at(millis + 1), at(millis)).await.expect("claimed");
    claims.into_iter().map(|claim| claim.task_id).collect()
}

/// A wake waits for the answer; told, it is not needed, and given up it is due at once.
pub async fn p6_no_wake_tells_what_is_asked_for(store: Ledger) {
    for n in 1..=2 {
        with_a_wake(&store, n).await;
        store.ask(question(OWNER, &[n], n, 5_000), at(0)).await.expect("taken");
        end(&store, n).await;
    }
    assert_eq!(woken(&store, 2).await, []);
    store
        .answer(question(OWNER, &[1], 1, 5_000), vec![id(1)], Hearer::Known, at(4_000), at(3))
        .await
        .expect("taken");
    assert_eq!(woken(&store, 4).await, []);
    let state = Some(DeliveryState::Superseded);
    let filter = DeliveryFilter { limit: 9, state, ..DeliveryFilter::default() };
    let superseded = store.deliveries(filter).await.expect("readable").items;
    assert_eq!(
        superseded.iter().map(|row| (row.task_id.clone(), row.reason.as_deref())).collect::<Vec<_>>(),
        [(id(1), Some(wake::TOLD))]
    );
    store.withdraw(question(OWNER, &[2], 2, 5_000), at(5)).await.expect("taken");
    assert_eq!(woken(&store, 6).await, [id(2)]);
}

/// Between the claim and the hand-over somebody asks: the hand-over is not made.
pub async fn p6_no_wake_is_handed_what_was_asked_for_since_the_claim(store: Ledger) {
    with_a_wake(&store, 1).await;
    end(&store, 1).await;
    let claims = store.claim(channel(OWNER, "wake"), 9, at(50), at(2)).await.expect("claimed");
    let given: Vec<_> = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
    store.ask(question(OWNER, &[1], 7, 5_000), at(3)).await.expect("taken");
    let mut hook = submit(100).task;
    (hook.kind, hook.owner) = (homing_model::Kind::Hook, String::new());
    let wake = Wake { owner: OWNER.into(), budget: TERMS.budget, until: Some(at(1_000)) };
    assert_eq!(store.hand_over(given, hook, Some(wake), at(3)).await, Ok(None));
    assert_eq!(woken(&store, 4).await, []);
    store.withdraw(question(OWNER, &[1], 7, 5_000), at(5)).await.expect("taken");
    assert_eq!(woken(&store, 6).await, [id(1)]);
}

/// A wake that was asked for again comes to nothing while a hook has the entry, or has told it: it stays as it is.
pub async fn p6_a_wake_that_is_asked_for_again_takes_nothing_from_others(store: Ledger) {
    for n in 1..=2 {
        with_a_wake(&store, n).await;
        end(&store, n).await;
    }
    store.told(OWNER.into(), vec![id(1)], Hearer::Known, at(90_000)).await.expect("taken");
    assert_eq!(store.take(OWNER.into(), 9, at(90_000), at(2)).await.expect("taken").len(), 1);
    let filter = DeliveryFilter { limit: 9, ..DeliveryFilter::default() };
    for row in store.deliveries(filter).await.expect("readable").items {
        store.redeliver(Redeliver::Delivery(row.id), Vec::new(), at(3)).await.expect("taken");
    }
    let claims = store.claim(channel(OWNER, "wake"), 9, at(50), at(4)).await.expect("claimed");
    let given: Vec<_> = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
    assert_eq!(given.len(), 2);
    let mut hook = submit(100).task;
    (hook.kind, hook.owner) = (homing_model::Kind::Hook, String::new());
    hook.spec.timeout_ms = Some(60_000);
    let wake = Wake { owner: OWNER.into(), budget: TERMS.budget, until: Some(at(60_004)) };
    assert!(store.hand_over(given, hook, Some(wake), at(4)).await.expect("taken").is_some());
    let failed = homing_model::Ending {
        verdict: homing_model::Verdict::Failed,
        outcome: homing_model::Outcome { exit_code: Some(75), ..homing_model::Outcome::default() },
        ..ending(5, 0)
    };
    done(store.finish(first(100), failed, Report::default()).await.expect("taken"));
    assert_eq!(
        tellable(&store, OWNER, 6).await,
        (vec![], Some(at(90_000).as_millis())),
        "still told, still taken"
    );
    store.confirm(OWNER.into(), Proof::Call, at(7)).await.expect("taken");
    assert_eq!(
        tellable(&store, OWNER, 90_000).await.0,
        [id(2)],
        "the first was told, the second taken by who died"
    );
}

/// A tool tells a process that no hook has named; when one names it, that is not the process which is gone.
pub async fn p6_what_a_new_process_heard_before_a_hook_named_it_is_not_told_again(store: Ledger) {
    use super::seating::seat;
    for n in 1..=3 {
        let mut submit = telling(n, When::Always, &[]);
        submit.task.owner = "claude:s".into();
        create(&store, submit, 0).await;
        finish(&store, n, 1, 0).await;
    }
    store.bind(seat(Agent::Claude, "s", 10, 1)).await.expect("taken");
    store.told("claude:s".into(), vec![id(1)], Hearer::Known, at(1_000)).await.expect("taken");
    store.told("claude:s".into(), vec![id(2)], Hearer::Unknown, at(1_000)).await.expect("taken");
    let again = crate::Bind { gives_back: true, ..seat(Agent::Claude, "s", 20, 2) };
    store.bind(again.clone()).await.expect("taken");
    assert_eq!(tellable(&store, "claude:s", 3).await.0, [id(1), id(3)], "what the one that is gone heard");
    // Another hook saw the same at the same moment; by now the first has told something.
    store.told("claude:s".into(), vec![id(1)], Hearer::Known, at(1_000)).await.expect("taken");
    store.bind(again).await.expect("taken");
    assert_eq!(tellable(&store, "claude:s", 4).await.0, [id(3)]);
    // Then this one is gone too, and with it all that it was told.
    let third = crate::Bind { gives_back: true, ..seat(Agent::Claude, "s", 30, 5) };
    store.bind(third).await.expect("taken");
    assert_eq!(tellable(&store, "claude:s", 6).await.0, [id(1), id(2), id(3)]);
    store.told("claude:s".into(), vec![id(1)], Hearer::Unknown, at(1_000)).await.expect("taken");
    store.confirm("claude:s".into(), Proof::Call, at(7)).await.expect("taken");
    assert_eq!(tellable(&store, "claude:s", 2_000).await.0, [id(2), id(3)], "the first was heard");
}
