//! `/v1/tasks`.

use serde_json::{Value, json};

use crate::served::Served;

#[test]
fn a_submit_is_created_once_and_joined_after_that() {
    let served = Served::start();
    let body = r#"{"argv":["sleep","60"],"key":"k","name":"nap"}"#;
    let first = served.post("/v1/tasks", body);
    assert_eq!(first.status, 201, "{}", first.text());
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(first.header("location"), format!("/v1/tasks/{id}"));
    assert_eq!(first.json()["owner"], "user");
    let second = served.post("/v1/tasks", body);
    assert_eq!((second.status, second.json()["id"].as_str()), (200, Some(id.as_str())));
    let refused = served.post("/v1/tasks", r#"{"argv":["sleep","60"],"key":"k","on_duplicate":"refuse"}"#);
    assert_eq!(refused.problem(), (409, "HM0011".into()));
    for reference in [&id[..8], &id[2..9], "nap", "@last"] {
        assert_eq!(served.get(&format!("/v1/tasks/{reference}")).json()["id"], id, "{reference}");
    }
    assert_eq!(served.post(&format!("/v1/tasks/{id}/stop"), "").status, 200);
}

#[test]
fn an_idempotency_key_stands_for_one_body() {
    let served = Served::start();
    let submit =
        |key: &str, body: &str| served.ask("POST", "/v1/tasks", &[("idempotency-key", key)], body.as_bytes());
    let first = submit("one", r#"{"argv":["true"]}"#);
    let again = submit("one", r#"{"argv":["true"]}"#);
    assert_eq!((first.status, again.status), (201, 201), "the answer is the same too");
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(submit("one", r#"{"argv":["false"]}"#).problem(), (422, "HM0010".into()));
    assert_eq!(submit("two", r#"{"argv":["true"]}"#).status, 201);
    assert_eq!(submit(&"x".repeat(300), r#"{"argv":["true"]}"#).problem(), (422, "HM0003".into()));
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let served = Served::start();
    let cases = [
        (r#"{"argv":["true"],"nonsense":1}"#, 422, "HM0003", "nonsense"),
        (r#"{"argv":[]}"#, 422, "HM0003", "argv"),
        (r#"{"argv":["true"],"cwd":"here"}"#, 422, "HM0003", "cwd"),
        (r#"{"argv":["true"]"#, 400, "HM0004", ""),
        (r#"[["true"]]"#, 400, "HM0004", ""),
        ("", 400, "HM0004", ""),
    ];
    for (body, status, code, named) in cases {
        let answer = served.post("/v1/tasks", body);
        assert_eq!(answer.problem(), (status, code.into()), "{body}");
        assert!(answer.json()["detail"].as_str().unwrap().contains(named), "{}", answer.text());
    }
    let control =
        served.ask("POST", "/v1/tasks", &[("homing-owner", &"o".repeat(1000))], br#"{"argv":["true"]}"#);
    assert_eq!(control.problem(), (422, "HM0003".into()));
}

#[test]
fn a_body_that_is_too_large_is_refused_and_its_sender_reads_so() {
    let served = Served::start();
    let body = format!(r#"{{"argv":["true"],"description":"{}"}}"#, "x".repeat(9 << 20));
    assert_eq!(served.post("/v1/tasks", &body).problem(), (413, "HM0027".into()));
}

#[test]
fn the_owner_is_the_body_then_the_header() {
    let served = Served::start();
    let header = served.ask("POST", "/v1/tasks", &[("homing-owner", "claude:7")], br#"{"argv":["true"]}"#);
    assert_eq!(header.json()["owner"], "claude:7");
    let body = served.ask(
        "POST",
        "/v1/tasks",
        &[("homing-owner", "claude:7")],
        br#"{"argv":["true"],"owner":"me"}"#,
    );
    assert_eq!(body.json()["owner"], "me");
    let last = served.ask("GET", "/v1/tasks/@last", &[("homing-owner", "claude:7")], b"");
    assert_eq!(last.json()["id"], header.json()["id"]);
    assert_eq!(served.get("/v1/tasks/@last").problem(), (404, "HM0001".into()));
}

#[test]
fn lists_are_narrowed_and_paged() {
    let served = Served::start();
    for number in 0..5 {
        let labels = json!({ "labels": { "parity": (number % 2).to_string(), "set": "a=b" } });
        let id = served.run("exit 0", &labels);
        served.get(&format!("/v1/tasks/{id}/wait"));
    }
    let count =
        |query: &str| served.get(&format!("/v1/tasks?{query}")).json()["items"].as_array().unwrap().len();
    assert_eq!(count("label=parity%3D0"), 3);
    assert_eq!(count("label=parity=1&label=set=a=b"), 2);
    assert_eq!(count("status=succeeded,failed&owner=user"), 5);
    assert_eq!(count("status=lost"), 0);
    assert_eq!(count("owner=somebody"), 0);
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = served.get(&format!("/v1/tasks?limit=2{cursor}")).json();
        seen.extend(page["items"].as_array().unwrap().iter().map(|task| task["id"].clone()));
        match &page["next_cursor"] {
            Value::String(next) => cursor = format!("&cursor={next}"),
            _ => break,
        }
    }
    let distinct: std::collections::HashSet<_> = seen.iter().map(ToString::to_string).collect();
    assert_eq!((seen.len(), distinct.len()), (5, 5));
    for (query, named) in [
        ("cursor=nonsense", "cursor"),
        ("status=asleep", "asleep"),
        ("label=x", "label"),
        ("limit=0", "limit"),
    ] {
        let answer = served.get(&format!("/v1/tasks?{query}"));
        assert_eq!(answer.problem(), (422, "HM0003".into()), "{query}");
        assert!(answer.text().contains(named), "{}", answer.text());
    }
}
