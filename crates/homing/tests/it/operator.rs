//! What the operator of a home lets notices do, whatever a task asks for.

use std::process::{Command, Stdio};

use homing_testkit::{Home, Receiver, Script, wait_for};
use serde_json::Value;

/// Puts a configuration in force.
fn configure(home: &Home, text: &str) {
    let _ = home.daemon_pid();
    std::fs::write(home.path().join("config.toml"), text).expect("the home is there");
    let _ = home.cli(["daemon", "restart"]).ok();
}

fn delivery(home: &Home, id: &str) -> Value {
    home.cli(["deliveries", "--task", id, "--json"]).ok().json()["items"][0].clone()
}

#[test]
fn a_target_that_the_operator_forbids_is_refused_with_what_is_left() {
    let home = super::home();
    configure(&home, "[notify]\nforbid = [\"exec\", \"desktop\"]\n");
    let refused = home.cli(["run", "--notify", "exec:true", "--", "true"]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("forbids targets of the kind `exec`") && refused.stderr.contains("HM0035"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("use `inbox`, `webhook`"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("[webhook] allow"), "the advice fits: {}", refused.stderr);
    assert_eq!(home.cli(["list", "--all", "--json"]).ok().json()["items"], serde_json::json!([]));
    let shown = home.cli(["config"]).ok().text();
    assert!(shown.contains("forbid") && shown.contains("[notify]") && shown.contains("per_hour"), "{shown}");
    let id = home.submit(&[], "true");
    assert_eq!(home.ended(&id)["status"], "succeeded", "the inbox is always open");
}

#[test]
fn what_was_accepted_before_does_not_go_where_it_is_forbidden_by_now() {
    let home = super::home();
    // Nobody comes again by themselves.
    let later = Script::status(500).header("retry-after", "86400");
    let receiver = Receiver::new([later, Script::status(204)]);
    let url = format!("http://127.0.0.1:{}/", receiver.port());
    let id = home.submit(&["--notify", &url], "true");
    wait_for("the first attempt", || (delivery(&home, &id)["attempts"] == 1).then_some(()));
    let later = home.submit(&["--notify", &url, "--stdin", "pipe"], "read line");
    configure(&home, "[notify]\nallow = [\"inbox\", \"exec\"]\n");
    let dead = wait_for("the delivery to be given up", || {
        Some(delivery(&home, &id)).filter(|delivery| delivery["state"] == "dead")
    });
    assert!(dead["reason"].as_str().is_some_and(|why| why.contains("`webhook` by now")), "{dead}");
    assert_eq!(dead["history"].as_array().map(Vec::len), Some(1), "its history stays");
    let _ = home.cli(["input", &later, "go", "--enter"]).ok();
    let _ = home.ended(&later);
    wait_for("one that came later to be given up too", || {
        (delivery(&home, &later)["state"] == "dead").then_some(())
    });
    assert_eq!(receiver.requests().len(), 1, "nothing went out");
    let refused = home.cli(["redeliver", "dead"]);
    assert!(refused.code == 1 && refused.stderr.contains(" and 1 more are not sent again"), "{refused:?}");
    configure(&home, "");
    let _ = home.cli(["redeliver", "dead"]).ok();
    for id in [&id, &later] {
        wait_for("it to go out once that is allowed", || {
            (delivery(&home, id)["state"] == "delivered").then_some(())
        });
    }
}

#[test]
fn what_was_delivered_is_not_sent_again_where_it_is_forbidden_by_now_and_nothing_of_it_is_lost() {
    let home = super::home();
    let receiver = Receiver::new([Script::status(204)]);
    let url = format!("http://127.0.0.1:{}/", receiver.port());
    let id = home.submit(&["--notify", &url, "--notify", "exec:true"], "true");
    let all = || home.cli(["deliveries", "--task", &id, "--json"]).ok().json()["items"].clone();
    let delivered = |row: &Value| row["state"] == "delivered";
    wait_for("both to be delivered", || {
        all().as_array().is_some_and(|rows| rows.len() == 2 && rows.iter().all(delivered)).then_some(())
    });
    let webhook = || {
        let rows = all();
        rows.as_array().and_then(|rows| rows.iter().find(|row| row["target"] == url.as_str())).cloned()
    };
    configure(&home, "[notify]\nforbid = [\"webhook\"]\n");
    let before = webhook().expect("it is listed");
    let refused = home.cli(["redeliver", before["id"].as_str().expect("an id")]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("stays as it is") && refused.stderr.contains("[notify]"),
        "{}",
        refused.stderr
    );
    let some = home.cli(["redeliver", &id]);
    assert_eq!(some.code, 1, "not all of it was done");
    assert!(some.text().contains("goes out again") && some.stderr.contains("`webhook`"), "{some:?}");
    wait_for("the command to be told again", || {
        let rows = all();
        rows.as_array()?.iter().any(|row| row["attempts"] == 2 && delivered(row)).then_some(())
    });
    assert_eq!(webhook(), Some(before));
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn an_operator_can_have_told_less_than_a_task_asks_for() {
    let home = super::home();
    let early = home.submit(&["--stdin", "pipe"], "read line");
    configure(&home, "[notify]\non = \"failure\"\n");
    let _ = home.cli(["input", &early, "go", "--enter"]).ok();
    let asked = home.cli(["run", "--notify-on", "always", "--", "true"]).ok();
    assert!(asked.stderr.contains("only a failure is told: `[notify] on`"), "{}", asked.stderr);
    let as_is = home.cli(["run", "--notify-on", "failure", "--", "true"]).ok();
    assert!(!as_is.stderr.contains("[notify]"), "{}", as_is.stderr);
    let well = asked.text().trim().to_owned();
    let ill = home.submit(&[], "exit 3");
    for id in [&early, &well, &ill] {
        let _ = home.ended(id);
    }
    assert_eq!(home.task(&well)["notify"]["on"], "failure");
    let told = home.cli(["inbox", "--json"]).ok().json();
    let told: Vec<_> =
        told["items"].as_array().expect("a list").iter().map(|n| n["task"]["id"].clone()).collect();
    assert_eq!(told, [Value::from(ill)]);
}

#[test]
fn what_others_end_and_what_still_runs_is_told_no_more_than_the_operator_lets_it() {
    let home = super::home();
    let track = || home.cli(["track", "--notify-on", "always"]).ok().text();
    let mut foreign = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it runs");
    let pid = foreign.id().to_string();
    let lost = home.cli(["track", "--notify-on", "always", "--pid", &pid]).ok().text();
    let (completed, stopped) = (track(), track());
    let watched = home.submit(&["--stdin", "pipe", "--watch", "ready"], "read line; echo ready; sleep 1000");
    configure(&home, "[notify]\non = \"never\"\n");
    let _ = home.cli(["complete", &completed]).ok();
    let _ = home.cli(["stop", &stopped]).ok();
    foreign.wait().expect("it ends with its input");
    let _ = home.cli(["input", &watched, "go", "--enter"]).ok();
    wait_for("the match to be in the log", || {
        let log = home.cli(["events"]).ok().text();
        log.contains("task.matched").then_some(())
    });
    for id in [&completed, &stopped, &lost] {
        let _ = home.ended(id);
    }
    assert_eq!(home.task(&lost)["status"], "lost");
    assert_eq!(home.cli(["inbox", "--json"]).ok().json()["items"], serde_json::json!([]));
}
