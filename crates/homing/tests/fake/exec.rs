//! `exec` and what it shares with `run`: live output, signals, stdin, the background.

use super::*;

#[tokio::test]
async fn exec_shows_each_stream_where_it_belongs_and_returns_the_code() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), one_task("failed", Some(7), b"out\nerr\n"));
    let ran = run(home.path(), &["exec", "--", "sh", "-c", "whatever"]).await;
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(7), "out\n", "err\n"));
}

#[tokio::test]
async fn exec_past_its_time_goes_to_the_background() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::serve(home.path(), |request| match request.target.contains("/output?") {
        true if parameter(request, "offset") == Some(4) => Reply::silence(),
        _ => one_task("running", None, b"out\n")(request),
    });
    let ran = run(home.path(), &["exec", "--bg-after", "200ms", "--", "sleep", "100"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(123), "out\n"));
    assert!(ran.stderr.contains("homing output -f t-bcdfghjkmn --offset 4"), "{}", ran.stderr);
    assert!(fake.requests().iter().all(|request| !request.target.contains("/stop")));
}

#[tokio::test]
async fn exec_with_json_past_its_time_gives_the_task_that_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), |request| match request.target.contains("/output?") {
        true => Reply::silence(),
        false => one_task("running", None, b"")(request),
    });
    let ran = run(home.path(), &["exec", "--json", "--bg-after", "200ms", "--", "sleep", "100"]).await;
    let task: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, task["status"].as_str()), (Some(123), Some("running")));
    assert_eq!(task["id"], "t-bcdfghjkmn");
    assert!(ran.stderr.contains("homing: t-bcdfghjkmn goes on in the background"), "{}", ran.stderr);
}

#[tokio::test]
async fn exec_with_json_keeps_stdout_for_the_task() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), one_task("succeeded", Some(0), b"out\n"));
    let ran = run(home.path(), &["exec", "--json", "--", "true"]).await;
    let task: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, task["status"].as_str()), (Some(0), Some("succeeded")));
    assert_eq!(ran.stderr, "out\n");
}

#[tokio::test]
async fn an_end_that_the_code_does_not_explain_is_told() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), one_task("lost", None, b""));
    let ran = run(home.path(), &["exec", "--", "true"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(121), "homing: t-bcdfghjkmn lost\n"));
}

#[tokio::test]
async fn ctrl_c_goes_to_the_task_and_a_second_one_stops_it() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::serve(home.path(), |request| {
        if request.is("POST", "/v1/tasks/t-bcdfghjkmn/signal") {
            return Reply::json(200, sample_task("running").to_string());
        }
        if request.is("POST", "/v1/tasks/t-bcdfghjkmn/stop") {
            return Reply::json(
                200,
                serde_json::json!({ "stopping": true, "task": sample_task("stopping") }).to_string(),
            );
        }
        if request.target.contains("/output?") {
            Reply::silence()
        } else {
            one_task("running", None, b"")(request)
        }
    });
    let mut child =
        homing(home.path(), &["exec", "--", "sleep", "100"]).stderr(Stdio::null()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let asked = async |what: &str| {
        for _ in 0..1_000 {
            if fake.requests().iter().any(|request| request.target.contains(what)) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("{what} was never asked: {:?}", fake.requests());
    };
    asked("/output").await;
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    asked("/signal").await;
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    asked("/stop").await;
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let code = tokio::task::spawn_blocking(move || child.wait().unwrap().code()).await.unwrap();
    assert_eq!(code, Some(130));
    let bodies: Vec<_> = fake
        .requests()
        .iter()
        .filter(|request| request.target.contains("/signal"))
        .map(|request| String::from_utf8_lossy(&request.body).into_owned())
        .collect();
    assert_eq!(bodies, [r#"{"signal":"INT"}"#]);
}

#[tokio::test]
async fn stdin_is_passed_on_and_then_closed() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::serve(home.path(), one_task("running", None, b""));
    let ran = run_with(home.path(), &["run", "--stdin", "-", "--", "cat"], b"hello").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "t-bcdfghjkmn\n"));
    let requests = fake.requests();
    let inputs: Vec<_> = requests
        .iter()
        .filter(|request| request.target.contains("/input"))
        .map(|request| (request.target.split_once("piece=").unwrap(), request.body.as_slice()))
        .collect();
    let [((first, one), hello), ((last, two), nothing)] = inputs.as_slice() else { panic!("{inputs:?}") };
    assert_eq!((*first, *hello), ("/v1/tasks/t-bcdfghjkmn/input?", &b"hello"[..]));
    assert_eq!((*last, *nothing), ("/v1/tasks/t-bcdfghjkmn/input?eof=true&", &b""[..]));
    assert_ne!(one, two, "each piece has its own number");
}
