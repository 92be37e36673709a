//! Callers inside tasks: found by their ancestors, whatever they say of themselves, and kept to what they started (P11).
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::os::unix::fs::PermissionsExt;

use homing_testkit::{Home, gate, wait_for};
use serde_json::Value;

/// Words for scripts. `inside` calls the command line with nothing left in the environment; `try NAME …` writes down what came of a call.
const WORDS: &str = r#"
inside() { env -i PATH="$PATH" "$HOMING" --home "$HERE" "$@"; }
try() { name=$1; shift; said=$(inside "$@" 2>&1 < /dev/null); code=$?; echo "$name $code $(printf '%s' "$said" | grep -o 'HM[0-9]*' | head -n 1)" >> tried; }
"#;

/// Runs a script inside a task to its end.
fn run(home: &Home, options: &[&str], script: &str) -> Value {
    home.ended(&begin(home, options, script))
}

/// Starts a script inside a task; its id.
fn begin(home: &Home, options: &[&str], script: &str) -> String {
    let mut command = home.command();
    command.env("HOMING", home.program()).env("HERE", home.path()).args(["run", "--json"]).args(options);
    let output = command.args(["-c", &format!("{WORDS}\n{script}")]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let task: Value = serde_json::from_slice(&output.stdout).unwrap();
    task["id"].as_str().unwrap().to_owned()
}

/// What was tried, in order: name, exit code, problem.
fn tried(home: &Home) -> Vec<(String, String, String)> {
    let text = home.truth("tried");
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or_default())
    };
    text.lines().map(line).collect()
}

fn configured(config: &str) -> Home {
    let home = super::home();
    std::fs::create_dir(home.path()).unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    home
}

/// Every call that reaches beyond a task's own, with `$F` for a foreign task that lives and `$E` for one that has ended.
const BEYOND: &str = r#"
try stop stop $F; try input input $F hello; try forget forget $E; try show show $F; try output output $E; try wait wait $E
try ack ack $E; try follow output -f $E; try heartbeat heartbeat $X; try complete complete $X; try progress progress --task $F 5
try inbox inbox; try take inbox --ack; try deliveries deliveries; try redeliver redeliver $E; try gc gc; try rotate token rotate
try daemon daemon stop; try restart daemon restart; try key run --key one -- true
"#;

fn foreign(home: &Home) -> String {
    let live = home.submit(&["--stdin", "pipe", "--name", "secret-of-others", "--key", "one"], "exec cat");
    let ended = home.submit(&[], "echo nobody reads this");
    let external = home.cli(["track"]).ok().text();
    let _ = home.ended(&ended);
    format!("F={live} E={ended} X={external}\n")
}

#[test]
fn p11_a_command_inside_a_task_reaches_what_it_started_and_nothing_else() {
    let home = super::home();
    let foreign = foreign(&home);
    let own = r#"
    C=$(inside run --stdin pipe -- cat); try own-input input $C hello --eof; try own-wait wait $C; try own-show show $C
    try own-output output $C; try own-ack ack $C; try own-forget forget $C
    D=$(inside run -- sleep 1000); try own-stop stop $D
    X=$(inside track); try own-heartbeat heartbeat $X; try own-complete complete $X
    try own-exec exec -- true; try own-progress progress --task "$HOMING_TASK_ID" 50; try status status
    inside list --all --json > listed; inside events > events; echo "$HOMING_TASK_ID" > own
    "#;
    assert_eq!(run(&home, &[], &format!("{foreign}{BEYOND}{own}"))["status"], "succeeded");
    for (name, code, problem) in tried(&home) {
        let expected = match name.as_str() {
            name if name.starts_with("own-") || name == "status" => "",
            "redeliver" | "gc" | "rotate" | "daemon" => "HM0054",
            // The command line knows that it could not start it again.
            "restart" => "HM0021",
            _ => "HM0053",
        };
        assert_eq!(problem, expected, "{name}");
        assert_eq!(code == "0", expected.is_empty(), "{name}: {code}");
    }
    assert_eq!(tried(&home).len(), 20 + 12);
    let listed: Value = serde_json::from_str(&home.truth("listed")).unwrap();
    let own = home.truth("own");
    let parents: Vec<_> = listed["items"].as_array().unwrap().iter().map(|task| &task["parent"]).collect();
    assert!(parents.len() >= 3 && parents.iter().all(|parent| *parent == own.trim()), "{listed}");
    let (events, listed) = (home.truth("events"), home.truth("listed"));
    assert!(events.contains(own.trim()), "its own are told: {events}");
    assert!(!format!("{events}{listed}").contains("secret-of-others"));
    let task = foreign.split([' ', '=']).nth(1).unwrap();
    assert_eq!(home.task(task)["status"], "running", "nothing happened to the others");
    assert_eq!(home.cli(["daemon", "status", "--json"]).code, 0);
}

#[test]
fn a_refusal_inside_a_task_names_the_command_and_the_rule() {
    let home = super::home();
    let foreign = foreign(&home);
    let script = r#"
    for line in "token rotate" "daemon stop" gc "mcp --http" "mcp --http --off" "wait $F" "output $F" "show $F" "stop $F" "inbox" "forget $E"; do
        echo "$line: $(inside $line 2>&1 < /dev/null | head -n 1)" >> said
    done"#;
    let _ = run(&home, &[], &format!("{foreign}{script}"));
    let said = home.truth("said");
    assert_eq!(said.lines().count(), 11, "{said}");
    for line in said.lines() {
        let (typed, told) = line.split_once(": ").unwrap();
        let words: Vec<_> = typed.split(' ').take_while(|word| !word.starts_with("t-")).collect();
        assert!(told.contains(&format!("`{}`", words.join(" "))), "{line}");
        assert!(told.contains("(rule `nested_"), "{line}");
    }
}

#[test]
fn p11_a_task_that_may_say_who_is_told_may_do_the_rest_too() {
    let home = super::home();
    let foreign = foreign(&home);
    let script = "try stop stop $F; try show show $E; try inbox inbox; try gc gc; try ack ack $E; try key run --key one -- true";
    let _ = run(&home, &["--allow-nested-notify"], &format!("{foreign}{script}"));
    assert!(tried(&home).iter().all(|(_, code, _)| code == "0"), "{:?}", tried(&home));
}

#[test]
fn p11_an_agent_inside_a_task_has_the_inbox_of_its_own_session_and_no_other() {
    let home = super::home();
    let foreign = foreign(&home);
    let script = "
    C=$(inside run --owner claude:own -- true); inside wait $C
    try own-inbox inbox --owner claude:own; try own-ack inbox --owner claude:own --ack
    try outer-inbox inbox --owner claude:outer; try user-inbox inbox --owner user; try stop stop $F; try gc gc
    try exec run --notify exec:true -- true; try grant run --agent-session -- true";
    let _ = run(&home, &["--agent-session", "--owner", "claude:outer"], &format!("{foreign}{script}"));
    let problems: Vec<_> = tried(&home).into_iter().map(|(name, _, problem)| (name, problem)).collect();
    let expected = [
        ("own-inbox", ""),
        ("own-ack", ""),
        ("outer-inbox", "HM0053"),
        ("user-inbox", "HM0053"),
        ("stop", "HM0053"),
        ("gc", "HM0054"),
        ("exec", "HM0038"),
        ("grant", "HM0038"),
    ];
    assert_eq!(problems, expected.map(|(name, problem)| (name.to_owned(), problem.to_owned())));
}

#[test]
fn p11_a_program_inside_a_task_cannot_fill_the_inbox_of_another() {
    let home = super::home();
    let script = r#"
    try flag run --owner claude:victim -- true; try agent ask --owner claude:victim x; try track track --owner claude:victim
    try variable-free run -- true
    said=$(HOMING_OWNER=claude:victim "$HOMING" --home "$HERE" run -- true 2>&1 < /dev/null)
    echo "variable $? $(printf '%s' "$said" | grep -o 'HM[0-9]*' | head -n 1)" >> tried
    inside run -- true > unnamed; inside run --owner claude:outer -- true > named
    env CLAUDE_CODE_SESSION_ID=victim "$HOMING" --home "$HERE" run -- true > detected"#;
    let _ = run(&home, &["--owner", "claude:outer"], script);
    for (name, _, problem) in tried(&home) {
        assert_eq!(problem, if name == "variable-free" { "" } else { "HM0038" }, "{name}");
    }
    for submitted in ["unnamed", "named", "detected"] {
        let id = home.truth(submitted);
        assert_eq!(home.ended(id.trim())["owner"], "claude:outer", "{submitted}");
    }
    assert!(inbox(&home, "claude:victim").is_empty());
    // Nor does an agent inside a task, once its session is known.
    std::fs::remove_file(home.scratch().join("tried")).unwrap();
    let script = "inside run --owner claude:own -- true > own; try other run --owner claude:victim -- true; inside run -- true > unnamed";
    let _ = run(&home, &["--agent-session", "--owner", "claude:outer"], script);
    assert_eq!(tried(&home)[0].2, "HM0038");
    assert_eq!(home.ended(home.truth("unnamed").trim())["owner"], "claude:own");
}

/// Claims the session of another task by its owner's name, by a variable, and by a hook of its own.
const CLAIMS: &str = r#"
inside list --owner claude:foreign > /dev/null 2>&1
printf '{"session_id":"foreign","hook_event_name":"SessionStart","source":"startup"}' |
    env -i PATH="$PATH" CLAUDE_PID=$$ "$HOMING" --home "$HERE" hook claude SessionStart > hooked 2>&1
forge() { name=$1; shift; said=$(env HOMING_OWNER=claude:foreign "$HOMING" --home "$HERE" "$@" 2>&1 < /dev/null); code=$?
    echo "$name $code $(printf '%s' "$said" | grep -o 'HM[0-9]*' | head -n 1)" >> tried; }
forge inbox inbox; forge take inbox --ack; forge output output $E; forge show show $F; forge ack ack $E; forge input input $F hello
forge stop stop $F; forge wake run --owner claude:foreign --notify wake -- true
"#;

#[test]
fn p11_a_sub_agent_cannot_claim_the_session_of_another() {
    let home = super::home();
    let live = home.submit(&["--owner", "claude:foreign", "--stdin", "pipe"], "exec cat");
    let ended = home.submit(&["--owner", "claude:foreign"], "echo secret");
    let _ = home.ended(&ended);
    let script = format!("F={live} E={ended}\n{CLAIMS}");
    let _ = run(&home, &["--agent-session", "--owner", "claude:outer"], &script);
    let tried = tried(&home);
    assert_eq!(tried.len(), 8, "{tried:?}");
    for (name, code, problem) in tried {
        let expected = if name == "wake" { "HM0038" } else { "HM0053" };
        assert_eq!((code.as_str(), problem.as_str()), ("1", expected), "{name}");
    }
    assert_eq!(home.truth("hooked"), "", "the hook was told nothing");
    assert_eq!(home.task(&live)["status"], "running");
    assert_eq!(home.task(&ended)["notices"][0]["inbox"], "waiting");
}

#[test]
fn p11_a_claim_in_advance_ends_when_the_session_appears() {
    let home = super::home();
    let (forge, attempts) = (CLAIMS.find("forge()").unwrap(), CLAIMS.find("forge inbox").unwrap());
    let script = format!(
        "{}\nforge claim inbox; : > claimed; {}\n. ./victim\n{}",
        &CLAIMS[forge..attempts],
        gate("appeared"),
        &CLAIMS[attempts..]
    );
    let task = begin(&home, &["--agent-session", "--owner", "claude:outer"], &script);
    wait_for("the claim", || home.scratch().join("claimed").exists().then_some(()));
    let live = home.submit(&["--owner", "claude:foreign", "--stdin", "pipe"], "exec cat");
    let ended = home.submit(&["--owner", "claude:foreign"], "echo secret");
    let _ = home.ended(&ended);
    std::fs::write(home.scratch().join("victim"), format!("F={live} E={ended}\n")).unwrap();
    home.open("appeared");
    let _ = home.ended(&task);
    let tried = tried(&home);
    assert_eq!(tried[0], ("claim".to_owned(), "0".to_owned(), String::new()), "nobody had it");
    for (name, code, problem) in &tried[1..] {
        let expected = if name == "wake" { "HM0038" } else { "HM0053" };
        assert_eq!((code.as_str(), problem.as_str()), ("1", expected), "{name}");
    }
    assert_eq!(home.task(&live)["status"], "running");
    assert_eq!(home.task(&ended)["notices"][0]["inbox"], "waiting");
}

#[test]
fn p11_the_first_session_of_a_sub_agent_stays_its_session() {
    let home = super::home();
    let hook = |id: &str, event: &str| {
        format!(
            "printf '{{\"session_id\":\"{id}\",\"hook_event_name\":\"x\",\"source\":\"startup\"}}' |
            CLAUDE_PID=$$ inside_as_agent hook claude {event}\n"
        )
    };
    let script = [
        "inside_as_agent() { env -i PATH=\"$PATH\" CLAUDE_PID=\"$CLAUDE_PID\" \"$HOMING\" --home \"$HERE\" \"$@\"; }\n",
        &hook("own", "SessionStart"),
        "try own inbox --owner claude:own; try second inbox --owner claude:second\n",
        // The same process begins another conversation.
        &hook("own", "SessionEnd"),
        &hook("next", "SessionStart"),
        "try next inbox --owner claude:next; try left inbox --owner claude:own\n",
        // And goes back to the first.
        &hook("own", "SessionStart"),
        "try back inbox --owner claude:own\n",
    ]
    .concat();
    let _ = run(&home, &["--agent-session", "--owner", "claude:outer"], &script);
    let problems: Vec<_> = tried(&home).into_iter().map(|(name, _, problem)| (name, problem)).collect();
    let expected = [("own", ""), ("second", "HM0053"), ("next", ""), ("left", "HM0053"), ("back", "")];
    assert_eq!(problems, expected.map(|(name, problem)| (name.to_owned(), problem.to_owned())));
}

#[test]
fn p11_a_sub_agent_wakes_no_session_without_its_own_hook() {
    let home = super::home();
    let script = r#"
    try called run --owner claude:own --notify wake -- true
    printf '{"session_id":"own","hook_event_name":"SessionStart","source":"startup"}' |
        env -i PATH="$PATH" CLAUDE_PID=$$ "$HOMING" --home "$HERE" hook claude SessionStart > hooked
    try bound run --owner claude:own --notify wake -- true"#;
    let _ = run(&home, &["--agent-session", "--owner", "claude:outer"], script);
    let problems: Vec<_> = tried(&home).into_iter().map(|(name, _, problem)| (name, problem)).collect();
    let expected = [("called", "HM0038"), ("bound", "")];
    assert_eq!(problems, expected.map(|(name, problem)| (name.to_owned(), problem.to_owned())));
}

/// The tasks that an owner's inbox has entries of.
fn inbox(home: &Home, owner: &str) -> Vec<String> {
    let inbox = home.cli(["inbox", "--owner", owner, "--json"]).ok().json();
    let task = |entry: &Value| entry["task"]["id"].as_str().unwrap().to_owned();
    inbox["items"].as_array().unwrap().iter().map(task).collect()
}

#[test]
fn p5_jobs_of_a_sub_agent_report_to_its_outer_session() {
    let home = super::home();
    let script = format!(
        "inside run --owner claude:own -- true > early; inside run --owner claude:own -- sh -c '{}' > late; : > begun; {}",
        gate("go"),
        gate("finish")
    );
    let outer = begin(&home, &["--agent-session", "--owner", "claude:outer"], &script);
    let _ = home.told("early");
    wait_for("both jobs", || home.scratch().join("begun").exists().then_some(()));
    let (early, late) = (home.truth("early").trim().to_owned(), home.truth("late").trim().to_owned());
    let _ = home.ended(&early);
    assert_eq!(inbox(&home, "claude:own"), [early.as_str()], "the sub-agent can still read it");
    assert!(inbox(&home, "claude:outer").is_empty());
    home.open("finish");
    let _ = home.ended(&outer);
    assert!(inbox(&home, "claude:own").is_empty());
    let mut reported = inbox(&home, "claude:outer");
    reported.sort();
    let mut expected = [early, outer];
    expected.sort();
    assert_eq!(reported, expected);
    home.open("go");
    let _ = home.ended(&late);
    assert!(inbox(&home, "claude:own").is_empty());
    assert!(inbox(&home, "claude:outer").contains(&late));
}

#[test]
fn p11_a_script_that_leaves_its_session_its_group_and_its_parents_is_still_inside() {
    let home = super::home();
    let id = home.submit(&[], "exec sleep 1000");
    let script = format!(
        "(setsid sh -c '(env -i PATH=\"$PATH\" \"$HOMING\" --home \"$HERE\" stop {id} 2> refusal; echo $? > code) & ' &) ; {}",
        gate("code")
    );
    let _ = run(&home, &[], &script);
    // The task goes on when the file is there, which is before anything is in it.
    assert_eq!(home.told("code"), "1");
    let refusal = home.truth("refusal");
    assert!(
        refusal.contains("HM0053") && refusal.contains("nested_foreign") && refusal.contains("`stop`"),
        "{refusal}"
    );
    assert_eq!(home.task(&id)["status"], "running");
}

#[test]
fn p11_what_an_ended_task_left_is_limited_after_a_restart() {
    let home = super::home();
    let foreign = foreign(&home);
    let script = format!(
        "{foreign}({}; try list list; try stop stop $F; try gc gc; : > over) > /dev/null 2>&1 &",
        gate("restarted")
    );
    let _ = run(&home, &["--allow-nested-notify"], &script);
    home.does(["daemon", "restart"]);
    home.open("restarted");
    wait_for("the calls of what was left", || home.scratch().join("over").exists().then_some(()));
    let problems: Vec<_> = tried(&home).into_iter().map(|(name, _, problem)| (name, problem)).collect();
    let expected = [("list", ""), ("stop", "HM0053"), ("gc", "HM0054")];
    assert_eq!(problems, expected.map(|(name, problem)| (name.to_owned(), problem.to_owned())));
}

#[test]
fn p11_a_hundred_at_once_are_no_more_than_a_task_may_have() {
    let home = configured("[nested]\nchildren = 5\n");
    let script = format!(
        "for n in $(seq 100); do (inside run -- sh -c '{}' > ok.$n 2> no.$n) & done; wait; cat ok.* > ids; cat no.* > refusals; \
         inside list --json > listed; : > go; {}",
        gate("go"),
        "for id in $(cat ids); do inside wait $id; done; try after run -- true"
    );
    let _ = run(&home, &[], &script);
    assert_eq!(home.truth("ids").lines().count(), 5);
    let refusals = home.truth("refusals");
    assert_eq!(refusals.matches("HM0033").count(), 95, "{refusals}");
    assert!(refusals.contains("5 live tasks of its own") && refusals.contains("`children`"), "{refusals}");
    let listed: Value = serde_json::from_str(&home.truth("listed")).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 5);
    assert_eq!(tried(&home), [("after".into(), "0".into(), String::new())], "what has ended counts no more");
}

#[test]
fn p11_three_tasks_deep_and_no_deeper() {
    let home = super::home();
    let script = "echo $1 >> depths\n[ $1 -gt 6 ] || \"$2\" --home \"$3\" run --wait -- sh down $(($1 + 1)) \"$2\" \"$3\" 2>> refusal\n";
    std::fs::write(home.scratch().join("down"), script).unwrap();
    let mut command = home.command();
    command.args(["run", "--wait", "--", "sh", "down", "0"]).arg(home.program()).arg(home.path());
    let _ = command.output().unwrap();
    assert_eq!(home.truth("depths"), "0\n1\n2\n3\n");
    assert!(home.truth("refusal").contains("HM0033"), "{}", home.truth("refusal"));
}

#[test]
fn p6_what_an_owner_was_told_is_not_confirmed_from_inside_a_task() {
    let home = super::home();
    let mut command = home.command();
    command.env("HOMING", home.program()).args(["run", "--owner", "claude:a", "--notify-on", "never", "-c"]);
    let script = "\"$HOMING\" list > listed; \"$HOMING\" exec -- true; \"$HOMING\" list > listed";
    let output = command.arg(format!("{}; {script}", gate("go"))).output().unwrap();
    let task = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let told = home.submit(&["--owner", "claude:a"], "true");
    let mut wait = home.command();
    assert!(wait.env("HOMING_OWNER", "claude:a").args(["wait", &told]).output().unwrap().status.success());
    // The task of the same owner calls, and so do those that it started.
    home.open("go");
    assert_eq!(home.ended(&task)["status"], "succeeded");
    let notices = home.task(&told)["notices"].clone();
    assert_eq!(notices[0]["inbox"], "held", "{notices}");
    // What was handed over inside is gone with the next call from inside.
    let child = home.cli(["list", "--all", "--json"]).ok().json();
    let child = child["items"].as_array().unwrap().iter().find(|one| one["parent"] == task.as_str()).unwrap();
    let notices = home.task(child["id"].as_str().unwrap())["notices"].clone();
    assert_eq!(notices[0]["inbox"], "acknowledged", "{notices}");
}

#[test]
fn p11_the_tools_of_an_agent_are_no_way_around_the_rules() {
    let home = super::home();
    let foreign = home.submit(&["--owner", "claude:a"], "exec sleep 1000");
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let call = |id: u32, name: &str, arguments: Value| {
        let params = serde_json::json!({ "name": name, "arguments": arguments });
        serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
            .to_string()
    };
    let lines = [
        hello.to_owned(),
        ready.to_owned(),
        call(2, "stop", serde_json::json!({ "id": foreign })),
        call(3, "output", serde_json::json!({ "id": foreign })),
        call(4, "run", serde_json::json!({ "command": "true", "notify_on_complete": true })),
        call(5, "run", serde_json::json!({ "command": "echo mine" })),
    ];
    std::fs::write(home.scratch().join("asked"), lines.join("\n") + "\n").unwrap();
    // The bridge ends with its input, which stays open until all is answered.
    let script = "{ cat asked; until [ $(grep -c '\"id\":[2345]' answered) -ge 4 ]; do sleep 0.01; done; } | CODEX_THREAD_ID=9 \"$HOMING\" mcp > answered";
    std::fs::write(home.scratch().join("answered"), "").unwrap();
    assert_eq!(run(&home, &["--owner", "claude:a"], script)["status"], "succeeded");
    let answered = home.truth("answered");
    let answer =
        |id: u32| answered.lines().find(|line| line.contains(&format!("\"id\":{id}"))).unwrap().to_owned();
    for (id, rule, what, next) in [
        (2, "HM0053", "`stop` of task", "the tool `list`"),
        (3, "HM0053", "`output` of task", "the tool `list`"),
        (4, "HM0038", "`notify_on_complete` is not for callers inside a task", "call `wait`"),
    ] {
        let said = answer(id);
        assert!(said.contains(rule) && said.contains(what) && said.contains(next), "{id}: {said}");
        assert!(said.contains("nested_") && !said.contains("`homing "), "{id}: {said}");
    }
    let list = home.cli(["list", "--all", "--json"]).ok().json();
    assert!(list["items"].as_array().unwrap().iter().all(|one| one["command"] != "true"), "{list}");
    assert!(answer(5).contains("mine") && !answer(5).contains("HM00"), "{}", answer(5));
    assert_eq!(home.task(&foreign)["status"], "running");
}

#[test]
fn a_task_hears_that_the_daemon_runs_and_sees_no_other_tasks() {
    let home = super::home();
    let ended = run(&home, &[], "inside daemon start > said 2>&1; echo $? >> said; inside list >> said 2>&1");
    assert_eq!(ended["status"], "succeeded");
    let said = home.truth("said");
    assert!(said.starts_with("already runs, pid ") && said.contains("\n0\n"), "{said}");
    assert!(said.contains("none that this task started"), "{said}");
}
