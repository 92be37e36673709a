//! Whose tasks they are: in whose inbox ends land, and what one may do to another's.

use homing_testkit::{Home, gate};
use serde_json::json;

use super::speaker::{Speaker, text};

/// A session of an agent that nobody can wake, so that nobody tries.
fn session(home: &Home, id: &str) -> Speaker {
    Speaker::legacy(home.command().env("GEMINI_SESSION_ID", id))
}

fn owner(home: &Home, speaker: &mut Speaker) -> String {
    let id = speaker.background("true", false);
    home.task(&id)["owner"].as_str().expect("an owner").to_owned()
}

#[test]
fn the_first_owner_that_applies() {
    let home = crate::home();
    let process = || owner(&home, &mut Speaker::legacy(&mut home.command()));
    let first = process();
    assert!(first.starts_with(&format!("mcp:{}.", std::process::id())), "the agent's process: {first}");
    assert_eq!(process(), first, "a server that the agent starts again");
    assert_eq!(owner(&home, &mut session(&home, "s1")), "gemini:s1");
    let mut command = home.command();
    command.env("GEMINI_SESSION_ID", "s1").env("HOMING_OWNER", "ci");
    assert_eq!(owner(&home, &mut Speaker::legacy(&mut command)), "ci");
}

#[test]
fn p6_a_call_of_codex_belongs_to_the_thread_that_it_names() {
    let home = crate::home();
    let mut codex = Speaker::named(&mut home.command(), "codex-mcp-client");
    assert!(owner(&home, &mut codex).starts_with("mcp:"));
    for thread in ["one", "two", "one"] {
        codex.in_thread(thread);
        assert_eq!(owner(&home, &mut codex), format!("codex:{thread}"));
    }
    let mut other = Speaker::of(&home); // named `user`
    other.in_thread("one");
    assert_eq!(owner(&home, &mut other), "user", "whoever is not Codex means something else by it");
}

#[test]
fn p6_a_call_of_opencode_belongs_to_the_session_that_its_plugin_names() {
    let home = crate::home();
    let told = |speaker: &mut Speaker, session: &str| {
        let arguments = json!({
            "command": gate("never"), "background": true, "notify_on_complete": true, "opencode_session": session,
        });
        let ran = speaker.data("run", arguments);
        let task = home.task(ran["task"]["id"].as_str().expect("an id"));
        (task["owner"].clone(), task["notify"]["targets"].clone())
    };
    let mut opencode = Speaker::named(&mut home.command(), "opencode");
    for session in ["ses_1", "ses_2", "ses_1"] {
        let (owner, targets) = told(&mut opencode, session);
        assert_eq!((owner, targets), (json!(format!("opencode:{session}")), json!(["inbox", "wake"])));
    }
    let unnamed = owner(&home, &mut opencode);
    assert!(unnamed.starts_with("mcp:"), "a call without a session belongs to the process: {unnamed}");
    let refused = Speaker::of(&home).tool("run", json!({ "command": "true", "opencode_session": "ses_1" }));
    assert!(text(&refused).contains("unknown field"), "another client names nobody by it: {refused}");
}

#[test]
fn p11_stop_and_input_reach_ones_own_tasks_only() {
    let home = crate::home();
    let (mut ann, mut bob) = (session(&home, "ann"), session(&home, "bob"));
    let line = format!("{}; true", gate("never"));
    let ran = ann.data("run", json!({ "command": line, "background": true, "stdin": true }));
    let id = ran["task"]["id"].clone();
    for (tool, arguments) in [("stop", json!({ "id": id })), ("input", json!({ "id": id, "text": "x" }))] {
        let refused = bob.tool(tool, arguments);
        assert_eq!(refused["isError"], true);
        assert!(
            text(&refused).contains("belongs to gemini:ann") && text(&refused).contains("HM0055"),
            "{refused}"
        );
    }
    assert_eq!(bob.data("list", json!({}))["tasks"], json!([]), "another's are not in one's own list");
    let seen = bob.data("list", json!({ "id": id }));
    assert_eq!(seen["tasks"][0]["owner"], "gemini:ann", "looking is open to all");
    assert_eq!(bob.data("list", json!({ "everyone": true }))["tasks"].as_array().map(Vec::len), Some(1));
    assert_eq!(ann.data("stop", json!({ "id": id }))["stopping"], true);
}

#[test]
fn p6_two_sessions_in_one_folder_hear_of_their_own_tasks() {
    let home = crate::home();
    let (mut ann, mut bob) = (session(&home, "ann"), session(&home, "bob"));
    let mut expected = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        for (speaker, ids) in [&mut ann, &mut bob].into_iter().zip(&mut expected) {
            let ran = speaker
                .data("run", json!({ "command": "true", "background": true, "notify_on_complete": true }));
            ids.push(ran["task"]["id"].clone());
        }
    }
    for id in expected.iter().flatten() {
        let _ = home.ended(id.as_str().expect("an id"));
    }
    for (speaker, ids) in [&mut ann, &mut bob].into_iter().zip(&expected) {
        let inbox = speaker.data("inbox", json!({}));
        let mut seen: Vec<_> =
            inbox["notices"].as_array().expect("a list").iter().map(|one| one["task_id"].clone()).collect();
        let mut ids = ids.clone();
        ids.sort_by_key(ToString::to_string);
        seen.sort_by_key(ToString::to_string);
        assert_eq!(seen, ids);
    }
}

#[test]
fn tasks_have_the_environment_of_the_bridge_without_what_is_kept_from_tasks() {
    let home = crate::home();
    let mut command = home.command();
    command
        .env("CLAUDE_CODE_SESSION_ID", "s")
        .env("CLAUDE_CODE_MESSAGING_TOKEN", "hunter2")
        .env("MINE", "yes");
    let mut speaker = Speaker::legacy(&mut command);
    std::fs::create_dir(home.scratch().join("below")).expect("a folder");
    let ran = speaker.data(
        "run",
        json!({ "command": "echo $MINE; env | grep -c hunter2; pwd; echo $PWD", "cwd": "below" }),
    );
    let below = home.scratch().join("below");
    let expected = format!("yes\n0\n{0}\n{0}\n", below.display());
    assert_eq!(ran["output"]["text"], expected.as_str());
}

#[test]
fn a_session_that_can_be_woken_is_and_one_that_cannot_finds_it_in_its_inbox() {
    let home = crate::home();
    let never = json!({ "command": gate("never"), "background": true, "notify_on_complete": true });
    let told = |variable: &str, arguments: &serde_json::Value| {
        let ran = Speaker::legacy(home.command().env(variable, "s")).data("run", arguments.clone());
        let task = home.task(ran["task"]["id"].as_str().expect("an id"));
        (task["notify"]["targets"].clone(), ran["next"].as_str().expect("a next step").to_owned())
    };
    let (targets, next) = told("CODEX_THREAD_ID", &never);
    assert_eq!(targets, json!(["inbox", "wake"]));
    assert!(next.contains("You will be notified"), "{next}");
    let (targets, next) = told("GEMINI_SESSION_ID", &never);
    assert_eq!(targets, json!(["inbox"]));
    assert!(next.contains("inbox"), "{next}");
    assert!(next.contains("homing wait t-") && next.contains("gemini:s"), "{next}");
    let (targets, next) = told("CODEX_THREAD_ID", &json!({ "command": gate("never"), "background": true }));
    assert_eq!(targets, json!(["inbox", "wake"]), "{next}");
    let silent = json!({ "command": gate("never"), "background": true, "notify_on_complete": false });
    let (targets, next) = told("CODEX_THREAD_ID", &silent);
    assert_eq!(targets, json!([]), "{next}");
    let mut inside = home.command();
    inside
        .env("CODEX_THREAD_ID", "s")
        .env("HOMING_TASK_ID", "t-22222222")
        .env("HOMING_OWNER", "claude:outer");
    let next = Speaker::legacy(&mut inside).data("run", never)["next"].to_string();
    assert!(
        !next.contains("end your turn") && next.contains("call `wait`"),
        "a sub-agent ends with its turn: {next}"
    );
}

#[test]
fn p6_windows_of_an_unknown_agent_do_not_share_an_inbox() {
    let home = crate::home();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let call = |id: u32, name: &str, arguments: serde_json::Value| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
    let owner_in = |window: &str| {
        // The agent is a program that starts its server twice.
        let run = call(2, "run", json!({ "command": "true", "background": true }));
        let lines = format!("{hello}\n{ready}\n{run}\n");
        std::fs::write(home.scratch().join(window), lines).expect("written");
        let script = "import subprocess, sys\nfor _ in range(2): subprocess.run([sys.argv[1], 'mcp'], stdin=open(sys.argv[2]), check=True)";
        let output = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(home.program())
            .arg(home.scratch().join(window))
            .env("HOMING_HOME", home.path())
            .env_remove("HOMING_OWNER")
            .output()
            .expect("python3");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let ids: Vec<_> = said
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter_map(|answer| {
                answer["result"]["structuredContent"]["task"]["id"].as_str().map(str::to_owned)
            })
            .collect();
        assert_eq!(ids.len(), 2, "{said} {}", String::from_utf8_lossy(&output.stderr));
        let owners: Vec<_> = ids.iter().map(|id| home.ended(id)["owner"].clone()).collect();
        assert_eq!(owners[0], owners[1], "results stay reachable when the server is started again");
        owners[0].as_str().expect("an owner").to_owned()
    };
    let (one, two) = (owner_in("one"), owner_in("two"));
    assert!(one != two && one.starts_with("mcp:"), "{one} {two}");
    let waiting =
        |owner: &str| home.get(&format!("/v1/inbox/{owner}")).json()["items"].as_array().map(Vec::len);
    assert_eq!((waiting(&one), waiting(&two)), (Some(2), Some(2)));
}

#[test]
fn p6_an_unknown_agent_that_waits_in_its_shell_is_told_once() {
    let home = crate::home();
    for variable in ["UNKNOWN_AGENT", "GEMINI_SESSION_ID"] {
        let mut speaker = Speaker::legacy(home.command().env(variable, "s1"));
        let ran = speaker
            .data("run", json!({ "command": format!("{}; exit 3", gate(variable)), "background": true }));
        let next = ran["next"].as_str().expect("a next step");
        let taught = next.split('`').find(|part| part.starts_with("homing wait ")).expect("a command");
        // The agent's shell has nothing in its environment that names the owner.
        let mut shell = home.command();
        let _ = shell.args(taught.split_whitespace().skip(1));
        let waiting = shell.spawn().expect("it runs");
        std::fs::write(home.scratch().join(variable), "").expect("the gate opens");
        assert_eq!(waiting.wait_with_output().expect("it ends").status.code(), Some(3), "{next}");
        let listed = speaker.data("list", json!({}));
        assert_eq!(listed.get("inbox"), None, "{taught}: {listed}");
    }
}
