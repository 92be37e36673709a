//! `/v1/tasks/{ref}/output` and its index.

use serde_json::json;

use crate::served::Served;

#[test]
fn any_stretch_of_bytes_can_be_read() {
    let served = Served::start();
    // Two pipes have no order: what comes first is taken before the other is written to.
    let taken = "until [ -s \"$HOMING_OUTPUT\" ]; do :; done";
    let id = served.run_to_end(&format!("printf 'out\\377'; {taken}; exec 1>&2; printf 'err\\n'"));
    let whole = served.get(&format!("/v1/tasks/{id}/output"));
    assert_eq!(whole.header("content-type"), "application/octet-stream");
    assert_eq!(whole.body.len(), 8);
    let facts = ["homing-offset", "homing-end", "homing-gap", "homing-dropped", "homing-complete"];
    assert_eq!(facts.map(|name| whole.header(name).to_owned()), ["0", "8", "0", "0", "true"]);
    let middle = served.get(&format!("/v1/tasks/{id}/output?offset=1&limit=2"));
    assert_eq!((middle.body.as_slice(), middle.header("homing-end")), (&b"ut"[..], "3"));
    assert_eq!(middle.header("homing-complete"), "false");
    let tail = served.get(&format!("/v1/tasks/{id}/output?tail=4"));
    assert_eq!((tail.text().as_str(), tail.header("homing-offset")), ("err\n", "4"));
    let errors = served.get(&format!("/v1/tasks/{id}/output?stream=stderr"));
    assert_eq!(errors.text(), "err\n");
    let index = served.get(&format!("/v1/tasks/{id}/output/index")).json();
    let streams: Vec<_> =
        index["spans"].as_array().unwrap().iter().map(|span| span["stream"].clone()).collect();
    assert_eq!(streams, ["stdout", "stderr"]);
    assert!(index["spans"][0]["at"].as_str().unwrap().ends_with('Z'));
    let one = served.get(&format!("/v1/tasks/{id}/output/index?limit=1")).json();
    assert_eq!(one["spans"].as_array().unwrap().len(), 1);
}

#[test]
fn a_read_waits_for_what_is_to_come() {
    let served = Served::start();
    let id = served.run("read line; echo \"got $line\"", &json!({ "stdin": "pipe" }));
    let path = format!("/v1/tasks/{id}/output?offset=0&wait_ms=20000");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| served.get(&path));
        assert_eq!(served.post(&format!("/v1/tasks/{id}/input"), r#"{"text":"it\n"}"#).json()["written"], 3);
        assert_eq!(waiting.join().unwrap().text(), "got it\n");
    });
}

#[test]
fn p12_a_forgotten_task_answers_and_its_output_is_gone() {
    let served = Served::start();
    let id = served.run_to_end("echo x; exit 3");
    let live = served.run("sleep 60", &json!({}));
    assert_eq!(
        served.ask("DELETE", &format!("/v1/tasks/{live}"), &[], b"").problem(),
        (409, "HM0005".into())
    );
    assert_eq!(served.ask("DELETE", &format!("/v1/tasks/{id}"), &[], b"").json()["forgotten"], true);
    let left = served.get(&format!("/v1/tasks/{id}"));
    assert_eq!((left.status, left.json()["outcome"]["exit_code"].as_i64()), (200, Some(3)));
    for below in ["output", "output/index", "follow"] {
        assert_eq!(
            served.get(&format!("/v1/tasks/{id}/{below}")).problem(),
            (410, "HM0009".into()),
            "{below}"
        );
    }
    assert_eq!(served.get(&format!("/v1/tasks/{id}/wait")).status, 200);
    assert_eq!(served.get(&format!("/v1/wait?ids={id},{live}&mode=any")).json()["first"], id);
    served.post(&format!("/v1/tasks/{live}/stop"), "");
}
