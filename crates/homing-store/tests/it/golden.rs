//! Databases of released versions open for ever.
//!
//! `tests/golden/v1.db` was made by `make_the_golden_database` below and is not made again: it stands for files that people have. `v4.db` is
//! the same database after the migrations of version 4.

use homing_model::reservation::Access;
use homing_model::{AgentName, EventKind, OnDuplicate, Status};
use homing_store::SessionClaim;
use homing_store::conformance::fixture::{
    at, create, done, finish, finished, get, id, keyed, named, requested, start, submit,
};
use homing_store::store::{EventFilter, Filter, Submitted};
use homing_store::store::{EventLog, Inbox, Outbox, Queue, Tasks, Upkeep};

use crate::home::{Home, ledger};

fn golden(version: u32) -> std::path::PathBuf {
    format!("{}/tests/golden/v{version}.db", env!("CARGO_MANIFEST_DIR")).into()
}

#[tokio::test]
#[ignore = "writes the golden file; run it once per schema version"]
async fn make_the_golden_database() {
    let home = Home::new();
    let store = home.open();
    let ledger = ledger(&store);
    // 0 dropped, 1 a tombstone, 2 finished, 3 running with a key, 4 stopping with a name, 5 starting by a request.
    finished(&ledger, 0, 10, 1).await;
    finished(&ledger, 1, 20, 2).await;
    done(store.forget(id(0), at(30)).await.unwrap());
    let policy =
        homing_model::retention::Policy { tombstones: std::time::Duration::ZERO, ..Default::default() };
    store.trim(policy, at(30), 10).await.unwrap();
    done(store.forget(id(1), at(30)).await.unwrap());
    let mut labelled = named(2, "nightly");
    labelled.task.spec.labels.insert("colour".into(), "grün".into());
    create(&ledger, labelled, 40).await;
    finish(&ledger, 2, 50, 4096).await;
    create(&ledger, keyed(3, "build", OnDuplicate::Join), 60).await;
    start(&ledger, 3, 61).await;
    create(&ledger, named(4, "server"), 70).await;
    done(store.stop_requested(id(4), "bob".into(), 1, None, at(71)).await.unwrap());
    create(&ledger, requested(5, "r", "body"), 80).await;
    store.note(EventKind::DaemonStarted, serde_json::json!({"version": "0.1.0"}), at(90)).await.unwrap();
    store.close().await.unwrap();
    std::fs::copy(home.database(), golden(1)).unwrap();
}

#[tokio::test]
async fn a_database_of_version_1_is_read_and_carried_on() {
    let home = Home::new();
    std::fs::copy(golden(1), home.database()).unwrap();
    let store = home.open();
    let ledger = ledger(&store);
    assert_eq!(store.check().await, Ok(()));

    assert_eq!(store.submit(submit(0), at(100)).await, Ok(Submitted::IdTaken));
    let tombstone = get(&ledger, 1).await;
    assert!(tombstone.forgotten && tombstone.status == Status::Succeeded && tombstone.output_bytes == 2);
    let nightly = get(&ledger, 2).await;
    assert_eq!(nightly.spec.labels["colour"], "grün");
    assert_eq!(nightly.outcome.unwrap().exit_code, Some(0));
    assert_eq!(get(&ledger, 4).await.stop, Some("bob".into()));
    let listed = store.list(Filter { limit: 10, ..Filter::default() }).await.unwrap();
    assert_eq!(listed.records.iter().map(|r| r.id.clone()).collect::<Vec<_>>(), [id(5), id(4), id(3), id(2)]);
    assert!(matches!(store.submit(requested(9, "r", "body"), at(100)).await, Ok(Submitted::Repeated(_))));

    let log = store.events(0, EventFilter::default(), 100).await.unwrap();
    assert_eq!(log.events.first().unwrap().kind, EventKind::TaskQueued);
    assert_eq!(log.events.last().unwrap().kind, EventKind::DaemonStarted);

    // Submitted before there were notices: it reads as `never`, and its end tells nobody.
    assert_eq!(finish(&ledger, 3, 100, 0).await.status, Status::Succeeded);
    assert_eq!(get(&ledger, 3).await.spec.notify, None);
    let owner = get(&ledger, 3).await.owner;
    assert_eq!(
        store.peek(owner, 10, Access::Look, at(101)).await,
        Ok(homing_store::outbox::Available::default())
    );
    assert_eq!(store.due(at(101)).await, Ok((Vec::new(), None)));
    create(&ledger, keyed(10, "build", OnDuplicate::Refuse), 101).await;
    assert_eq!(store.check().await, Ok(()));
}

#[tokio::test]
async fn a_database_of_version_4_is_read_and_carried_on() {
    let home = Home::new();
    std::fs::copy(golden(4), home.database()).unwrap();
    let store = home.open();
    let ledger = ledger(&store);
    assert_eq!(store.check().await, Ok(()));
    assert!(store.binding(AgentName::new("claude").unwrap(), "earlier".into()).await.unwrap().is_some());
    assert_eq!(get(&ledger, 3).await.nested_session, None);
    let claim = SessionClaim { task: id(3), session: "claude:own".into(), replaces: None, inside: None };
    assert_eq!(store.claim_session(claim).await, Ok(Some("claude:own".into())));
    assert_eq!(get(&ledger, 3).await.nested_session.as_deref(), Some("claude:own"));
    assert_eq!(store.check().await, Ok(()));
}
