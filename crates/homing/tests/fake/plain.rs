//! Commands that ask once and answer.

use homing_api::{Code, Problem};

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
async fn the_last_lines_of_one_stream_are_counted_in_it_and_say_where_they_are() {
    let home = tempfile::tempdir().unwrap();
    let text = b"e1\ne2\ne3\no1\no2\no3\n";
    let _fake = Fake::serve(home.path(), move |request| {
        if request.target.contains("/output/index") {
            let span = |offset: u32, stream: &str| serde_json::json!({ "offset": offset, "stream": stream, "at": "2026-01-01T00:00:00.000Z" });
            let spans = serde_json::json!({ "spans": [span(0, "stderr"), span(9, "stdout")] });
            return Reply::json(200, spans.to_string());
        }
        if request.target.contains("/output") && request.target.contains("stream=stderr") {
            let from = parameter(request, "offset").unwrap_or(0);
            let reply = Reply::bytes(200, &text[from.min(9)..9]).header("Homing-Offset", from);
            return reply.header("Homing-End", text.len()).header("Homing-Complete", "true");
        }
        one_task("succeeded", Some(0), text)(request)
    });
    let ran = run(home.path(), &["output", "--stderr", "-n", "2", "x"]).await;
    assert_eq!(ran.stdout, "e2\ne3\n");
    let ran = run(home.path(), &["output", "-t", "--stderr", "-n", "2", "x"]).await;
    assert_eq!(ran.stdout, "2026-01-01T00:00:00.000Z e2\n2026-01-01T00:00:00.000Z e3\n");
    let ran = run(home.path(), &["output", "--json", "--stderr", "-n", "2", "x"]).await;
    let expected = "{\"type\":\"output\",\"offset\":3,\"bytes\":6,\"text\":\"e2\\ne3\\n\"}\n\
                    {\"type\":\"end\",\"offset\":18,\"complete\":true}\n";
    assert_eq!(ran.stdout, expected);
    let ran = run(home.path(), &["output", "--json", "-t", "x"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("`--timestamps` would be lost"), "{}", ran.stderr);
}

#[tokio::test]
async fn what_is_piped_in_and_not_taken_is_an_error_that_says_how_much_was() {
    let home = tempfile::tempdir().unwrap();
    for code in [Code::NoInput, Code::TaskEnded] {
        let _fake = Fake::serve(home.path(), move |request| match request.is("POST", "/v1/tasks/") {
            true => Reply::problem(&Problem::new(code, "it takes none")),
            false => one_task("running", None, b"")(request),
        });
        for (words, input) in [
            (&["input", "job"][..], &b"hi\n"[..]),
            (&["input", "job", "--eof"], b"hi\n"),
            (&["input", "job", "--eof"], b""),
        ] {
            let ran = run_with(home.path(), words, input).await;
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{words:?}: {ran:?}");
            assert!(
                ran.stderr.starts_with(&format!("homing: it takes none ({})", code.code())),
                "{}",
                ran.stderr
            );
        }
    }
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let _fake = Fake::serve(home.path(), move |request| match request.is("POST", "/v1/tasks/") {
        true if asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 => {
            Reply::json(200, "{\"written\":3}")
        }
        true => Reply::problem(&Problem::new(Code::TaskEnded, "it is over")),
        false => one_task("running", None, b"")(request),
    });
    let ran = run_with(home.path(), &["input", "job"], b"abcdef").await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.starts_with("homing: the task took only 3 bytes of the input: it is over (HM0006)"),
        "{ran:?}"
    );
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
        (&["run"], 2),
        (&["run", "--wait"], 125),
        (&["exec", "--timeout", "soon", "--", "x"], 125),
        (&["wait"], 125),
        (&["run", "--", "echo a | wc"], 2),
        (&["run", "--follow", "--", "echo a | wc"], 125),
        (&["ask", "--nope"], 2),
        (&["explain", "HM9999"], 2),
    ] {
        let ran = run(home.path(), words).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{words:?}");
        // Without any word the whole help is the next step.
        let told = if words.is_empty() { "Begin with:" } else { "\n  next: " };
        assert!(ran.stderr.contains(told), "{words:?}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn a_home_that_cannot_be_one_is_told_with_the_way_out_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let (file, open) = (folder.path().join("file"), folder.path().join("open"));
    std::fs::write(&file, "").unwrap();
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (home, says, next) in [
        (
            &file,
            "is a file, not a real folder (HM0018)",
            "next: HOMING_HOME or `--home DIR` chooses another.",
        ),
        (&open, "is open to other users (mode 0755) (HM0018)", "next: `chmod 700 /"),
        (&file.join("below"), "cannot be used: Not a directory", "next: HOMING_HOME or `--home DIR`"),
    ] {
        for (words, code) in [
            (&["run", "--", "true"][..], 1),
            (&["run", "--wait", "--", "true"], 125),
            (&["wait", "x"], 125),
            (&["list"], 1),
            (&["show", "x"], 1),
            (&["status"], 1),
            (&["daemon", "start"], 1),
        ] {
            let ran = run(home, words).await;
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{words:?}: {ran:?}");
            assert!(ran.stderr.contains(says) && ran.stderr.contains(next), "{words:?}: {}", ran.stderr);
        }
        let ran = run(home, &["daemon", "status"]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "not running, and cannot run in this home\n"));
        assert!(ran.stderr.contains(says) && ran.stderr.contains(next), "{}", ran.stderr);
        let ran = run(home, &["doctor"]).await;
        assert!(ran.code == Some(1) && ran.stdout.contains(next), "{ran:?}");
    }
    assert_eq!(std::fs::read_dir(&open).unwrap().count(), 0);
}

#[tokio::test]
async fn a_relative_home_is_found_from_the_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("h");
    std::fs::create_dir(&home).unwrap();
    let _fake = Fake::serve(&home, one_task("succeeded", Some(0), b"out\n"));
    let mut command = homing(Path::new("h"), &["output", "x"]);
    command.current_dir(folder.path());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"out\n"[..], Some(0)));
}

#[tokio::test]
async fn starting_with_a_broken_configuration_is_told() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), |_| {
        let status = serde_json::json!({
            "daemon": { "pid": 7, "version": "0.1.0", "started_at": "2026-01-01T00:00:00.000Z", "home": "/h" },
            "tasks": { "queued": 0, "running": 0, "finished": 0 },
            "reconcile": { "interval_ms": 10000, "last_duration_ms": 0, "passes": 0, "adopted": 0, "repaired": 0,
                           "errors": [] },
            "deliveries": { "pending": 0, "dead": 0 }
        });
        Reply::json(200, status.to_string())
    });
    let ran = run(home.path(), &["daemon", "start"]).await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("already runs, pid 7\n", ""));
    std::fs::write(home.path().join("config.toml"), "[output]\nmaxi = 1\n").unwrap();
    let ran = run(home.path(), &["daemon", "start"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "already runs, pid 7\n"));
    let told = "homing: the configuration is broken, the last good one is in force: ";
    assert!(ran.stderr.starts_with(told), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("config.toml, line 2") && ran.stderr.contains("(HM0022)\n  next: "),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn stopping_an_ended_task_tells_of_what_it_had_left_behind() {
    let home = tempfile::tempdir().unwrap();
    let mut left = Command::new("sleep").arg("600").env("HOMING_TASK_ID", "t-bcdfghjkmn").spawn().unwrap();
    let mut task = sample_task("succeeded");
    task["outcome"]["survivors"] = serde_json::json!([{ "pid": left.id(), "name": "sh" }]);
    let _fake = Fake::serve(home.path(), move |request| {
        let stopped = serde_json::json!({ "stopping": false, "task": task });
        Reply::json(200, if request.is("POST", "/v1/tasks") { stopped } else { task.clone() }.to_string())
    });
    let shown = run(home.path(), &["show", "x"]).await;
    let pid = left.id();
    assert!(
        shown.stdout.contains(&format!("left behind  sleep (pid {pid}, still runs)\n")),
        "{}",
        shown.stdout
    );
    let told = run(home.path(), &["stop", "x"]).await;
    let ended = "t-bcdfghjkmn had already ended: succeeded";
    assert_eq!(told.stdout, format!("{ended}; 1 left-over process was told to end\n"));
    left.kill().unwrap();
    left.wait().unwrap();
    assert_eq!(run(home.path(), &["stop", "x"]).await.stdout, format!("{ended}\n"));
    let shown = run(home.path(), &["show", "x"]).await;
    assert!(
        shown.stdout.contains(&format!("left behind  sh (pid {pid}, gone by now)\n")),
        "{}",
        shown.stdout
    );
}

#[tokio::test]
async fn looking_at_the_daemon_starts_none() {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let ran = run(home.path(), &["daemon", "status"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    assert_eq!(ran.stdout, "not running; the next command that needs it starts it\n");
    let ran = run(home.path(), &["doctor", "--json"]).await;
    assert!(ran.stdout.contains("not running"), "{ran:?}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    std::fs::write(home.path().join("stopped"), "").unwrap();
    let ran = run(home.path(), &["daemon", "status"]).await;
    assert!(ran.stdout.contains("the next command that needs it starts it again"), "{ran:?}");
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

#[tokio::test]
async fn bytes_that_were_not_kept_at_the_very_end_are_told_of_without_following() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), |request| {
        if !request.target.contains("/output") {
            return Reply::json(200, sample_task("succeeded").to_string());
        }
        // Four bytes are kept and ten behind them are not.
        let reply = |bytes: &[u8], from: usize, to: usize| {
            Reply::bytes(200, bytes)
                .header("Homing-Offset", from)
                .header("Homing-End", to)
                .header("Homing-Dropped", 10)
        };
        match parameter(request, "offset") {
            None => reply(b"\n", 3, 4).header("Homing-Complete", "true"),
            Some(from @ 0..=3) => reply(&b"out\n"[from..], from, 4),
            Some(asked) => {
                reply(b"", 14, 14).header("Homing-Gap", 14 - asked).header("Homing-Complete", "true")
            }
        }
    });
    for words in [&["output", "x"][..], &["output", "--tail", "1", "x"], &["output", "-f", "x"]] {
        let ran = run(home.path(), words).await;
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.as_str()),
            ("out\n", "[… 10 B not kept …]\n"),
            "{words:?}"
        );
    }
    let ran = run(home.path(), &["output", "--json", "x"]).await;
    let rest =
        "{\"type\":\"gap\",\"offset\":4,\"bytes\":10}\n{\"type\":\"end\",\"offset\":14,\"complete\":true}\n";
    assert!(ran.stdout.ends_with(rest), "{}", ran.stdout);
}

#[tokio::test]
async fn a_screenful_is_not_taken_for_everything() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), |request| {
        let limit = parameter(request, "limit").unwrap_or(100);
        let next = (limit < 30).then_some("more");
        let items = vec![sample_task("running"); limit.min(30)];
        Reply::json(200, serde_json::json!({ "items": items, "next_cursor": next }).to_string())
    });
    let told =
        "homing: only the first 20 are shown; `homing list --all` shows the rest, `--limit N` as many\n";
    let ran = run(home.path(), &["list"]).await;
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (21, told));
    let ran = run(home.path(), &["list", "--json"]).await;
    let page: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((page["next_cursor"].as_str(), ran.stderr.as_str()), (Some("more"), told));
    for words in [&["list", "--limit", "5"][..], &["list", "--all"], &["list", "--limit", "5", "--json"]] {
        assert_eq!(run(home.path(), words).await.stderr, "", "{words:?}");
    }
}

#[tokio::test]
async fn a_folder_in_the_place_of_the_socket_is_told_with_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::create_dir(home.path().join("homing.sock")).unwrap();
    for words in [&["run", "--", "true"][..], &["list"], &["daemon", "start"]] {
        let ran = run(home.path(), words).await;
        let told = "homing.sock is a folder, where the daemon's socket should be (HM0013)\n  next: Move it away: `mv ";
        assert!(ran.stderr.contains(told), "{words:?}: {ran:?}");
    }
    let ran = run(home.path(), &["doctor"]).await;
    assert!(ran.code == Some(1) && ran.stdout.contains("is a folder, where"), "{ran:?}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "nothing was started");
}

#[tokio::test]
async fn a_task_that_can_hardly_start_is_told_at_once_and_submitted_all_the_same() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), one_task("running", None, b""));
    let plain = home.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let plain = plain.to_str().unwrap();
    let next = "`homing wait t-bcdfghjkmn` says whether it did";
    for (words, says) in [
        (&["run", "--", "no-such-program", "x"][..], "`no-such-program` is not in PATH"),
        (&["run", "--", "./no/such"], "./no/such is not there"),
        (&["run", "--", plain], "is not executable"),
        (&["run", "--", "/tmp"], "/tmp is a folder"),
        (&["run", "--cwd", "/no/such", "-c", "true"], "the folder /no/such is not there"),
        (&["run", "--cwd", plain, "--", "true"], "is not a folder"),
        (&["run", "--stdin", "/no/such", "--", "cat"], "the input /no/such is not there"),
    ] {
        let ran = run(home.path(), words).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "t-bcdfghjkmn\n"), "{words:?}");
        assert!(ran.stderr.starts_with("homing: it will probably not start: "), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says) && ran.stderr.contains(next), "{words:?}: {}", ran.stderr);
    }
    for words in [&["run", "--", "true"][..], &["run", "-c", "no-such-program"], &["run", "--", "/bin/sh"]] {
        assert_eq!(run(home.path(), words).await.stderr, "", "{words:?}");
    }
}

#[tokio::test]
async fn habits_are_known_in_options_and_in_help_too() {
    let home = tempfile::tempdir().unwrap();
    let _fake = Fake::serve(home.path(), one_task("succeeded", Some(0), b"a\nb\n"));
    assert_eq!(run(home.path(), &["logs", "-n", "1", "x"]).await.stdout, "b\n");
    let ran = run(home.path(), &["help", "kill"]).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("next: Did you mean `homing stop`?"), "{ran:?}");
}
