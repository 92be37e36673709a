//! A command that is told: once in effect, together where ends come together, through crashes.

use homing_testkit::{Home, freeze, gate, thaw, wait_for};
use serde_json::Value;

fn settled(home: &Home, id: &str, state: &str) -> Value {
    wait_for("the delivery to be settled", || {
        let answer = home.cli(["deliveries", "--task", id, "--json"]).ok().json();
        answer["items"].as_array()?.iter().find(|delivery| delivery["state"] == state).cloned()
    })
}

fn read(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.scratch().join(name)).unwrap_or_default()
}

fn open(home: &Home, name: &str) {
    std::fs::write(home.scratch().join(name), b"").expect("a gate opens");
}

/// A hook that works in the test's folder.
fn hook(home: &Home, line: &str) -> String {
    format!("exec:cd '{}' && {line}", home.scratch().display())
}

#[test]
fn p5_a_command_gets_the_notice_on_its_input_and_the_task_in_its_environment() {
    let home = super::home();
    let hook = hook(
        &home,
        "cat > got; echo \"$HOMING_TASK_ID $HOMING_STATUS $HOMING_EXIT_CODE $HOMING_OWNER\" > env; echo told",
    );
    let id = home.submit(&["--owner", "ann", "--notify", &hook], "echo out; exit 7");
    let delivery = settled(&home, &id, "delivered");
    let got: Value = serde_json::from_str(&read(&home, "got")).expect("JSON");
    let notices = got["notices"].as_array().expect("a list");
    assert_eq!(notices.len(), 1);
    assert_eq!(
        (&notices[0]["task"]["id"], &notices[0]["output_tail"]),
        (&id.as_str().into(), &"out\n".into())
    );
    assert_eq!(read(&home, "env").trim(), format!("{id} failed 7 ann"));
    let run = delivery["hook"].as_str().expect("the command's id").to_owned();
    assert_eq!(home.output(&run), b"told\n", "kept for diagnosis");
    let listed = home.cli(["list", "--all", "--json"]).ok().json();
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "a hook is nobody's task");
    assert_eq!(home.get("/v1/status").json()["tasks"]["finished"], 1);
}

#[test]
fn p6_stopping_what_has_ended_does_not_end_what_tells_of_it() {
    let home = super::home();
    let line = format!("cat > /dev/null; : > begun; {}; echo told >> told", gate("go"));
    let id = home.submit(&["--notify", &hook(&home, &line)], "true");
    wait_for("the command to begin", || home.scratch().join("begun").exists().then_some(()));
    let _ = home.cli(["stop", &id]).ok();
    open(&home, "go");
    let delivery = settled(&home, &id, "delivered");
    assert_eq!((delivery["attempts"].as_u64(), read(&home, "told").as_str()), (Some(1), "told\n"));
}

#[test]
fn p5_a_command_is_told_of_a_task_whose_own_command_is_too_long_for_an_environment() {
    let home = super::home();
    let _ = home.daemon_pid();
    let hook = hook(&home, "cat > got; printf %s \"$HOMING_COMMAND\" > env");
    let argv: Vec<String> =
        std::iter::once("true".to_owned()).chain((0..3).map(|_| "€".repeat(30_000))).collect();
    let spec = serde_json::json!({ "argv": argv, "notify": { "on": "always", "targets": [hook] } });
    let task = home.post("/v1/tasks", &spec).json();
    let delivery = settled(&home, task["id"].as_str().expect("an id"), "delivered");
    assert_eq!(delivery["attempts"], 1);
    let (got, env): (Value, _) =
        (serde_json::from_str(&read(&home, "got")).expect("JSON"), read(&home, "env"));
    let command = got["notices"][0]["task"]["command"].as_str().expect("a command");
    assert_eq!(command, env, "the same on the input and in the environment");
    assert!((4_090..=4_096).contains(&env.len()) && env.ends_with('…'), "{}", env.len());
}

#[test]
fn p5_ends_that_come_together_are_handed_over_together_and_a_busy_command_loses_none() {
    let home = super::home();
    let line = "echo x >> calls; [ $(wc -l < calls) -gt 2 ] || exit 75; cat > got";
    let hook = hook(&home, line);
    let ids: Vec<String> = (0..3).map(|_| home.submit(&["--notify", &hook], &gate("go"))).collect();
    for id in &ids {
        let _ = home.until_status(id, "running");
    }
    // All three end while nobody looks, so that they are seen in one moment: their shims have said so, too.
    let daemon = home.daemon_pid();
    freeze(daemon);
    open(&home, "go");
    let ended = |id: &String| home.path().join("tasks").join(id).join("exit").exists();
    wait_for("all three to end", || ids.iter().all(ended).then_some(()));
    thaw(daemon);
    for id in &ids {
        let delivery = settled(&home, id, "delivered");
        assert_eq!(delivery["attempts"], 1, "busy spent none");
    }
    assert_eq!(read(&home, "calls").lines().count(), 3, "busy, busy, told");
    let got: Value = serde_json::from_str(&read(&home, "got")).expect("JSON");
    let mut told: Vec<_> = got["notices"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|notice| notice["task"]["id"].clone())
        .collect();
    told.sort_by_key(ToString::to_string);
    let mut ids: Vec<Value> = ids.into_iter().map(Value::from).collect();
    ids.sort_by_key(ToString::to_string);
    assert_eq!(told, ids, "three completions in one hand-over");
}

#[test]
fn p5_a_slow_command_is_never_run_twice_at_once_and_what_comes_meanwhile_goes_together() {
    let home = super::home();
    // A folder is made by one at a time; who finds it there says so.
    let line =
        format!("echo x >> calls; mkdir alone || echo two >> wrong; cat >> got; {}; rmdir alone", gate("go"));
    let hook = hook(&home, &line);
    let mut ids = vec![home.submit(&["--notify", &hook], "true")];
    wait_for("the hook to run", || (!read(&home, "calls").is_empty()).then_some(()));
    for _ in 0..5 {
        ids.push(home.submit(&["--notify", &hook], "true"));
    }
    for id in &ids {
        let _ = home.until_status(id, "succeeded");
    }
    // Whoever is told of an end in another way is told by then.
    let other = home
        .submit(&["--notify", &format!("exec:echo > '{}'", home.scratch().join("other").display())], "true");
    let _ = settled(&home, &other, "delivered");
    assert_eq!(read(&home, "calls"), "x\n", "the rest waits for its end");
    open(&home, "go");
    for id in &ids {
        let _ = settled(&home, id, "delivered");
    }
    assert_eq!((read(&home, "calls").lines().count(), read(&home, "wrong").as_str()), (2, ""));
    let got = read(&home, "got");
    assert!(ids.iter().all(|id| got.contains(id.as_str())), "{got}");
}

#[test]
fn p5_a_daemon_killed_while_the_command_runs_neither_loses_nor_doubles_it() {
    let home = super::home();
    let hook = hook(&home, &format!("echo x >> calls; {}", gate("go")));
    let id = home.submit(&["--notify", &hook], "true");
    wait_for("the hook to run", || (!read(&home, "calls").is_empty()).then_some(()));
    home.kill(home.daemon_pid());
    open(&home, "go");
    let _ = settled(&home, &id, "delivered");
    assert_eq!(read(&home, "calls"), "x\n");
}

#[test]
fn p5_a_command_that_fails_is_tried_again_and_says_why() {
    let home = super::home();
    let hook = hook(&home, "echo complaint; [ -e ready ] || exit 3");
    let id = home.submit(&["--notify", &hook], "true");
    let failed = wait_for("the first attempt", || {
        let answer = home.cli(["deliveries", "--task", &id, "--json"]).ok().json();
        answer["items"].as_array()?.iter().find(|delivery| !delivery["history"][0].is_null()).cloned()
    });
    assert_eq!((&failed["state"], &failed["history"][0]["result"]), (&"pending".into(), &"exit 3".into()));
    assert_eq!(home.output(failed["hook"].as_str().expect("an id")), b"complaint\n");
    open(&home, "ready");
    let _ = home.cli(["redeliver", &id]).ok();
    let _ = settled(&home, &id, "delivered");
}

#[test]
fn a_command_runs_in_the_folder_of_its_task_and_a_target_named_twice_is_one() {
    let home = super::home();
    let target = "exec:pwd >> told";
    let id = home.submit(&["--notify", target, "--notify", target, "--notify", "inbox"], "true");
    assert_eq!(home.ended(&id)["notify"]["targets"], serde_json::json!([target, "inbox"]));
    let told = wait_for("the hook", || Some(read(&home, "told")).filter(|told| told.ends_with('\n')));
    assert_eq!(told.trim(), home.scratch().canonicalize().unwrap().to_str().unwrap());
}
