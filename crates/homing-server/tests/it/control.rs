//! Stop, signal, input.

use serde_json::json;

use crate::served::Served;

#[test]
fn a_stop_ends_the_tree_and_a_second_one_says_so() {
    let served = Served::start();
    let id = served.run("sleep 60 & sleep 60", &json!({}));
    let stopped = served.ask(
        "POST",
        &format!("/v1/tasks/{id}/stop"),
        &[("homing-owner", "me")],
        br#"{"wait":true,"grace_ms":2000}"#,
    );
    let answer = stopped.json();
    assert_eq!((stopped.status, &answer["stopping"]), (200, &json!(true)), "{}", stopped.text());
    assert_eq!(
        (&answer["task"]["status"], &answer["task"]["outcome"]["stopped_by"]),
        (&json!("stopped"), &json!("me"))
    );
    let again = served.post(&format!("/v1/tasks/{id}/stop"), "").json();
    assert_eq!((&again["stopping"], &again["task"]["status"]), (&json!(false), &json!("stopped")));
    for body in [r#"{"signal":"NOPE"}"#, r#"{"gracee_ms":1}"#] {
        assert_eq!(served.post(&format!("/v1/tasks/{id}/stop"), body).problem(), (422, "HM0003".into()));
    }
}

#[test]
fn a_signal_reaches_the_task() {
    let served = Served::start();
    let id =
        served.run("trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.05; done", &json!({}));
    let ready = served.get(&format!("/v1/tasks/{id}/output?wait_ms=20000"));
    assert_eq!(ready.text(), "ready\n");
    assert_eq!(served.post(&format!("/v1/tasks/{id}/signal"), r#"{"signal":"SIGUSR1"}"#).status, 200);
    assert_eq!(served.get(&format!("/v1/tasks/{id}/wait")).json()["outcome"]["exit_code"], 5);
    assert_eq!(
        served.post(&format!("/v1/tasks/{id}/signal"), r#"{"signal":"TERM"}"#).problem(),
        (409, "HM0006".into())
    );
    assert_eq!(
        served.post(&format!("/v1/tasks/{id}/signal"), r#"{"signal":"0"}"#).problem(),
        (422, "HM0003".into())
    );
    assert_eq!(served.post(&format!("/v1/tasks/{id}/signal"), "").problem(), (400, "HM0004".into()));
}

#[test]
fn input_is_text_bytes_or_raw() {
    let served = Served::start();
    let id = served.run("cat", &json!({ "stdin": "pipe" }));
    let path = format!("/v1/tasks/{id}/input");
    assert_eq!(served.post(&path, r#"{"text":"a\n"}"#).json()["written"], 2);
    assert_eq!(served.post(&path, r#"{"base64":"Yg=="}"#).json()["written"], 1);
    let raw = [("content-type", "application/octet-stream")];
    assert_eq!(served.ask("POST", &format!("{path}?eof=true"), &raw, b"{c}").json()["written"], 3);
    served.get(&format!("/v1/tasks/{id}/wait"));
    assert_eq!(served.get(&format!("/v1/tasks/{id}/output")).text(), "a\nb{c}");
    assert_eq!(served.post(&path, r#"{"text":"x"}"#).problem(), (409, "HM0006".into()));
    let large = vec![b'x'; (1 << 20) + 1];
    assert_eq!(served.ask("POST", &path, &raw, &large).problem(), (413, "HM0027".into()));
    let deaf = served.run("sleep 60", &json!({}));
    assert_eq!(
        served.post(&format!("/v1/tasks/{deaf}/input"), r#"{"text":"x"}"#).problem(),
        (409, "HM0007".into())
    );
    served.post(&format!("/v1/tasks/{deaf}/stop"), "");
}
