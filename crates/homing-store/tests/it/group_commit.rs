//! Many writers share a commit, and none waits for company.
use homing_store::conformance::fixture::{at, create, ending, finish, first, submit};
use homing_store::outbox::Report;
use homing_store::store::{Applied, Submitted};
use homing_store::store::{Queue, Tasks, Upkeep};

use crate::home::{Home, ledger};

#[tokio::test]
async fn concurrent_submits_share_commits() {
    let home = Home::new();
    let store = home.open();
    let before = store.commits();
    // Somebody else writes until all are there: else a quick disk would be done with each before the next one comes.
    let other = rusqlite::Connection::open(home.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let submits: Vec<_> = (0..500).map(|n| store.submit(submit(n), at(0))).collect();
    other.execute_batch("COMMIT").unwrap();
    for submit in submits {
        assert!(matches!(submit.await, Ok(Submitted::Created(_))));
    }
    let commits = store.commits() - before;
    assert!(commits <= 100, "500 submits took {commits} commits");
    assert_eq!(store.counts().await.unwrap().running, 500);
}

#[tokio::test]
async fn a_lone_operation_is_one_commit() {
    let home = Home::new();
    let store = home.open();
    let before = store.commits();
    create(&ledger(&store), submit(1), 0).await;
    finish(&ledger(&store), 1, 1, 0).await;
    assert_eq!(store.commits() - before, 2);
}

#[tokio::test]
async fn an_operation_whose_caller_left_is_still_done() {
    let home = Home::new();
    let store = home.open();
    drop(store.submit(submit(1), at(0)));
    let ended = store.finish(first(1), ending(1, 0), Report::default()).await;
    assert!(matches!(ended, Ok(Applied::Done(_))), "operations are done in the order of their calls");
}
