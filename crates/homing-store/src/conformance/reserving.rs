//! Reservations of waiters: no other reader gets what they hold. Keeps P6.

use homing_model::inbox::InboxState;
use homing_model::notify::{Notify, When};
use homing_model::reservation::{Access, ConfirmedBy, Confirmer, GRACE_MS, Reserve};
use homing_model::{DeliveryState, TaskId, wake};

use super::fixture::{
    Ledger, at, channel, create, deliver, done, ending, finish, first, id, oldest, submit, telling, to_owner,
};
use crate::Waiter;
use crate::outbox::{DeliveryFilter, Redeliver, Report, Terms, Wake};

const OWNER: &str = "claude:1";
const TERMS: Terms = Terms { budget: wake::Budget { per_hour: 9 }, at_most: When::Always };

fn waiter(owner: &str, tasks: &[u64], call: u64, until: i64) -> Waiter {
    Waiter { owner: owner.into(), tasks: tasks.iter().map(|n| id(*n)).collect(), call, until: at(until) }
}

/// What a taker gets of an owner's, and when more of it is free.
async fn takeable(store: &Ledger, owner: &str, millis: i64) -> (Vec<TaskId>, Option<i64>) {
    let there = store.peek(owner.into(), 9, Access::Take, at(millis)).await.expect("readable");
    let tasks = there.notices.into_iter().map(|notice| notice.task.id).collect();
    (tasks, there.free_at.map(homing_model::Timestamp::as_millis))
}

async fn read(store: &Ledger, owner: &str, millis: i64) -> usize {
    store.peek(owner.into(), 9, Access::Look, at(millis)).await.expect("readable").notices.len()
}

/// Two end, one is reserved: the other can be taken, both can be read; the answer delivers the first.
pub async fn p6_a_reserved_end_goes_to_its_waiter_alone(store: Ledger) {
    for n in 1..=2 {
        create(&store, telling(n, When::Always, &[]), 0).await;
    }
    store.reserve(waiter("ann", &[1], 7, 100), at(1)).await.expect("taken");
    store.reserve(waiter("bob", &[2], 8, 100), at(1)).await.expect("none of his");
    for n in 1..=2 {
        finish(&store, n, 2, 0).await;
    }
    assert_eq!(read(&store, "ann", 3).await, 2, "looking never counts");
    let state = async |n: u64| store.notices(id(n), 9, at(3)).await.expect("readable").remove(0).inbox;
    assert_eq!((state(1).await, state(2).await), (InboxState::Held, InboxState::Waiting));
    assert_eq!(takeable(&store, "ann", 3).await, (vec![id(2)], Some(at(100).as_millis())));
    let taken = store.take("ann".into(), oldest(9, 50), at(3)).await.expect("taken");
    assert_eq!(taken.iter().map(|notice| notice.task.id.clone()).collect::<Vec<_>>(), [id(2)]);
    store
        .release(waiter("ann", &[1], 7, 100), Some((vec![id(1)], to_owner(true, 80))), at(4))
        .await
        .expect("taken");
    assert_eq!(
        (takeable(&store, "ann", 60).await.0, read(&store, "ann", 60).await),
        (vec![id(2)], 1),
        "told"
    );
    assert_eq!(takeable(&store, "ann", 80).await.0, [id(1), id(2)], "nobody came back, and nobody asks");
}

/// Released, it is free at once; expired, by the clock; and while another waiter holds it, not at all.
pub async fn p6_a_released_waiter_frees_the_end(store: Ledger) {
    create(&store, telling(1, When::Always, &[]), 0).await;
    store.reserve(waiter("ann", &[1], 7, 100), at(1)).await.expect("taken");
    store.reserve(waiter("ann", &[1], 8, 60), at(1)).await.expect("taken");
    finish(&store, 1, 2, 0).await;
    store.release(waiter("ann", &[1], 7, 100), None, at(3)).await.expect("taken");
    assert_eq!(takeable(&store, "ann", 59).await.0, [], "another asks");
    assert_eq!(takeable(&store, "ann", 60).await.0, [id(1)], "for so long");
    store.reserve(waiter("ann", &[1], 8, 200), at(61)).await.expect("renewed");
    assert_eq!(takeable(&store, "ann", 62).await.0, []);
    store.release(waiter("ann", &[1], 8, 200), None, at(63)).await.expect("taken");
    assert_eq!(takeable(&store, "ann", 63).await, (vec![id(1)], None));
}

/// A submit announces a wait: an end before that wait is held for it, and the wait takes its place.
pub async fn p6_an_announced_wait_reserves_an_early_end(store: Ledger) {
    for n in 1..=2 {
        let mut submit = telling(n, When::Always, &[]);
        submit.task.spec.reserve = Some(Reserve::Wait);
        create(&store, submit, 0).await;
        finish(&store, n, 1, 0).await;
    }
    assert_eq!((takeable(&store, "ann", 2).await.0, read(&store, "ann", 2).await), (vec![], 2));
    store.reserve(waiter("ann", &[1], 7, 100), at(3)).await.expect("taken");
    store.release(waiter("ann", &[1], 7, 100), None, at(4)).await.expect("taken");
    assert_eq!(takeable(&store, "ann", 4).await.0, [id(1)], "it was asked for, and is not any more");
    assert_eq!(takeable(&store, "ann", GRACE_MS - 1).await.0, [id(1)]);
    assert_eq!(takeable(&store, "ann", GRACE_MS).await.0, [id(1), id(2)], "nobody asked");
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

/// A wake waits for the waiter: after a delivery it is superseded, after a release it is due at once.
pub async fn p6_no_wake_delivers_what_a_waiter_reserved(store: Ledger) {
    for n in 1..=2 {
        with_a_wake(&store, n).await;
        store.reserve(waiter(OWNER, &[n], n, 5_000), at(0)).await.expect("taken");
        end(&store, n).await;
    }
    assert_eq!(woken(&store, 2).await, []);
    store
        .release(waiter(OWNER, &[1], 1, 5_000), Some((vec![id(1)], to_owner(true, 4_000))), at(3))
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
    store.release(waiter(OWNER, &[2], 2, 5_000), None, at(5)).await.expect("taken");
    assert_eq!(woken(&store, 6).await, [id(2)]);
}

/// Reserved between the claim and the hand-over: the hand-over is not made.
pub async fn p6_no_wake_is_handed_what_was_reserved_meanwhile(store: Ledger) {
    with_a_wake(&store, 1).await;
    end(&store, 1).await;
    let claims = store.claim(channel(OWNER, "wake"), 9, at(50), at(2)).await.expect("claimed");
    let given: Vec<_> = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
    store.reserve(waiter(OWNER, &[1], 7, 5_000), at(3)).await.expect("taken");
    let mut hook = submit(100).task;
    (hook.kind, hook.owner) = (homing_model::Kind::Hook, String::new());
    let wake = Wake { owner: OWNER.into(), budget: TERMS.budget, until: Some(at(1_000)) };
    assert_eq!(store.hand_over(given, hook, Some(wake), at(3)).await, Ok(None));
    assert_eq!(woken(&store, 4).await, []);
    store.release(waiter(OWNER, &[1], 7, 5_000), None, at(5)).await.expect("taken");
    assert_eq!(woken(&store, 6).await, [id(1)]);
}

/// A wake that is sent again leaves an entry alone that a hook took or delivered.
pub async fn p6_a_redelivered_wake_takes_nothing_from_others(store: Ledger) {
    for n in 1..=2 {
        with_a_wake(&store, n).await;
        end(&store, n).await;
    }
    deliver(&store, OWNER, 1, true, 90_000).await;
    assert_eq!(store.take(OWNER.into(), oldest(9, 90_000), at(2)).await.expect("taken").len(), 1);
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
        takeable(&store, OWNER, 6).await,
        (vec![], Some(at(90_000).as_millis())),
        "still told, still taken"
    );
    store.confirm(Confirmer::Owner(OWNER.into()), ConfirmedBy::Call, at(7)).await.expect("taken");
    assert_eq!(
        takeable(&store, OWNER, 90_000).await.0,
        [id(2)],
        "the first was told, the second taken by who died"
    );
}

/// A process that no hook has named is handed a result; when a hook names it, that is not the process which is gone.
pub async fn p6_a_delivery_to_an_unnamed_process_is_kept(store: Ledger) {
    use super::binding::seat;
    for n in 1..=3 {
        let mut submit = telling(n, When::Always, &[]);
        submit.task.owner = "claude:s".into();
        create(&store, submit, 0).await;
        finish(&store, n, 1, 0).await;
    }
    store.bind(seat("claude", "s", 10, 1)).await.expect("taken");
    deliver(&store, "claude:s", 1, true, 1_000).await;
    deliver(&store, "claude:s", 2, false, 1_000).await;
    let again = crate::Bind { gives_back: true, ..seat("claude", "s", 20, 2) };
    store.bind(again.clone()).await.expect("taken");
    assert_eq!(takeable(&store, "claude:s", 3).await.0, [id(1), id(3)], "what the one that is gone heard");
    // Another hook saw the same at the same moment; by now the first has told something.
    deliver(&store, "claude:s", 1, true, 1_000).await;
    store.bind(again).await.expect("taken");
    assert_eq!(takeable(&store, "claude:s", 4).await.0, [id(3)]);
    // Then this one is gone too, and with it all that it was told.
    let third = crate::Bind { gives_back: true, ..seat("claude", "s", 30, 5) };
    store.bind(third).await.expect("taken");
    assert_eq!(takeable(&store, "claude:s", 6).await.0, [id(1), id(2), id(3)]);
    deliver(&store, "claude:s", 1, false, 1_000).await;
    store.confirm(Confirmer::Owner("claude:s".into()), ConfirmedBy::Call, at(7)).await.expect("taken");
    assert_eq!(takeable(&store, "claude:s", 2_000).await.0, [id(2), id(3)], "the first was heard");
}

/// A caller inside a task confirms what it was handed there, and nothing else that its owner was handed.
pub async fn p6_a_caller_inside_a_task_confirms_its_own_deliveries(store: Ledger) {
    for n in 1..=3 {
        create(&store, telling(n, When::Always, &[]), 0).await;
        finish(&store, n, 1, 0).await;
    }
    deliver(&store, "ann", 1, true, 100).await;
    let mut handed = to_owner(true, 100);
    handed.to.inside = Some(id(9));
    store.release(waiter("ann", &[2], 7, 50), Some((vec![id(2)], handed)), at(2)).await.expect("taken");
    let open = store.unconfirmed(at(3)).await.expect("readable");
    assert!(open.contains(&(Confirmer::Inside(id(9)), at(100))), "{open:?}");
    store.confirm(Confirmer::Inside(id(8)), ConfirmedBy::Call, at(3)).await.expect("none of its own");
    store.confirm(Confirmer::Inside(id(9)), ConfirmedBy::Call, at(3)).await.expect("taken");
    assert_eq!(takeable(&store, "ann", 100).await.0, [id(1), id(3)]);
}
