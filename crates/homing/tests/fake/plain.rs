//! Commands that ask once and answer.

use homing_model::{Code, Problem};

use super::*;

#[tokio::test]
async fn run_prints_the_id_and_sends_what_the_task_needs() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::serve(home.path(), one_task("running", None, b""));
    let ran = run(home.path(), &["run", "--name", "n", "--owner", "me", "--", "true"]).await;
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "t-bcdfghjkmn\n", ""));
    let request = &fake.requests()[0];
    assert_eq!(request.header("homing-owner"), Some("me"));
    assert_eq!(request.header("idempotency-key").map(str::len), Some(32));
    let spec: homing_model::Spec = serde_json::from_slice(&request.body).unwrap();
    assert_eq!((spec.name.as_deref(), spec.argv.len(), spec.rlimits.len()), (Some("n"), 1, 16));
    assert!(!spec.env.unwrap().contains_key("HOMING_HOME"));
}

#[tokio::test]
async fn output_comes_as_it_is_where_a_program_reads_it() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), one_task("succeeded", Some(0), b"a\x1b[2J\r\nb"));
    assert_eq!(run(home.path(), &["output", "x"]).await.stdout, "a\x1b[2J\r\nb");
    assert_eq!(run(home.path(), &["output", "-f", "x"]).await.stdout, "a\x1b[2J\r\nb");
    assert_eq!(run(home.path(), &["output", "--tail", "1", "x"]).await.stdout, "b");
    assert_eq!(run(home.path(), &["output", "--offset", "7", "x"]).await.stdout, "b");
}

#[tokio::test]
async fn output_with_times_and_of_one_stream() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), one_task("succeeded", Some(0), b"out\nerr\n"));
    let ran = run(home.path(), &["logs", "-t", "x"]).await;
    assert_eq!(ran.stdout, "2026-01-01T00:00:00.000Z out\n2026-01-01T00:00:00.000Z err\n");
    let ran = run(home.path(), &["output", "-t", "--stderr", "x"]).await;
    assert_eq!(ran.stdout, "2026-01-01T00:00:00.000Z err\n");
    let ran = run(home.path(), &["output", "--json", "x"]).await;
    let expected = "{\"type\":\"output\",\"offset\":0,\"bytes\":8,\"text\":\"out\\nerr\\n\"}\n\
                    {\"type\":\"end\",\"offset\":8,\"complete\":true}\n";
    assert_eq!(ran.stdout, expected);
}

#[tokio::test]
async fn problems_are_a_sentence_a_code_and_a_next_step() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), |_| {
        Reply::problem(&Problem::new(Code::UnknownTask, "there is no task `x`"))
    });
    let expected = format!("homing: there is no task `x` (HM0001)\n  next: {}\n", Code::UnknownTask.advice());
    for (words, code) in
        [(&["show", "x"][..], 4), (&["stop", "x", "y"], 4), (&["forget", "x"], 4), (&["wait", "x"], 125)]
    {
        let ran = run(home.path(), words).await;
        assert_eq!(ran.code, Some(code), "{words:?}");
        assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

#[tokio::test]
async fn usage_is_2_and_125_where_the_code_is_a_task_s() {
    let home = tempfile::tempdir().unwrap();
    for (words, code) in [
        (&["list", "--nope"][..], 2),
        (&["nope"], 2),
        (&[], 2),
        (&["run"], 125),
        (&["exec", "--timeout", "soon", "--", "x"], 125),
        (&["wait"], 125),
        (&["run", "--", "echo a | wc"], 125),
        (&["explain", "HM9999"], 2),
    ] {
        let ran = run(home.path(), words).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{words:?}");
        assert!(!ran.stderr.is_empty());
    }
}

#[tokio::test]
async fn looking_at_the_daemon_starts_none() {
    let home = tempfile::tempdir().unwrap();
    let ran = run(home.path(), &["daemon", "status"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    let ran = run(home.path(), &["doctor", "--json"]).await;
    assert!(ran.stdout.contains("not running"), "{ran:?}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn completions_name_tasks_of_a_daemon_that_runs() {
    let home = tempfile::tempdir().unwrap();
    let complete = |home: &Path| {
        let mut command = homing(home, &["--", "homing", "show", "t-"]);
        command.env("HOMING_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2");
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    let none = complete(home.path()).await.unwrap();
    assert_eq!((none.stderr.as_slice(), none.status.success()), (&b""[..], true));
    let _fake = Fake::serve(home.path(), |_| {
        Reply::json(
            200,
            serde_json::json!({ "items": [sample_task("running")], "next_cursor": null }).to_string(),
        )
    });
    let some = complete(home.path()).await.unwrap();
    assert!(String::from_utf8_lossy(&some.stdout).contains("t-bcdfghjkmn"), "{some:?}");
}
