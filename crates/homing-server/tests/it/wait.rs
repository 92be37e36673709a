//! Waiting.

use serde_json::json;

use crate::served::Served;

#[test]
fn an_expired_wait_is_no_error_and_an_end_is_told() {
    let served = Served::start();
    let id = served.run("read line; exit 7", &json!({ "stdin": "pipe" }));
    let early = served.get(&format!("/v1/tasks/{id}/wait?timeout_ms=0"));
    assert_eq!((early.status, &early.json()["outcome"]), (202, &json!(null)));
    let several = served.get(&format!("/v1/wait?ids={id}&timeout_ms=1"));
    assert_eq!((several.status, &several.json()["done"]), (202, &json!(false)));
    let path = format!("/v1/tasks/{id}/wait");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| served.get(&path));
        served.post(&format!("/v1/tasks/{id}/input"), r#"{"eof":true}"#);
        let ended = waiting.join().unwrap();
        assert_eq!((ended.status, &ended.json()["outcome"]["exit_code"]), (200, &json!(7)));
    });
}

#[test]
fn all_or_any_of_several() {
    let served = Served::start();
    let long = served.run("sleep 60", &json!({ "name": "long" }));
    let short = served.run("true", &json!({}));
    let any = served.get(&format!("/v1/wait?ids=long,{short}&mode=any"));
    assert_eq!((any.status, &any.json()["first"]), (200, &json!(short)));
    let ids: Vec<_> = any.json()["items"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
    assert_eq!(ids, [long.as_str(), short.as_str()]);
    served.post(&format!("/v1/tasks/{long}/stop"), "");
    let all = served.get(&format!("/v1/wait?ids={long},{short}"));
    assert_eq!((all.status, &all.json()["done"]), (200, &json!(true)));
    assert_eq!(served.get("/v1/wait").problem(), (422, "HM0003".into()));
    assert_eq!(served.get("/v1/wait?ids=t-2222222222").problem(), (404, "HM0001".into()));
    assert_eq!(served.get("/v1/wait?ids=x&mode=some").problem(), (422, "HM0003".into()));
}

#[test]
fn a_wait_names_up_to_a_thousand_tasks() {
    let served = Served::start();
    let id = served.run_to_end("true");
    let wait = |count| {
        let ids = vec![id.as_str(); count].join("%2C");
        served.get(&format!("/v1/wait?ids={ids}&mode=all&timeout_ms=60000"))
    };
    assert_eq!(wait(1_000).status, 200);
    let refused = wait(1_001);
    assert_eq!(refused.problem(), (422, "HM0003".into()));
    assert!(refused.text().contains("1001 tasks"), "{}", refused.text());
}
