//! Tasks to play with.

use crate::outbox::Report;
use std::sync::Arc;

use homing_model::notice::Body;
use homing_model::notify::{Notify, When};
use homing_model::queue::StartPolicy;
use homing_model::reservation::{ConfirmedBy, Recipient};
use homing_model::watch::State;
use homing_model::{
    Attempt, Channel, Ending, Masks, NoticeId, OnDuplicate, OsText, Outcome, Spec, TaskId, Timestamp, Verdict,
};

use crate::record::{NewTask, Record, Started};
use crate::reservation::{Handed, Take, Waiter};
use crate::store::{Applied, Idempotency, Store, Submit, Submitted};

/// Any store.
pub type Ledger = Arc<dyn Store>;

/// An arbitrary moment, and milliseconds after it.
pub fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_790_000_000_000 + millis)
}

/// The `n`th id: it starts with the `n % 28`th character of the alphabet.
pub fn id(n: u64) -> TaskId {
    TaskId::from_entropy(n)
}

/// The first try at the `n`th task.
pub fn first(n: u64) -> Attempt {
    Attempt { task: id(n), number: 1 }
}

/// A submit of the `n`th task, by owner `ann`.
pub fn submit(n: u64) -> Submit {
    let spec = Spec { argv: vec![OsText::from("true")], ..Spec::default() };
    let task = NewTask {
        kind: homing_model::Kind::Command,
        tracking: None,
        agent: None,
        id: id(n),
        spec,
        owner: "ann".into(),
        command: "true".into(),
        env_names: vec!["PATH".into()],
        volatile_secrets: vec!["TOKEN".into()],
        masks: Masks::default(),
        parent: None,
        depth: 0,
        network: false,
        node: "here".into(),
        boot_id: "this".into(),
    };
    Submit {
        task,
        on_duplicate: OnDuplicate::Join,
        children: u32::MAX,
        idempotency: None,
        policy: StartPolicy::default(),
    }
}

/// The same with a name.
pub fn named(n: u64, name: &str) -> Submit {
    let mut submit = submit(n);
    submit.task.spec.name = Some(name.into());
    submit
}

/// The same with a key.
pub fn keyed(n: u64, key: &str, on_duplicate: OnDuplicate) -> Submit {
    let mut submit = submit(n);
    submit.task.spec.key = Some(key.into());
    submit.on_duplicate = on_duplicate;
    submit
}

/// The same as a request with its own key, good for a day from [`at`]`(0)`.
pub fn requested(n: u64, key: &str, body_hash: &str) -> Submit {
    let expires_at = at(86_400_000);
    let idempotency = Idempotency { key: key.into(), body_hash: body_hash.into(), expires_at };
    Submit { idempotency: Some(idempotency), ..submit(n) }
}

/// The same, with everybody told: the inbox and these targets.
pub fn telling(n: u64, on: When, targets: &[&str]) -> Submit {
    let targets = ["inbox"].iter().chain(targets).map(|text| text.parse().expect("a target")).collect();
    let mut submit = submit(n);
    submit.task.spec.notify = Some(Notify { on, targets, secret: None });
    submit
}

/// The channel of an owner's notices to a target, for tasks without a folder.
#[must_use]
pub fn channel(owner: &str, target: &str) -> Channel {
    Channel::new(&target.parse().expect("a target"), owner, None).expect("a channel")
}

/// An end with exit code 0.
pub fn ending(millis: i64, output_bytes: u64) -> Ending {
    Ending {
        verdict: Verdict::Succeeded,
        outcome: Outcome { exit_code: Some(0), ..Outcome::default() },
        started_at: Some(at(millis - 1)),
        ended_at: at(millis),
        duration_ms: Some(1),
        pid: Some(7),
        output_bytes,
        output_dropped: 0,
    }
}

/// Submits, and expects a new task.
pub async fn create(store: &Ledger, submit: Submit, millis: i64) -> Record {
    match store.submit(submit, at(millis)).await.expect("the submit is taken") {
        Submitted::Created(record) => record,
        other => panic!("expected a new task, got {other:?}"),
    }
}

/// Reports the start, and expects it to apply.
pub async fn start(store: &Ledger, n: u64, millis: i64) -> Record {
    let started = Started { pid: 7, at: at(millis) };
    done(store.started(first(n), started).await.expect("the start is taken"))
}

/// Tells something of the `n`th task while it lives, the `turn`th of it.
pub async fn tell(
    store: &Ledger,
    n: u64,
    turn: u64,
    body: Body,
    at_most: Option<When>,
    millis: i64,
) -> Applied {
    let state = State { turn, ..State::default() };
    store.watched(first(n), state, Some(body), n * 100 + turn, at_most, at(millis)).await.expect("judged")
}

/// Ends the `n`th task, and expects that to apply.
pub async fn finish(store: &Ledger, n: u64, millis: i64, output_bytes: u64) -> Record {
    done(
        store
            .finish(first(n), ending(millis, output_bytes), Report::default())
            .await
            .expect("the end is taken"),
    )
}

/// A new task that has ended.
pub async fn finished(store: &Ledger, n: u64, millis: i64, output_bytes: u64) -> Record {
    create(store, submit(n), millis).await;
    finish(store, n, millis, output_bytes).await
}

/// The record of a change that applied.
pub fn done(applied: Applied) -> Record {
    match applied {
        Applied::Done(record) => record,
        other => panic!("expected it to apply, got {other:?}"),
    }
}

/// The record of a change that did not.
pub fn rejected(applied: Applied) -> Record {
    match applied {
        Applied::Rejected(record) => record,
        other => panic!("expected it to be rejected, got {other:?}"),
    }
}

/// The record that the store would answer with.
pub async fn get(store: &Ledger, n: u64) -> Record {
    store.get(id(n)).await.expect("it can be read").expect("it exists")
}

/// A delivery to the owner, whose next call confirms it.
pub fn to_owner(bound: bool, until: i64) -> Handed {
    let to = Recipient { confirmed_by: ConfirmedBy::Call, bound, inside: None };
    Handed { to, until: at(until) }
}

/// The oldest entries that are free, held for the taker.
pub fn oldest(limit: u32, until: i64) -> Take {
    Take::Oldest { limit, until: at(until) }
}

/// These notices were delivered.
pub fn handed(ids: Vec<NoticeId>, confirmed_by: ConfirmedBy, until: i64) -> Take {
    let to = Recipient { confirmed_by, bound: true, inside: None };
    Take::Delivered { ids, handed: Handed { to, until: at(until) } }
}

/// The end of the `n`th task was delivered to its owner, if it is this one.
///
/// # Panics
/// If the store refuses it.
pub async fn deliver(store: &Ledger, owner: &str, n: u64, bound: bool, until: i64) {
    let waiter = Waiter { owner: owner.into(), tasks: Vec::new(), call: 99, until: at(0) };
    let delivered = Some((vec![id(n)], to_owner(bound, until)));
    store.release(waiter, delivered, at(0)).await.expect("taken");
}
