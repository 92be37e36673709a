//! Hooks.

use std::sync::atomic::{AtomicUsize, Ordering};

use homing_api::{Code, Problem};

use super::*;

#[tokio::test]
async fn the_waiter_outlasts_a_shortage_of_connections() {
    let home = tempfile::tempdir().unwrap();
    let full = Problem::new(Code::TooManyConnections, "no place");
    let full = serde_json::to_string(&full).unwrap();
    let lists = AtomicUsize::new(0);
    let fake = Fake::serve(home.path(), move |request| match request.target.as_str() {
        "/v1/session" => Reply::json(200, "null"),
        list if list.starts_with("/v1/tasks") => match lists.fetch_add(1, Ordering::Relaxed) {
            0..3 => Reply::json(503, full.clone()),
            _ => Reply::json(200, r#"{"items":[],"next_cursor":null}"#),
        },
        inbox if inbox.starts_with("/v1/inbox") => Reply::json(200, r#"{"items":[]}"#),
        _ => Reply::json(503, full.clone()),
    });
    let input = r#"{"session_id":"s","cwd":"/","hook_event_name":"x"}"#;
    let ran = run_with(home.path(), &["hook", "claude", "rewake"], input.as_bytes()).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    let targets: Vec<_> = fake.requests().iter().map(|request| request.target.clone()).collect();
    assert!(targets.last().unwrap().starts_with("/v1/inbox"), "{targets:?}");
}
