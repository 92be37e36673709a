//! Waiting.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[tokio::test]
async fn waiting_resolves_names_first_and_survives_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let fake = Fake::serve(home.path(), move |request| {
        if request.is("GET", "/v1/wait") && count.fetch_add(1, Ordering::Relaxed) == 0 {
            return Reply::cut();
        }
        one_task("failed", Some(3), b"")(request)
    });
    let ran = run(home.path(), &["wait", "my build"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "t-bcdfghjkmn failed, exit 3 after 1.0s\n"));
    let targets: Vec<_> = fake.requests().iter().map(|request| request.target.clone()).collect();
    assert_eq!(targets[0], "/v1/tasks/my%20build");
    assert!(targets[1].starts_with("/v1/wait?ids=t-bcdfghjkmn&mode=all"), "{targets:?}");
    assert_eq!(targets.len(), 3);
}

#[tokio::test]
async fn a_wait_that_was_too_short_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), one_task("running", None, b""));
    let ran = run(home.path(), &["wait", "--timeout", "0s", "@last", "--json"]).await;
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, answer["done"].as_bool()), (Some(123), Some(false)));
}
