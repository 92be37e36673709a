//! Accepting tasks: keys, repeated requests, ids.

use homing_model::{OnDuplicate, Status};
use tokio::task::JoinSet;

use super::fixture::{Ledger, at, create, finish, finished, get, id, keyed, requested, submit};
use crate::record::Record;
use crate::store::{Answered, Submitted};

/// The task is claimed when it is accepted, and reads back as it was given.
pub async fn a_submit_is_accepted_and_claimed_in_one_step(store: Ledger) {
    let mut given = submit(1);
    given.task.spec.labels.insert("colour".into(), "grün".into());
    given.task.parent = Some(id(9));
    given.task.depth = 1;
    let record = create(&store, given.clone(), 5).await;
    assert_eq!((record.status, record.attempt, record.created_at), (Status::Starting, 1, at(5)));
    assert_eq!((&record.spec, &record.parent), (&given.task.spec, &given.task.parent));
    assert_eq!(
        (&record.env_names, &record.volatile_secrets),
        (&given.task.env_names, &given.task.volatile_secrets)
    );
    assert_eq!(get(&store, 1).await, record);
    assert!(create(&store, submit(2), 5).await.seq > record.seq, "the order of acceptance increases");
}

/// A key is unique per owner among live tasks.
pub async fn a_live_key_joins_or_refuses_and_a_finished_one_frees_it(store: Ledger) {
    let one = create(&store, keyed(1, "build", OnDuplicate::Join), 0).await;
    let again = store.submit(keyed(2, "build", OnDuplicate::Join), at(1)).await;
    assert_eq!(again, Ok(Submitted::Joined(one)));
    let refused = store.submit(keyed(3, "build", OnDuplicate::Refuse), at(1)).await;
    assert_eq!(refused, Ok(Submitted::Duplicate(id(1))));
    let mut other = keyed(4, "build", OnDuplicate::Refuse);
    other.task.owner = "bob".into();
    create(&store, other, 1).await;
    finish(&store, 1, 2, 0).await;
    create(&store, keyed(5, "build", OnDuplicate::Refuse), 3).await;
}

/// However many ask at once.
pub async fn two_submits_with_one_key_at_once_give_one_task(store: Ledger) {
    let mut asking = JoinSet::new();
    for n in 0..16 {
        asking.spawn(store.submit(keyed(n, "build", OnDuplicate::Join), at(0)));
    }
    let (mut created, mut ids) = (0, Vec::new());
    for answer in asking.join_all().await {
        match answer.expect("the submit is taken") {
            Submitted::Created(record) => {
                created += 1;
                ids.push(record.id);
            }
            Submitted::Joined(record) => ids.push(record.id),
            other => panic!("expected one of both, got {other:?}"),
        }
    }
    assert_eq!(created, 1);
    ids.dedup();
    assert_eq!(ids.len(), 1, "all were told of the same task");
}

/// The same request again is the first one; another body under its key is refused.
pub async fn one_request_key_stands_for_one_body_until_it_expires(store: Ledger) {
    let one = create(&store, requested(1, "r", "body"), 0).await;
    assert_eq!(store.submit(requested(2, "r", "body"), at(1)).await, Ok(Submitted::Repeated(made(one))));
    assert_eq!(store.submit(requested(3, "r", "other"), at(1)).await, Ok(Submitted::IdempotencyMismatch));
    assert_eq!(store.get(id(3)).await, Ok(None), "a refused submit leaves nothing");
    let ended = finish(&store, 1, 2, 0).await;
    assert_eq!(store.submit(requested(4, "r", "body"), at(3)).await, Ok(Submitted::Repeated(made(ended))));
    let mut another = requested(5, "r", "other");
    another.task.owner = "bob".into();
    create(&store, another, 3).await;
    let late = store.submit(requested(6, "r", "other"), at(86_400_000)).await;
    assert!(matches!(late, Ok(Submitted::Created(_))), "the key has expired: {late:?}");
}

/// What was made for a request.
fn made(record: Record) -> Answered {
    Answered { record, joined: false }
}

/// Whoever asks what a request was answered with is told, and changes nothing.
pub async fn a_request_that_was_answered_is_known_by_its_key_and_body(store: Ledger) {
    let request = |body: &str| requested(9, "r", body).idempotency.expect("it has a key");
    let ask = |owner: &str, body: &str, now| store.answered(owner.into(), request(body), at(now));
    let owner = requested(1, "r", "body").task.owner;
    assert_eq!(ask(&owner, "body", 0).await, Ok(None));
    let one = create(&store, requested(1, "r", "body"), 0).await;
    assert_eq!(ask(&owner, "body", 1).await, Ok(Some(made(one))));
    assert_eq!(ask(&owner, "other", 1).await, Ok(None));
    assert_eq!(ask("bob", "body", 1).await, Ok(None));
    let ended = finish(&store, 1, 2, 0).await;
    assert_eq!(ask(&owner, "body", 3).await, Ok(Some(made(ended))));
    assert_eq!(ask(&owner, "body", 86_400_000).await, Ok(None), "the key has expired");
}

/// A request that joined a live task is answered with it later too.
pub async fn a_request_key_survives_the_end_of_a_joined_task(store: Ledger) {
    create(&store, keyed(1, "build", OnDuplicate::Join), 0).await;
    let mut joining = requested(2, "r", "body");
    joining.task.spec.key = Some("build".into());
    let joined = store.submit(joining.clone(), at(1)).await;
    assert!(matches!(&joined, Ok(Submitted::Joined(record)) if record.id == id(1)), "{joined:?}");
    let ended = finish(&store, 1, 2, 0).await;
    let answered = Answered { record: ended, joined: true };
    assert_eq!(store.submit(joining, at(3)).await, Ok(Submitted::Repeated(answered)));
}

/// Not while it is live, nor after it ended.
pub async fn p12_an_id_in_use_is_not_issued_again(store: Ledger) {
    create(&store, submit(1), 0).await;
    finished(&store, 2, 0, 0).await;
    for n in [1, 2] {
        let before = get(&store, n).await;
        assert_eq!(store.submit(submit(n), at(1)).await, Ok(Submitted::IdTaken));
        assert_eq!(get(&store, n).await, before);
    }
}
