//! `/v1/tasks/{ref}/follow`.

use serde_json::json;

use crate::served::Served;

#[test]
fn output_comes_as_it_is_made_and_then_the_task() {
    let served = Served::start();
    let id = served.run(
        "echo one; read line; printf 'grüß \\342'; read line; printf '\\202\\254'",
        &json!({ "stdin": "pipe" }),
    );
    let mut stream = served.open("GET", &format!("/v1/tasks/{id}/follow"), &[], b"");
    assert_eq!(stream.status, 200);
    let first = stream.event().unwrap();
    assert_eq!(
        (first.name.as_str(), first.id.as_deref(), &first.data["text"]),
        ("output", Some("4"), &json!("one\n"))
    );
    served.post(&format!("/v1/tasks/{id}/input"), r#"{"text":"\n"}"#);
    let second = stream.event().unwrap();
    assert_eq!((second.id.as_deref(), &second.data["text"]), (Some("11"), &json!("grüß ")));
    served.post(&format!("/v1/tasks/{id}/input"), r#"{"text":"\n"}"#);
    let third = stream.event().unwrap();
    assert_eq!(
        (third.id.as_deref(), &third.data["text"], &third.data["offset"]),
        (Some("14"), &json!("€"), &json!(11))
    );
    let end = stream.event().unwrap();
    assert_eq!((end.name.as_str(), &end.data["status"]), ("end", &json!("succeeded")));
    assert_eq!(stream.event(), None);
}

#[test]
fn a_stream_resumes_after_its_last_event() {
    let served = Served::start();
    let id = served.run_to_end("printf 'abc\\377def'");
    let path = format!("/v1/tasks/{id}/follow?offset=1");
    let events = served.open("GET", &path, &[], b"").events();
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["output", "end"]);
    assert_eq!(events[0].data, json!({ "offset": 1, "bytes": 6, "base64": "YmP/ZGVm" }));
    let resumed = served.open("GET", &path, &[("last-event-id", "4")], b"").events();
    assert_eq!(resumed[0].data, json!({ "offset": 4, "bytes": 3, "text": "def" }));
    assert_eq!(served.open("GET", &path, &[("last-event-id", "7")], b"").events().len(), 1);
}

#[test]
fn much_output_comes_whole_in_pieces() {
    let served = Served::start();
    let line = "i=0; while [ $i -lt 3000 ]; do echo \"$i é€😀 and some text to fill it\"; i=$((i+1)); done";
    let id = served.run(line, &json!({}));
    let events = served.open("GET", &format!("/v1/tasks/{id}/follow"), &[], b"").events();
    let mut text = String::new();
    for event in &events[..events.len() - 1] {
        assert_eq!(event.data["offset"], text.len());
        let piece = event.data["text"].as_str().expect("text");
        assert!(piece.len() <= 64 * 1024);
        text.push_str(piece);
    }
    assert_eq!(text.lines().count(), 3000);
    assert_eq!(events.last().unwrap().name, "end");
}

#[test]
fn a_gap_is_told_with_its_size() {
    let served = Served::start();
    let id =
        served.run("head -c 1000000 /dev/zero | tr '\\0' x; echo end", &json!({ "max_output_bytes": 65536 }));
    served.get(&format!("/v1/tasks/{id}/wait"));
    let events = served.open("GET", &format!("/v1/tasks/{id}/follow"), &[], b"").events();
    let mut reached = 0;
    for event in &events {
        match event.name.as_str() {
            "output" | "gap" => {
                assert_eq!(event.data["offset"], reached);
                reached += event.data["bytes"].as_u64().unwrap();
                assert_eq!(event.id, Some(reached.to_string()));
            }
            name => assert_eq!(name, "end"),
        }
    }
    assert_eq!(reached, 1_000_004);
    assert_eq!(events.iter().filter(|event| event.name == "gap").count(), 1);
}

#[test]
fn nobody_can_be_followed_who_is_not_there() {
    let served = Served::start();
    assert_eq!(served.get("/v1/tasks/t-2222222222/follow").problem(), (404, "HM0001".into()));
    assert_eq!(served.get("/v1/tasks/nobody/follow").problem(), (404, "HM0001".into()));
}
