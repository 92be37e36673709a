//! What waits for an owner: there once the task has ended, until somebody says that it is dealt with.

use homing_testkit::{Home, wait_for};
use serde_json::{Value, json};

fn items(home: &Home, owner: &str) -> Vec<Value> {
    let answer = home.cli(["inbox", "--owner", owner, "--json"]).ok().json();
    answer["items"].as_array().cloned().unwrap_or_default()
}

fn tasks(items: &[Value]) -> Vec<&str> {
    items.iter().filter_map(|item| item["task"]["id"].as_str()).collect()
}

#[test]
fn p6_a_result_waits_until_it_is_acknowledged_and_looking_changes_nothing() {
    let home = super::home();
    let first = home.submit(&["--owner", "ann"], "echo one; exit 3");
    let second = home.submit(&["--owner", "ann", "--stdin", "pipe"], "read line");
    let _ = home.ended(&first);
    for _ in 0..3 {
        assert_eq!(tasks(&items(&home, "ann")), [first.as_str()], "the running one stays where it is");
    }
    let notice = &items(&home, "ann")[0];
    assert_eq!((&notice["type"], &notice["status"]), (&"task.completed".into(), &"failed".into()));
    assert_eq!((&notice["outcome"]["exit_code"], &notice["output_tail"]), (&3.into(), &"one\n".into()));
    assert_eq!(items(&home, "bob"), Vec::<Value>::new());

    let _ = home.cli(["input", &second, "--eof"]).ok();
    let _ = home.ended(&second);
    assert_eq!(tasks(&items(&home, "ann")), [first.as_str(), second.as_str()]);
    let _ = home.cli(["ack", "--owner", "ann", &first]).ok();
    assert_eq!(tasks(&items(&home, "ann")), [second.as_str()], "the other one is still there");
    let printed = home.cli(["inbox", "--owner", "ann", "--ack"]).ok();
    assert!(printed.text().contains(&second), "{}", printed.text());
    assert_eq!(items(&home, "ann"), Vec::<Value>::new());
    let owners = home.get("/v1/inbox").json();
    assert_eq!(owners["items"], Value::Array(Vec::new()), "nothing is left of the owner");
    assert_eq!(home.task(&first)["status"], "failed", "the result itself stays readable");
}

#[test]
fn p5_entries_survive_the_daemon_and_whoever_waits_hears_of_the_next_end() {
    let home = super::home();
    let id = home.submit(&["--owner", "ann", "--stdin", "pipe"], "read line");
    let waiter = home.spawn(["inbox", "--owner", "ann", "--wait", "60s", "--json"]);
    home.kill_at_once(&[home.daemon_pid()]);
    let _ = home.cli(["input", &id, "--eof"]).ok();
    let output = waiter.wait_with_output().expect("the waiter ends");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["items"][0]["task"]["id"], id.as_str());
    home.kill_at_once(&[home.daemon_pid()]);
    assert_eq!(tasks(&items(&home, "ann")), [id.as_str()]);
}

#[test]
fn p5_a_taker_that_dies_gives_its_entries_back() {
    let home = super::home();
    let id = home.submit(&["--owner", "ann"], "true");
    let _ = home.ended(&id);
    let taken = home.post("/v1/inbox/ann/take", &json!({"lease_ms": 300})).json();
    assert_eq!(taken["items"][0]["task"]["id"], id.as_str());
    let again = home.post("/v1/inbox/ann/take", &json!({"lease_ms": 60_000, "wait_ms": 60_000})).json();
    assert_eq!(
        again["items"][0]["id"], taken["items"][0]["id"],
        "the lease ended, and the waiter was woken by it"
    );
    assert_eq!(items(&home, "ann"), Vec::<Value>::new(), "held by the second");
}

#[test]
fn p5_the_policy_of_the_task_decides_whether_anything_waits() {
    let home = super::home();
    for (options, line, told) in [
        (["--notify-on", "never"], "false", false),
        (["--notify-on", "failure"], "true", false),
        (["--notify-on", "failure"], "false", true),
        (["--notify-on", "always"], "true", true),
    ] {
        let id = home.submit(&options, line);
        let _ = home.ended(&id);
        let waits = tasks(&items(&home, "user")).contains(&id.as_str());
        assert_eq!(waits, told, "{options:?} {line}");
    }
}

#[test]
fn what_was_handed_over_in_the_foreground_waits_for_nobody() {
    let home = super::home();
    let _ = home.cli(["exec", "--", "true"]).ok();
    let _ = home.cli(["run", "--follow", "-c", "echo hello"]).ok();
    assert_eq!(items(&home, "user"), Vec::<Value>::new());
    let id = home.submit(&[], "true");
    let _ = home.cli(["wait", &id]).ok();
    assert_eq!(tasks(&items(&home, "user")), [id.as_str()], "a person who waits may have gone");
    let _ = home.cli(["wait", "--ack", &id]).ok();
    assert_eq!(items(&home, "user"), Vec::<Value>::new());
}

#[test]
fn the_list_of_inboxes_goes_on_after_a_cursor() {
    let home = super::home();
    for owner in ["bob", "ann", "bob"] {
        let _ = home.ended(&home.submit(&["--owner", owner], "true"));
    }
    let page = |address: &str| home.get(address).json();
    assert_eq!(page("/v1/inbox")["items"].as_array().map(Vec::len), Some(2));
    let rest = page("/v1/inbox?cursor=ann");
    assert_eq!((&rest["items"][0]["owner"], &rest["items"][0]["open"]), (&"bob".into(), &2.into()));
    assert_eq!((rest["items"].as_array().map(Vec::len), &rest["next_cursor"]), (Some(1), &Value::Null));
}

#[test]
fn p6_an_agent_that_waited_was_told_and_its_next_call_says_so() {
    let home = super::home();
    let owner = "claude:s1";
    let id = home.submit(&["--owner", owner], "true");
    let wait = home.command().env("HOMING_OWNER", owner).args(["wait", &id]).output().expect("it runs");
    assert!(wait.status.success());
    assert_eq!(items(&home, "user"), Vec::<Value>::new());
    // Somebody else's look finds it held, and changes nothing.
    let held = home.get("/v1/inbox/claude:s1").json();
    assert_eq!(held["items"], Value::Array(Vec::new()));
    let owners = home.get("/v1/inbox").json();
    assert_eq!(owners["items"][0]["open"], 1, "held, not gone");
    let next = home.command().env("HOMING_OWNER", owner).args(["status"]).output().expect("it runs");
    assert!(next.status.success());
    wait_for("the entry to go", || {
        home.command().env("HOMING_OWNER", owner).args(["list"]).output().ok()?;
        (home.get("/v1/inbox").json()["items"] == Value::Array(Vec::new())).then_some(())
    });
}

#[test]
fn the_tail_is_exactly_the_last_two_thousand_characters() {
    let home = super::home();
    let id = home.submit(&[], "for i in $(seq 3000); do printf 'ä€😀'; done; printf '\\033[31mend\\033[0m'");
    let _ = home.ended(&id);
    let all = items(&home, "user");
    let tail = all[0]["output_tail"].as_str().unwrap_or_default();
    assert_eq!(tail.chars().count(), 2_000);
    assert!(tail.ends_with("€😀end"), "{}", &tail[tail.len() - 40..]);
    assert_eq!(all[0]["output_truncated"], true);
    let short = home.submit(&[], "printf 'x\\377y'");
    let _ = home.ended(&short);
    let all = items(&home, "user");
    assert_eq!((&all[1]["output_tail"], &all[1]["output_truncated"]), (&"x\u{fffd}y".into(), &false.into()));
}

#[test]
fn an_event_carries_the_same_notice() {
    let home = super::home();
    let id = home.submit(&[], "echo hello");
    let _ = home.ended(&id);
    let all = items(&home, "user");
    let events = home.cli(["events"]).ok().text();
    let line = events.lines().find(|line| line.contains("task.completed")).expect("it is logged");
    let event: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(event["data"], all[0]);
    assert_eq!(event["seq"], all[0]["seq"]);
}

#[test]
fn a_unique_start_names_a_notice_or_a_delivery_and_what_names_none_is_told_as_such() {
    let home = super::home();
    let id = home.submit(&["--owner", "ann", "--notify", "inbox", "--notify", "exec:true"], "true");
    let _ = home.ended(&id);
    let notice = items(&home, "ann")[0]["id"].as_str().expect("an id").to_owned();
    let shown = home.cli(["inbox", "--owner", "ann"]).ok().text();
    assert!(shown.contains(&id) && shown.contains(&notice), "{shown}");
    let delivery = home.cli(["deliveries", "--owner", "ann", "--limit", "1", "--json"]).ok().json();
    assert_eq!(delivery["items"][0]["notice_type"], "task.completed");
    let delivery = delivery["items"][0]["id"].as_str().expect("an id").to_owned();
    // There is one of each, so that no other begins as these do.
    let other = |id: &str| format!("{}{}", &id[..2], if id[2..].starts_with('2') { "3" } else { "2" });
    for (command, id, what) in [("ack", &notice, "notice"), ("redeliver", &delivery, "delivery")] {
        let unknown = home.cli([command, &other(id)]);
        assert_eq!(unknown.code, 4, "{unknown:?}");
        let told = format!("there is no {what} `{}`", other(id));
        assert!(unknown.stderr.contains(&told), "{}", unknown.stderr);
    }
    let again = home.cli(["redeliver", &delivery[..8]]).ok().text();
    assert!(again.contains(&delivery), "{again}");
    assert_eq!(home.cli(["deliveries", "--owner", "bob", "--json"]).ok().json()["items"], json!([]));
    let gone = home.cli(["ack", "--owner", "ann", &notice[..8].to_uppercase()]).ok().text();
    assert!(gone.contains(&notice), "{gone}");
    assert_eq!(items(&home, "ann"), Vec::<Value>::new());
}

#[test]
fn who_waited_in_vain_is_told_and_gets_1() {
    let home = super::home();
    let _ = home.daemon_pid();
    for ack in [&[][..], &["--ack"]] {
        let words = [&["inbox", "--owner", "ann", "--wait", "20ms"], ack].concat();
        let vain = home.cli(&words);
        assert_eq!(vain.code, 1, "{vain:?}");
        assert!(vain.stderr.contains("nothing came within 20ms"), "{}", vain.stderr);
    }
    assert_eq!(home.cli(["inbox", "--owner", "ann"]).code, 0, "who only looks did not wait");
}

#[test]
fn an_acknowledgement_of_what_never_was_is_refused_and_one_that_comes_twice_is_not() {
    let home = super::home();
    let id = home.submit(&[], "true");
    let _ = home.ended(&id);
    let notice = home.cli(["inbox", "--json"]).ok().json()["items"][0]["id"].as_str().unwrap().to_owned();
    let never = if notice == "n-bcdfghjkmn" { "n-bcdfghjkmp" } else { "n-bcdfghjkmn" };
    for words in [&["ack", never][..], &["ack", &notice, never]] {
        let refused = home.cli(words);
        assert!(refused.code == 4 && refused.stderr.contains("HM0045"), "{refused:?}");
        assert_eq!(home.cli(["inbox", "--json"]).ok().json()["items"][0]["id"], notice.as_str());
    }
    assert_eq!(home.cli(["ack", &notice]).ok().text(), format!("{notice} acknowledged"));
    assert!(home.cli(["ack", &notice]).ok().stderr.contains("nothing of that waits"));
}

#[test]
fn more_than_is_shown_is_said_with_the_way_to_the_rest() {
    let home = super::home();
    for _ in 0..3 {
        let _ = home.ended(&home.submit(&[], "true"));
    }
    let look = |arguments: &[&str]| {
        let shown = home.cli([&["inbox", "--json"], arguments].concat()).ok();
        (shown.json()["items"].as_array().unwrap().len(), shown.stderr)
    };
    let (all, said) = look(&[]);
    assert!(all == 3 && said.is_empty(), "{said}");
    let (all, said) = look(&["--limit", "3"]);
    assert!(all == 3 && said.is_empty(), "{said}");
    let (some, said) = look(&["-n", "2"]);
    assert!(
        some == 2 && said.contains("only the oldest 2 are shown") && said.contains("--limit N"),
        "{said}"
    );
    let (some, said) = look(&["-n", "2", "--owner", "user"]);
    assert!(some == 2 && said.contains("`homing inbox --owner user --limit N`"), "{said}");
    let (some, said) = look(&["-n", "2", "--ack"]);
    assert!(some == 2 && said.contains("there are more: `homing inbox --ack`"), "{said}");
    let (rest, said) = look(&["-n", "1", "--ack"]);
    assert!(rest == 1 && said.is_empty(), "{said}");
}

#[test]
fn who_has_nothing_is_told_who_has() {
    let home = super::home();
    let alone = home.cli(["status"]).ok();
    let empty = home.cli(["inbox"]).ok();
    assert_eq!(empty.stderr, "homing: nothing waits for you\n", "{alone:?}");
    for owner in ["ann", "ann", "bob the builder"] {
        let _ = home.ended(&home.submit(&["--owner", owner], "true"));
    }
    let hinted = home.cli(["inbox"]).ok();
    assert!(hinted.stdout.is_empty());
    assert!(hinted.stderr.starts_with("homing: nothing waits for you\n"), "{hinted:?}");
    assert!(hinted.stderr.contains("you are user; there are 2 for ann, 1 for bob the builder"), "{hinted:?}");
    assert!(hinted.stderr.contains("`homing inbox --owner ann`"), "{hinted:?}");
    let other = home.cli(["inbox", "--owner", "nobody"]).ok();
    assert!(other.stderr.contains("you are nobody"), "{other:?}");
    let program = home.cli(["inbox", "--json"]).ok();
    assert_eq!(program.stderr, "homing: nothing waits for you\n");
    let inside = home.submit(&["--owner", "carol"], &format!("'{}' inbox", home.program().display()));
    let _ = home.ended(&inside);
    let said = String::from_utf8_lossy(&home.output(&inside)).into_owned();
    assert!(!said.contains("ann"), "a task is not told of others: {said}");
}

#[test]
fn all_that_waits_is_acknowledged_at_once_and_nothing_of_others() {
    let home = super::home();
    let _ = home.daemon_pid();
    let nothing = home.cli(["ack", "--all"]).ok();
    assert!(nothing.stderr.contains("nothing waits in the inbox"), "{nothing:?}");
    for _ in 0..3 {
        let _ = home.ended(&home.submit(&[], "true"));
    }
    let other = home.submit(&["--owner", "ann"], "true");
    let _ = home.ended(&other);
    let gone = home.cli(["ack", "--all", "--json"]).ok().json();
    assert_eq!(gone["acknowledged"].as_array().unwrap().len(), 3, "{gone}");
    assert_eq!(items(&home, "user"), Vec::<Value>::new());
    assert_eq!(tasks(&items(&home, "ann")), [other.as_str()]);
    let both = home.cli(["ack", "--all", &other]);
    assert_eq!(both.code, 2, "{both:?}");
    assert_eq!(home.cli(["ack"]).code, 2);
}
