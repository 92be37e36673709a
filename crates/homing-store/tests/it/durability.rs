//! What was answered is in the files, whatever happens next (P9).

use homing_store::store::{EventLog, Queue, Tasks, Upkeep};
use std::os::unix::fs::PermissionsExt;

use homing_model::Status;
use homing_store::conformance::fixture::{at, create, finish, first, get, id, start, submit};
use homing_store::record::Started;

use crate::home::{Home, ledger};

#[tokio::test]
async fn p9_an_answered_submit_and_end_survive_a_kill() {
    let home = Home::new();
    let store = home.open();
    for n in 0..3 {
        create(&ledger(&store), submit(n), 0).await;
    }
    start(&ledger(&store), 1, 1).await;
    finish(&ledger(&store), 2, 2, 5).await;
    let killed = home.as_after_a_kill();
    let reopened = ledger(&killed.open());
    assert_eq!(get(&reopened, 0).await.status, Status::Starting);
    assert_eq!(get(&reopened, 1).await.status, Status::Running);
    assert_eq!(get(&reopened, 2).await.status, Status::Succeeded);
    assert_eq!(reopened.check().await, Ok(()));
    assert_eq!(reopened.last_event().await, store.last_event().await);
}

#[tokio::test]
async fn a_clean_shutdown_leaves_the_database_and_its_reserve() {
    let home = Home::new();
    let store = home.open();
    create(&ledger(&store), submit(1), 0).await;
    store.counts().await.unwrap();
    store.close().await.unwrap();
    let mut files: Vec<_> =
        std::fs::read_dir(home.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["homing.db", "homing.db.reserve"]);
    assert_eq!(get(&ledger(&home.open()), 1).await.id, id(1));
}

#[tokio::test]
async fn nobody_else_can_read_the_files() {
    let home = Home::new();
    let store = home.open();
    create(&ledger(&store), submit(1), 0).await;
    for entry in std::fs::read_dir(home.folder()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
    }
}

#[tokio::test]
async fn a_stray_log_is_not_taken_for_that_of_a_new_database() {
    let home = Home::new();
    let first_store = home.open();
    create(&ledger(&first_store), submit(1), 0).await;
    let stray = home.as_after_a_kill();
    std::fs::remove_file(stray.database()).unwrap();
    let store = stray.open();
    assert_eq!(store.get(id(1)).await, Ok(None));
    assert_eq!(store.check().await, Ok(()));
}

#[tokio::test]
async fn relaxed_operations_survive_a_kill_too() {
    let home = Home::new();
    let store = home.open();
    create(&ledger(&store), submit(1), 0).await;
    store.started(first(1), Started { pid: 3, at: at(1) }).await.unwrap();
    let killed = home.as_after_a_kill();
    assert_eq!(get(&ledger(&killed.open()), 1).await.pid, Some(3));
}

/// Passes on a sound disk; on one that fails it shows that no answer was a lie. To fail the tenth sync:
/// `strace -f -o /dev/null -e inject=fsync:error=EIO:when=10 target/debug/deps/it-… p9_every_answer_is_true`.
#[tokio::test]
async fn p9_every_answer_is_true_even_when_the_disk_fails() {
    let home = Home::new();
    let store = home.open();
    let mut accepted = Vec::new();
    for n in 0..30 {
        match store.submit(submit(n), at(0)).await {
            Ok(_) => accepted.push(id(n)),
            Err(error) => println!("submit {n}: {error}"),
        }
    }
    assert!(accepted.len() > 20, "one failure does not end the store");
    let copy = home.as_after_a_kill();
    let killed = copy.open();
    let (live, damaged) = killed.live().await.unwrap();
    assert_eq!(
        (live.into_iter().map(|record| record.id).collect::<Vec<_>>(), damaged),
        (accepted, Vec::new())
    );
    assert_eq!(killed.check().await, Ok(()));
}
