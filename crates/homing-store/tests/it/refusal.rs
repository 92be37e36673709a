//! What is not ours, not sound, or not yet known is refused with its reason, and left as it was found.

use homing_store::store::Upkeep;
use std::collections::BTreeMap;
use std::path::Path;

use homing_store::conformance::fixture::{create, finished, submit};
use homing_store::{Error, SqliteStore};
use rusqlite::Connection;

use crate::home::{Home, ledger};

/// All files but the shared index of the log, which SQLite rebuilds whenever it looks.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .filter(|(name, _)| !name.ends_with("-shm"))
        .collect()
}

fn refused(home: &Home) -> Error {
    let before = contents(home.folder());
    let error = SqliteStore::open(&home.database()).map(drop).unwrap_err();
    assert!(contents(home.folder()) == before, "it was changed, although refused: {error}");
    error
}

/// A database of ours, closed.
async fn sound() -> Home {
    let home = Home::new();
    let store = home.open();
    for n in 0..50 {
        finished(&ledger(&store), n, 0, 0).await;
    }
    create(&ledger(&store), submit(50), 0).await;
    store.close().await.unwrap();
    home
}

fn rewrite(home: &Home, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(home.database()).unwrap();
    change(&mut bytes);
    std::fs::write(home.database(), bytes).unwrap();
}

#[test]
fn garbage_is_refused() {
    let home = Home::new();
    for garbage in [&b"hello"[..], &[0; 8192], &[0xff; 100]] {
        std::fs::write(home.database(), garbage).unwrap();
        assert!(matches!(refused(&home), Error::Corrupt(_)));
    }
}

#[tokio::test]
async fn an_empty_file_is_refused() {
    let home = Home::new();
    std::fs::write(home.database(), "").unwrap();
    let refusal = refused(&home);
    assert!(matches!(&refusal, Error::Corrupt(why) if why.ends_with("is empty")), "{refusal}");
}

#[tokio::test]
async fn an_empty_file_whose_log_is_not_empty_is_refused() {
    let home = Home::new();
    let store = home.open();
    create(&ledger(&store), submit(1), 0).await;
    let killed = home.as_after_a_kill();
    std::fs::write(killed.database(), "").unwrap();
    let error = refused(&killed);
    assert!(matches!(&error, Error::Corrupt(why) if why.contains("its log is not")), "{error}");
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let home = sound().await;
    rewrite(&home, |bytes| bytes.truncate(bytes.len() / 2));
    assert!(matches!(refused(&home), Error::Corrupt(_)));
    rewrite(&home, |bytes| bytes.truncate(50));
    assert!(matches!(refused(&home), Error::Corrupt(_)));
}

#[tokio::test]
async fn flipped_bytes_in_the_schema_are_refused() {
    let home = sound().await;
    rewrite(&home, |bytes| bytes[100..400].iter_mut().for_each(|byte| *byte ^= 0xff));
    assert!(matches!(refused(&home), Error::Corrupt(_)));
}

#[tokio::test]
async fn flipped_bytes_are_found_after_a_crash_and_by_the_check() {
    let home = sound().await;
    let store = home.open();
    create(&ledger(&store), submit(60), 0).await;
    let killed = home.as_after_a_kill();
    // Every page but the first: whichever holds the tasks is among them.
    let flip = |bytes: &mut Vec<u8>| bytes[4096..].iter_mut().step_by(512).for_each(|byte| *byte ^= 0xff);
    rewrite(&killed, flip);
    assert!(matches!(refused(&killed), Error::Corrupt(_)));

    store.close().await.unwrap();
    let victim = Connection::open(home.database()).unwrap();
    let root: u32 = victim
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'issued'", [], |row| row.get(0))
        .unwrap();
    drop(victim);
    rewrite(&home, |bytes| bytes[(root as usize - 1) * 4096..][..8].fill(0xff));
    assert!(matches!(home.open().check().await, Err(Error::Corrupt(_))));
}

#[tokio::test]
async fn a_later_release_is_refused() {
    let home = sound().await;
    Connection::open(home.database()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(refused(&home), Error::TooNew { found: 99, known: 5 }));
}

#[tokio::test]
async fn a_later_release_that_crashed_is_refused() {
    let home = sound().await;
    let newer = Connection::open(home.database()).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let killed = home.as_after_a_kill();
    assert!(matches!(refused(&killed), Error::TooNew { found: 99, known: 5 }));
}

#[test]
fn another_programs_database_is_refused() {
    let home = Home::new();
    let other = Connection::open(home.database()).unwrap();
    other.execute_batch("CREATE TABLE theirs (x)").unwrap();
    assert!(matches!(refused(&home), Error::Foreign(_)));
    other.pragma_update(None, "application_id", 77).unwrap();
    assert!(matches!(refused(&home), Error::Foreign(_)));
}

#[tokio::test]
async fn a_link_or_a_folder_is_refused() {
    let home = sound().await;
    let link = home.folder().join("link.db");
    std::os::unix::fs::symlink(home.database(), &link).unwrap();
    assert!(matches!(SqliteStore::open(&link), Err(Error::Filesystem { .. })));
    assert!(matches!(SqliteStore::open(home.folder()), Err(Error::Filesystem { .. })));
}

#[test]
fn a_missing_folder_is_an_error_of_its_own() {
    let home = Home::new();
    assert!(matches!(SqliteStore::open(&home.folder().join("no/homing.db")), Err(Error::Io(_))));
}

#[tokio::test]
async fn odd_characters_in_a_path_are_just_characters() {
    let home = Home::new();
    let folder = home.folder().join("a?b#c%20d &e");
    std::fs::create_dir(&folder).unwrap();
    for _ in 0..2 {
        let store = SqliteStore::open(&folder.join("homing.db")).unwrap();
        store.counts().await.unwrap();
        store.close().await.unwrap();
    }
    assert_eq!(std::fs::read_dir(home.folder()).unwrap().count(), 1);
}
