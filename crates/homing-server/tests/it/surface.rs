//! What holds for every address, and the few that are about the daemon.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use homing_server::{Ended, openapi_json};
use serde_json::{Value, json};

use crate::served::Served;

#[test]
fn every_route_refuses_a_parameter_that_it_does_not_know() {
    let served = Served::start();
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let target = format!("{}?nonsense=1", path.replace("{ref}", "x"));
            let answer = served.ask(&method.to_uppercase(), &target, &[], b"");
            assert_eq!(answer.problem(), (422, "HM0003".into()), "{method} {path}");
            assert!(answer.text().contains("nonsense"));
            count += 1;
        }
    }
    assert!(count >= 18, "{count}");
}

#[test]
fn every_route_that_names_a_task_says_when_there_is_none() {
    let served = Served::start();
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    for (path, item) in
        document["paths"].as_object().unwrap().iter().filter(|(path, _)| path.contains("{ref}"))
    {
        for (method, operation) in item.as_object().unwrap() {
            let body = match operation["operationId"].as_str().unwrap() {
                "signal" => r#"{"signal":"TERM"}"#,
                "resize" => r#"{"cols":80,"rows":24}"#,
                "input" | "progress" => r#"{"text":"x"}"#,
                _ => "",
            };
            for reference in ["t-2222222222", "nobody", "%2E%2E%2Fetc", "a%20b"] {
                let target = path.replace("{ref}", reference);
                let answer = served.ask(&method.to_uppercase(), &target, &[], body.as_bytes());
                assert_eq!(answer.problem(), (404, "HM0001".into()), "{method} {target}: {}", answer.text());
            }
            let broken =
                served.ask(&method.to_uppercase(), &path.replace("{ref}", "%FF"), &[], body.as_bytes());
            assert_eq!(broken.problem(), (422, "HM0003".into()), "{method} {path}");
        }
    }
}

#[test]
fn other_addresses_and_methods_are_problems_too() {
    let served = Served::start();
    for target in ["/v1", "/v1/nothing", "/v1/tasks/", "/v1/tasks/x/y/z"] {
        assert_eq!(served.get(target).problem(), (404, "HM0026".into()), "{target}");
    }
    let wrong = served.ask("PUT", "/v1/tasks", &[], b"");
    assert_eq!(wrong.problem(), (405, "HM0026".into()));
    let mut allowed: Vec<_> = wrong.header("allow").split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
}

#[test]
fn who_says_more_than_was_asked_for_is_heard_out_before_it_is_answered() {
    let served = Served::start();
    let mut stream = UnixStream::connect(served.socket()).unwrap();
    // All on one connection: nobody is cut off.
    for (asked, expected) in [
        ("POST /v1/gc", "200"),
        ("GET /healthz", "200"),
        ("POST /v1/nothing", "404"),
        ("PUT /v1/tasks", "405"),
        ("POST /v1/tasks?nonsense=1", "422"),
    ] {
        let head = format!("{asked} HTTP/1.1\r\nhost: homing\r\ncontent-length: 2\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let early = stream.read(&mut [0; 1]).map_err(|error| error.kind());
        assert_eq!(early, Err(ErrorKind::WouldBlock), "{asked} was answered before everything was said");
        stream.write_all(b"{}").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut answer = Vec::new();
        let length = loop {
            let mut next = [0; 1];
            stream.read_exact(&mut next).unwrap();
            answer.extend_from_slice(&next);
            if answer.ends_with(b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&answer);
                assert_eq!(head.split(' ').nth(1), Some(expected), "{asked}: {head}");
                break head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
                    .unwrap();
            }
        };
        stream.read_exact(&mut vec![0; length]).unwrap();
    }
}

#[test]
fn who_has_said_everything_is_answered_though_it_says_so() {
    let served = Served::start();
    let body = r#"{"argv":["true"]}"#;
    for asked in [
        "GET /v1/status HTTP/1.1\r\nhost: homing\r\n\r\n".to_owned(),
        format!("POST /v1/tasks HTTP/1.1\r\nhost: homing\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
    ] {
        for _ in 0..20 {
            let mut stream = UnixStream::connect(served.socket()).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream.write_all(asked.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 20"), "{answer:?} to {asked}");
        }
    }
}

#[test]
fn the_daemon_describes_itself() {
    let served = Served::start();
    assert_eq!(served.get("/healthz").json(), json!({ "ok": true }));
    assert_eq!(served.get("/openapi.json").text(), openapi_json());
    served.run_to_end("true");
    let status = served.get("/v1/status").json();
    assert_eq!(status["daemon"]["home"], served.home().to_str().unwrap());
    assert_eq!(status["tasks"]["finished"], 1);
    assert_eq!(served.post("/v1/gc", "").json()["forgotten"], 0);
    assert_eq!(served.socket().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn requests_in_a_row_share_a_connection_and_a_stop_ends_the_server_on_purpose() {
    let served = Served::start();
    let socket = served.socket();
    let mut stream = UnixStream::connect(&socket).unwrap();
    for _ in 0..3 {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: homing\r\n\r\n").unwrap();
        let mut answer = [0; 4096];
        let count = stream.read(&mut answer).unwrap();
        assert!(answer[..count].starts_with(b"HTTP/1.1 200"));
    }
    let waiting = served.run("sleep 60", &json!({}));
    let mut wait = UnixStream::connect(&socket).unwrap();
    write!(wait, "GET /v1/tasks/{waiting}/wait HTTP/1.1\r\nhost: homing\r\n\r\n").unwrap();
    assert_eq!(served.post("/v1/daemon/stop", "").status, 202);
    assert_eq!(served.ended(), Ended::Asked);
    let mut answer = Vec::new();
    let _ = wait.read_to_end(&mut answer);
    assert!(answer.is_empty(), "a wait is cut off, not answered");
    assert!(UnixStream::connect(&socket).is_err());
}
