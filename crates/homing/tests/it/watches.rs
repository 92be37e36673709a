//! Lines that were watched for: told at once, told once, whatever dies and however they come.

use homing_testkit::{Home, gate, wait_for};
use serde_json::{Value, json};

use super::home;

/// The notices of one type of a task, by the log.
fn notices(home: &Home, id: &str, kind: &str) -> Vec<Value> {
    let log = home.cli(["events"]).ok().text();
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let of_it = |event: &Value| event["type"] == kind && event["task_id"] == id;
    events.filter(of_it).map(|event| event["data"].clone()).collect()
}

fn matched(home: &Home, id: &str) -> Vec<Value> {
    notices(home, id, "task.matched")
}

fn lines(notices: &[Value]) -> Vec<&str> {
    notices.iter().map(|notice| notice["line"].as_str().expect("a line")).collect()
}

fn until_matched(home: &Home, id: &str, count: usize) -> Vec<Value> {
    wait_for(&format!("{count} matches"), || Some(matched(home, id)).filter(|found| found.len() >= count))
}

/// All that was told, and all that was held back: how much of it is either is a matter of how long it took.
fn counted(end: &Value, told: &[Value]) -> u64 {
    let held = told.iter().map(|notice| 1 + notice["held_back"].as_u64().expect("a number"));
    held.sum::<u64>() + end["held_back"].as_u64().unwrap_or(0)
}

fn completed(home: &Home, id: &str) -> Value {
    let _ = home.ended(id);
    let mut ends = notices(home, id, "task.completed");
    assert_eq!(ends.len(), 1);
    ends.remove(0)
}

#[test]
fn p5_the_first_match_is_told_at_once_to_all_who_are_told_while_the_task_runs() {
    let home = home();
    let hook = format!("exec:cat > '{}/got'", home.scratch().display());
    let options = ["--owner", "ann", "--watch", r"listening on \S+", "--notify", "inbox", "--notify", &hook];
    let line = format!(
        "echo starting; printf '\\033[32mlisten'; sleep 0.1; printf 'ing\\033[0m on localhost:80\\r\\n' >&2; {}",
        gate("go")
    );
    let id = home.submit(&options, &line);
    let told = until_matched(&home, &id, 1);
    assert_eq!((&told[0]["line"], &told[0]["held_back"]), (&"listening on localhost:80".into(), &0.into()));
    assert_eq!(told[0]["pattern"], r"listening on \S+");
    assert_eq!((&told[0]["task"]["id"], &told[0]["task"]["owner"]), (&id.as_str().into(), &"ann".into()));
    let inbox = home.cli(["inbox", "--owner", "ann", "--json"]).ok().json();
    assert_eq!(inbox["items"], json!(told), "the same object");
    let got = wait_for("the hook", || {
        let text = std::fs::read_to_string(home.scratch().join("got")).ok()?;
        serde_json::from_str::<Value>(&text).ok()
    });
    assert_eq!(got["notices"], json!(told), "everywhere");
    let text = home.cli(["inbox", "--owner", "ann"]).ok().text();
    assert!(text.contains("matched listening on") && text.contains("localhost:80"), "{text}");
    let notice = told[0]["id"].as_str().expect("an id");
    home.does(["ack", "--owner", "ann", notice]);
    assert_eq!(home.cli(["inbox", "--owner", "ann", "--json"]).ok().json()["items"], json!([]));
    assert_eq!(home.task(&id)["watch"], json!([r"listening on \S+"]));
    assert!(home.cli(["show", &id]).ok().text().contains("watches for  listening on"));
    home.open("go");
    assert_eq!(completed(&home, &id)["held_back"], Value::Null);
    assert_eq!(matched(&home, &id).len(), 1);
}

#[test]
fn p5_a_thousand_matches_at_once_are_one_notice_and_the_end_says_how_many_more() {
    let home = home();
    let id = home.submit(&["--watch", "^match"], "seq -f 'match %g' 1000; printf 'match without end'");
    let end = completed(&home, &id);
    let told = matched(&home, &id);
    assert_eq!((lines(&told), &told[0]["held_back"]), (vec!["match 1"], &0.into()));
    assert_eq!(end["held_back"], 1_000);
    assert!(told[0]["seq"].as_u64() < end["seq"].as_u64(), "before the end");
}

#[test]
fn p5_a_last_line_without_end_is_told_before_the_end() {
    let home = home();
    for (round, tail) in ["", "\\n", "\\r"].into_iter().enumerate() {
        let id = home.submit(&["--watch", "done$"], &format!("echo one; printf 'all {round} done{tail}'"));
        let end = completed(&home, &id);
        let told = matched(&home, &id);
        assert_eq!(lines(&told), [format!("all {round} done")]);
        assert!(told[0]["seq"].as_u64() < end["seq"].as_u64());
    }
}

#[test]
fn p5_each_pattern_is_told_by_itself_and_never_is_only_logged() {
    let home = home();
    let options = ["--watch", "error", "--watch", "ready", "--notify-on", "never"];
    let id = home.submit(&options, "echo error 1; echo error 2; echo ready; echo both error and ready");
    assert_eq!(completed(&home, &id)["held_back"], 3);
    let told = matched(&home, &id);
    assert_eq!(lines(&told), ["error 1", "ready"]);
    assert_eq!(home.cli(["inbox", "--json"]).ok().json()["items"], json!([]));
}

#[test]
fn binary_output_long_lines_and_half_characters_do_no_harm() {
    let home = home();
    let line = "head -c 300000 /dev/urandom; echo; head -c 200000 /dev/zero | tr '\\0' x; echo; \
                printf 'gr\\303'; sleep 0.05; printf '\\274n \\377 bell\\a\\n'";
    let id = home.submit(&["--watch", "grün"], line);
    let _ = home.ended(&id);
    assert_eq!(lines(&matched(&home, &id)), ["grün \u{fffd} bell\u{2407}"]);
}

#[test]
fn p5_what_the_cap_dropped_is_skipped_and_the_rest_is_judged() {
    let home = home();
    let line = "echo needle first; yes filler | head -c 3000000; echo needle last";
    let id = home.submit(&["--watch", "needle", "--max-output", "128KiB"], line);
    let end = completed(&home, &id);
    assert_eq!(lines(&matched(&home, &id)), ["needle first"]);
    assert_eq!(end["held_back"], 1, "and the last one is counted");
}

#[test]
fn p5_a_match_on_either_side_of_a_killed_daemon_is_told_once() {
    let home = home();
    let options = ["--watch", "one", "--watch", "two", "--watch", "three"];
    let line = format!("echo one; {}; echo two; {}; echo three; printf thr", gate("second"), gate("third"));
    let id = home.submit(&options, &line);
    let _ = until_matched(&home, &id, 1);
    let _ = home.kill_daemon();
    home.open("second");
    let _ = until_matched(&home, &id, 2);
    let _ = home.kill_daemon();
    home.open("third");
    let end = completed(&home, &id);
    assert_eq!(lines(&matched(&home, &id)), ["one", "two", "three"]);
    assert_eq!(end["held_back"], Value::Null);
}

#[test]
fn p5_a_match_while_no_daemon_lives_is_told_once_and_what_was_held_back_is_counted_again() {
    let home = home();
    let line =
        format!("echo match 1; echo match 2; {}; echo match 3; echo other; {}", gate("more"), gate("go"));
    let id = home.submit(&["--watch", "^match", "--watch", "other"], &line);
    let _ = until_matched(&home, &id, 1);
    home.stop_daemon();
    home.open("more");
    wait_for("the output", || {
        let path = home.path().join("tasks").join(&id).join("output.log");
        std::fs::read_to_string(path).ok()?.contains("other").then_some(())
    });
    home.does(["daemon", "start"]);
    wait_for("the other", || lines(&matched(&home, &id)).contains(&"other").then_some(()));
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    home.kill_at_once(&[daemon, keeper]);
    home.open("go");
    let _ = home.next_daemon(daemon);
    assert_eq!(counted(&completed(&home, &id), &matched(&home, &id)), 4, "each is told or counted, once");
}

#[test]
fn p5_a_match_and_the_end_both_while_no_daemon_lives_are_told_in_order() {
    let home = home();
    let id = home.submit(&["--watch", "late"], &format!("{}; echo too late; exit 3", gate("go")));
    let _ = home.until_status(&id, "running");
    home.stop_daemon();
    home.open("go");
    wait_for("everybody to leave", || home.all_processes().is_empty().then_some(()));
    home.does(["daemon", "start"]);
    let end = completed(&home, &id);
    let told = matched(&home, &id);
    assert_eq!((lines(&told), &end["status"]), (vec!["too late"], &"failed".into()));
    assert!(told[0]["seq"].as_u64() < end["seq"].as_u64());
}

#[test]
fn p5_kills_at_random_moments_neither_lose_nor_double_a_match() {
    let home = home();
    let line = "for i in $(seq 60); do echo match $i; sleep 0.02; done; echo unique";
    let id = home.submit(&["--watch", "^match", "--watch", "^unique$"], line);
    let mut old = 0;
    for pause in [90, 130, 40, 170] {
        let pid = home.next_daemon(old);
        homing_testkit::drift(std::time::Duration::from_millis(pause));
        home.kill_at_once(&[pid]);
        old = pid;
    }
    let end = completed(&home, &id);
    let told = matched(&home, &id);
    let of = |pattern: &str| told.iter().filter(|notice| notice["pattern"] == pattern).count();
    assert!(of("^match") >= 1 && of("^unique$") == 1, "{told:?}");
    assert_eq!(counted(&end, &told), 61, "every match is told or counted, once: {told:?}");
}

#[test]
fn a_task_that_prints_without_end_leaves_the_daemon_to_others() {
    let home = home();
    let id = home.submit(&["--watch", "never there", "--max-output", "1MiB"], "yes filler");
    let _ = home.until_status(&id, "running");
    for _ in 0..5 {
        let other = home.submit(&["--watch", "hello"], "echo hello");
        assert_eq!(home.ended(&other)["status"], "succeeded");
        assert_eq!(matched(&home, &other).len(), 1);
    }
    home.does(["stop", &id]);
    assert_eq!(matched(&home, &id), Vec::<Value>::new());
}

#[test]
fn p5_too_many_matches_over_all_tasks_pause_all_watches_and_one_event_says_so() {
    let home = home();
    let line = |n: usize| format!("{}; echo hit {n}", gate("go"));
    let ids: Vec<String> = (0..20).map(|n| home.submit(&["--watch", "hit"], &line(n))).collect();
    for id in &ids {
        let _ = home.until_status(id, "running");
    }
    home.open("go");
    let ends: Vec<Value> = ids.iter().map(|id| completed(&home, id)).collect();
    let told: usize = ids.iter().map(|id| matched(&home, id).len()).sum();
    let held: u64 = ends.iter().filter_map(|end| end["held_back"].as_u64()).sum();
    assert_eq!((told, held), (15, 5), "each is told or counted");
    let log = home.cli(["events"]).ok().text();
    let paused: Vec<_> = log.lines().filter(|line| line.contains("watch.paused")).collect();
    assert_eq!(paused.len(), 1, "{paused:?}");
    assert!(paused[0].contains("until"));
}

#[test]
fn a_pattern_that_is_none_is_refused_with_its_place_and_nothing_is_started() {
    let home = home();
    home.does(["daemon", "start"]);
    let refused = home.cli(["run", "--watch", "fine", "--watch", "a(b", "-c", "echo run >> ran"]);
    assert!(
        refused.code != 0 && refused.stderr.contains("unclosed group, at character 2"),
        "{}",
        refused.stderr
    );
    let large = home.cli(["run", "--watch", r"(\w{100}){100}", "true"]);
    assert!(large.code != 0 && large.stderr.contains("too large"), "{}", large.stderr);
    let posted = home.post("/v1/tasks", &json!({ "argv": ["true"], "watch": ["*"] }));
    assert_eq!((posted.status, &posted.json()["code"]), (422, &"HM0003".into()));
    assert!(posted.json()["detail"].as_str().unwrap().contains("at character 1"), "{}", posted.json());
    let one = home.post("/v1/tasks", &json!({ "shell": "echo ready", "watch": "ready" })).json();
    let id = one["id"].as_str().unwrap();
    let _ = home.ended(id);
    assert_eq!((home.truth("ran"), matched(&home, id).len()), (String::new(), 1));
}

#[test]
fn p5_output_that_cannot_be_read_keeps_no_task_from_ending() {
    let home = home();
    let id = home.submit(&["--watch", "x"], &format!("echo y; {}; echo x", gate("go")));
    let _ = home.until_status(&id, "running");
    wait_for("the output", || (home.output(&id) == b"y\n").then_some(()));
    let folder = home.path().join("tasks").join(&id);
    std::fs::remove_file(folder.join("output.log")).unwrap();
    std::fs::create_dir(folder.join("output.log")).unwrap();
    home.open("go");
    assert_eq!(home.ended(&id)["status"], "succeeded");
}
