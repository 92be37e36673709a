//! No secret stays behind: not on the disk, not in a process list, not in an answer, once its task has started.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use homing_testkit::{Home, PATIENCE, Receiver, Script, freeze, gate, left_out, wait_for, wait_until};
use serde_json::{Value, json};

/// What is looked for everywhere: one for each way in.
const GIVEN: &str = "canary-given-3f1c9a";
const IN_A_FILE: &str = "canary-file-77ab01";
const INHERITED: &str = "canary-inherited-5d20e4";
const SET: &str = "canary-set-c0ffee";
const PRINTED: &str = "canary-printed-9b8d3c";
const OVER_HTTP: &str = "canary-http-41aa7e";
const NAMED: &str = "canary-named-d15ea5";
const IN_A_FOLDER: &str = "canary-folder-6e0b2f";
/// Kept with the deliveries, for as long as those are.
const IN_AN_ADDRESS: &str = "canary-address-8c44f0";
const IN_A_HOOK: &str = "canary-hook-2be19d";
/// `canary-signing-key-of-32-bytes-x1`, as keys are written.
const SIGNING: &str = "Y2FuYXJ5LXNpZ25pbmcta2V5LW9mLTMyLWJ5dGVzLXgx";

/// The same, in the configuration: `canary-configured-key-of-32-byt`.
const CONFIGURED: &str = "Y2FuYXJ5LWNvbmZpZ3VyZWQta2V5LW9mLTMyLWJ5dA==";

const GONE: [&str; 8] = [GIVEN, IN_A_FILE, INHERITED, SET, PRINTED, OVER_HTTP, NAMED, IN_A_FOLDER];
const WITH_THE_DELIVERIES: [&str; 3] = [IN_AN_ADDRESS, IN_A_HOOK, SIGNING];

fn has(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Submits with these variables beside the caller's own; answers the id.
fn submit(home: &Home, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let mut command: Command = home.command();
    command.envs(variables.iter().copied()).arg("run").args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path(), found),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

/// The names of the files in the home that hold a canary.
fn holding(home: &Home, canary: &str) -> BTreeSet<String> {
    let mut all = Vec::new();
    files(home.path(), &mut all);
    assert!(all.iter().any(|path| path.ends_with("homing.db")));
    let held = all.iter().filter(|path| std::fs::read(path).is_ok_and(|bytes| has(&bytes, canary)));
    held.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

/// Everything that homing answers with, for people and for programs.
fn answers(home: &Home, ids: &[String]) -> String {
    let mut said = String::new();
    let mut ask = |arguments: &[&str]| {
        for json in [&[][..], &["--json"]] {
            let answer = home.cli(arguments.iter().chain(json));
            said += &String::from_utf8_lossy(&answer.stdout);
            said += &answer.stderr;
        }
    };
    for command in ["list", "events", "inbox", "deliveries", "status", "config", "doctor"] {
        ask(&[command]);
    }
    for id in ids {
        ask(&["show", id]);
    }
    said
}

/// No process of homing's own, and no command line of anybody, has a canary.
fn look_at_processes(home: &Home, canaries: &[&str], tasks_are_gone: bool) {
    let ours = home.all_processes();
    assert!(ours.len() > 1, "keeper and daemon are there");
    for process in &ours {
        for file in ["cmdline", "environ"] {
            let bytes = std::fs::read(format!("/proc/{}/{file}", process.pid)).unwrap_or_default();
            let seen: Vec<_> = canaries.iter().filter(|canary| has(&bytes, canary)).collect();
            assert!(seen.is_empty(), "{} {file}: {seen:?}", process.name);
        }
    }
    if tasks_are_gone {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let seen: Vec<_> = canaries.iter().filter(|canary| has(&line, canary)).collect();
            // Tests beside this one type some of the same, for homes of their own; what is gone by now is nobody's.
            let around = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let of = |home: &[u8]| around.split(|byte| *byte == 0).any(|one| one == home);
            let ours = of(format!("HOMING_HOME={}", home.path().display()).as_bytes());
            let elsewhere = !ours && (around.is_empty() || has(&around, "HOMING_HOME="));
            assert!(seen.is_empty() || elsewhere, "{}: {seen:?}", String::from_utf8_lossy(&line));
        }
    }
}

fn settled(home: &Home, id: &str) -> Value {
    wait_for("the delivery to end", || {
        let answer = home.cli(["deliveries", "--task", id, "--json"]).ok().json();
        let items = answer["items"].as_array()?;
        items.iter().find(|item| item["state"] != "pending").cloned()
    })
}

/// Every way in, and ends of every sort; answers the tasks, and of them the one that prints its secret.
fn scenario(home: &Home, receiver: &Receiver) -> (Vec<String>, String) {
    let scratch = home.scratch().display().to_string();
    std::fs::write(home.scratch().join("token"), format!("{IN_A_FILE}\n")).unwrap();
    let inherited = ("MY_API_TOKEN", INHERITED);
    let url = format!("http://127.0.0.1:{}/hook?token={IN_AN_ADDRESS}", receiver.port());
    let key = format!("whsec_{SIGNING}");
    let hook = format!("exec:cd '{scratch}' && cat > told; env > hooked; echo {IN_A_HOOK} > /dev/null");
    let mut ids = Vec::new();

    // In the command line, in every way, with a failure at the end, and told to a command and an address.
    let line = format!("printf '%s,' {GIVEN} {IN_A_FILE} {INHERITED} {SET} > argv; echo $A,$B > env; exit 3");
    let secrets =
        ["--secret", &format!("A={GIVEN}"), "--secret", "B=@token", "--env", &format!("DB_PASSWORD={SET}")];
    let told =
        ["--notify", "inbox", "--notify", &hook, "--notify", &url, "--notify-secret", &key, "-c", &line];
    ids.push(submit(home, &[inherited, ("HOOK_TOKEN", IN_A_HOOK)], &[&secrets[..], &told[..]].concat()));
    // Shown in every other place.
    let (name, label) = (format!("n-{NAMED}"), format!("l={NAMED}"));
    let shown = ["--name", &name, "--description", NAMED, "--label", &label, "--key", NAMED, "--", "true"];
    ids.push(submit(home, &[("MY_API_TOKEN", NAMED)], &shown));
    // Never started: the reason names the program and the folder.
    let folder = home.scratch().join(IN_A_FOLDER);
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("nothing-here");
    std::fs::write(&program, "#!/nowhere/at/all").unwrap();
    ids.push(submit(home, &[("FOLDER_TOKEN", IN_A_FOLDER)], &["--", program.to_str().unwrap()]));
    ids.push(submit(
        home,
        &[("FOLDER_TOKEN", IN_A_FOLDER)],
        &["--cwd", &format!("/nowhere/{IN_A_FOLDER}"), "--", "true"],
    ));
    let input = folder.join("no-input");
    ids.push(submit(
        home,
        &[("FOLDER_TOKEN", IN_A_FOLDER)],
        &["--stdin", input.to_str().unwrap(), "--", "cat"],
    ));
    // Printed, and said as progress, after the daemon that knew it was killed.
    let program = home.program().display();
    let line = format!(
        "{}; '{program}' progress 40 \"at $PRINTED_TOKEN\"; echo \"it is $PRINTED_TOKEN\"",
        gate("go")
    );
    let printing = submit(home, &[("PRINTED_TOKEN", PRINTED)], &["-c", &line]);
    ids.push(printing.clone());
    // Stopped, with the secret in its name as processes go.
    ids.push(submit(home, &[inherited], &["-c", &format!(": {INHERITED}; sleep 1000")]));
    let stopped = ids.last().unwrap().clone();
    // Over HTTP.
    let body = json!({
        "argv": ["sh", "-c", "exit 0", OVER_HTTP], "env": { "PATH": "/bin:/usr/bin", "HTTP_TOKEN": OVER_HTTP },
        "secrets": { "H": { "value": OVER_HTTP } }, "description": OVER_HTTP,
    });
    let accepted = home.post("/v1/tasks", &body);
    assert_eq!(accepted.status, 201);
    ids.push(accepted.json()["id"].as_str().unwrap().to_owned());
    let refused = home.post("/v1/tasks", &json!({ "argv": ["true"], "secrets": { "H": OVER_HTTP } }));
    assert!(refused.status == 422 || refused.status == 400, "{}", refused.status);
    assert!(!refused.json().to_string().contains(OVER_HTTP));

    let _ = home.until_status(&printing, "running");
    let _ = home.until_status(&stopped, "running");
    look_at_processes(home, &[&GONE[..], &WITH_THE_DELIVERIES[..]].concat(), false);
    home.kill(home.daemon_pid());
    std::fs::write(home.scratch().join("go"), b"").unwrap();
    let _ = home.cli(["stop", &stopped]).ok();
    (ids, printing)
}

#[test]
fn p11_no_secret_is_on_the_disk_in_a_process_list_or_in_an_answer() {
    let home = super::home();
    let echo = format!("no such place: /hook?token={IN_AN_ADDRESS}");
    let receiver = Receiver::new([Script::status(410).body(echo)]);
    std::fs::create_dir(home.path()).unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let config = format!("[webhook]\nsecret = \"whsec_{CONFIGURED}\"\n");
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    let (ids, printing) = scenario(&home, &receiver);
    let ended: Vec<Value> = ids.iter().map(|id| home.ended(id)).collect();
    assert_eq!(ended[0]["outcome"]["exit_code"], 3, "{}", ended[0]);
    for never in &ended[2..5] {
        assert_eq!(never["status"], "start_failed", "{never}");
        assert!(never["outcome"]["reason"].to_string().contains("[secret FOLDER_TOKEN]"), "{never}");
    }
    let _ = settled(&home, &ids[0]);
    wait_for("both deliveries to end", || {
        (home.get("/v1/status").json()["deliveries"]["pending"] == 0).then_some(())
    });

    // Each command got what was meant for it, byte for byte.
    let read = |name: &str| std::fs::read_to_string(home.scratch().join(name)).unwrap();
    assert_eq!(read("argv"), format!("{GIVEN},{IN_A_FILE},{INHERITED},{SET},"));
    assert_eq!(read("env"), format!("{GIVEN},{IN_A_FILE}\n"));
    assert_eq!(home.output(&printing), format!("it is {PRINTED}\n").into_bytes(), "the output is the user's");
    let command = ended[0]["command"].as_str().unwrap();
    for name in ["A", "B", "MY_API_TOKEN", "DB_PASSWORD"] {
        assert!(command.contains(&format!("[secret {name}]")), "{command}");
    }

    look_at_processes(&home, &[&GONE[..], &WITH_THE_DELIVERIES[..]].concat(), true);
    let told = read("told") + &read("hooked") + &String::from_utf8_lossy(&receiver.requests()[0].body);
    let said = answers(&home, &ids) + &told;
    assert!(
        said.contains("it is [secret PRINTED_TOKEN]") && said.contains("at [secret PRINTED_TOKEN]"),
        "{said}"
    );
    for canary in GONE.iter().chain(&WITH_THE_DELIVERIES).chain(&[CONFIGURED]) {
        assert!(!said.contains(canary), "{canary} is told: {said}");
    }
    let deliveries = home.cli(["deliveries", "--task", &ids[0], "--json"]).ok().json();
    let hooks: Vec<_> =
        deliveries["items"].as_array().unwrap().iter().filter_map(|item| item["hook"].as_str()).collect();
    let hook = home.task(hooks[0]).to_string();
    assert!(hook.contains("[secret HOOK_TOKEN]") && !hook.contains("canary"), "{hook}");
    for canary in GONE {
        let allowed: BTreeSet<String> =
            if canary == PRINTED { ["output.log".to_owned()].into() } else { BTreeSet::new() };
        assert_eq!(holding(&home, canary), allowed, "{canary}");
    }
    let copies = ["config.toml", "config.last-good.toml"].map(str::to_owned);
    assert_eq!(holding(&home, CONFIGURED), copies.into(), "where the user put it, and its last good copy");
    // What a retry or `redeliver` needs is in the ledger and nowhere else.
    for canary in WITH_THE_DELIVERIES {
        let held = holding(&home, canary);
        assert!(
            !held.is_empty() && held.iter().all(|name| name.starts_with("homing.db")),
            "{canary}: {held:?}"
        );
    }
}

#[test]
fn p11_a_command_line_that_gives_a_secret_away_runs_as_it_is_and_is_shown_masked() {
    let home = super::home();
    let line = [
        "run",
        "--secret",
        "GIVEN=canary-6",
        "--",
        "sh",
        "-c",
        "cat /proc/$$/cmdline > argv; env > env",
        "x",
        "--password=canary 1",
        "--token",
        "canary-2",
        "Authorization: Bearer canary-3",
        "https://ann:canary-4@x.example",
        "[secret password]",
        "API_KEY=canary-6",
    ];
    let id = home.cli(line).ok().text();
    let task = home.ended(&id);
    let argv: Vec<_> = home.truth("argv").split('\0').skip(3).map(str::to_owned).collect();
    assert_eq!(argv, [&line[7..], &[""]].concat(), "byte for byte");
    let shown = task.to_string() + &home.cli(["events"]).ok().text();
    assert!(
        !shown.contains("canary") && shown.contains("[secret GIVEN]") && !shown.contains("HOMING_MASKED"),
        "{shown}"
    );
    assert!(!home.truth("env").contains("HOMING_MASKED"));
    assert_eq!(holding(&home, "canary"), BTreeSet::new());
}

/// Submits while the keeper stands still, so that the task is accepted and cannot start; then nobody is left.
fn accepted_and_orphaned(home: &Home, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let keeper = home.keeper_pid();
    freeze(keeper);
    let id = submit(home, variables, arguments);
    let daemon = home.find_daemon().unwrap().pid;
    home.kill_at_once(&[daemon, keeper]);
    wait_for("nobody", || home.all_processes().is_empty().then_some(()));
    id
}

#[test]
fn p11_a_launch_by_another_daemon_puts_the_secrets_back_while_they_are_to_be_had() {
    let home = super::home();
    let token = [("MY_API_TOKEN", INHERITED)];
    let line = format!("echo {INHERITED} --password={SET} > argv");
    let id = accepted_and_orphaned(&home, &token, &["-c", &line]);
    assert_eq!(holding(&home, INHERITED), ["env".to_owned()].into(), "beside the task that may still start");
    assert_eq!(home.ended(&id)["status"], "succeeded");
    assert_eq!(home.truth("argv"), format!("{INHERITED} --password={SET}\n"));
    assert_eq!(holding(&home, INHERITED), BTreeSet::new());
    assert_eq!(holding(&home, SET), BTreeSet::new());

    let secret = format!("A={GIVEN}");
    let id = accepted_and_orphaned(
        &home,
        &[],
        &["--secret", &secret, "-c", &format!("echo --password={GIVEN} > given")],
    );
    assert_eq!(holding(&home, GIVEN), BTreeSet::new(), "not even while it waits");
    let task = home.ended(&id);
    assert_eq!(task["status"], "start_failed", "{task}");
    assert!(task["outcome"]["reason"].to_string().contains("secret unavailable: A"), "{task}");
    assert_eq!(home.truth("given"), "", "it never ran");
}

#[test]
fn p11_a_target_with_the_value_of_a_secret_in_it_is_refused() {
    let home = super::home();
    let secret = format!("A={GIVEN}");
    for target in [format!("exec:post {GIVEN}"), format!("https://x.example/?t={GIVEN}")] {
        let refused = home.cli(["run", "--secret", &secret, "--notify", &target, "--", "true"]);
        assert_eq!(refused.code, 1);
        assert!(
            refused.stderr.contains("secret `A`") && !refused.stderr.contains(GIVEN),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn p11_a_secret_at_the_cut_of_a_tail_leaves_no_half_in_the_notice() {
    let home = super::home();
    let token = [("MY_API_TOKEN", INHERITED)];
    // Wide characters: the stretch that is read first begins in the middle of the value.
    for (filler, count) in [("x", 1_990), ("\u{1f600}", 1_996), ("\u{1f600}", 1_999), ("\u{1f600}", 2_001)] {
        let line = format!("printf %s \"$MY_API_TOKEN\"; printf '{filler}%.0s' $(seq {count})");
        let id = submit(&home, &token, &["--owner", "ann", "-c", &line]);
        let _ = home.ended(&id);
        let inbox = home.cli(["inbox", "--owner", "ann", "--ack", "--json"]).ok().json();
        let tail = inbox["items"][0]["output_tail"].as_str().unwrap().to_owned();
        assert!(tail.starts_with(|c: char| "[secrtMY_API_TOKEN] \u{1f600}x".contains(c)), "{tail}");
        assert!(!tail.contains("5d20e4") && !tail.contains("e4") && !tail.contains("canary"), "{tail}");
        assert!(tail.chars().count() <= 2_000);
    }
}

#[test]
fn a_secret_that_cannot_be_read_is_told_with_its_file() {
    let home = super::home();
    let file = home.scratch().join("no such file");
    let refused = home.cli(["run", "--secret", &format!("TOKEN=@{}", file.display()), "--", "true"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let said = format!("the secret `TOKEN` could not be read from {}: No such file", file.display());
    assert!(refused.stderr.contains(&said), "{refused:?}");
}

/// How often bytes stand in the writable memory of a process. None where it may not be looked at.
fn in_memory(pid: u32, bytes: &[u8]) -> Option<usize> {
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let mut count = 0;
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        let mut held = vec![0; usize::try_from(end - start).ok()?];
        // What is not there is not read; a stack grows meanwhile.
        if std::os::unix::fs::FileExt::read_exact_at(&memory, &mut held, start).is_ok() {
            count += held.windows(bytes.len()).filter(|window| *window == bytes).count();
        }
    }
    Some(count)
}

#[test]
fn p11_copies_of_a_secret_are_overwritten_after_the_start() {
    let home = super::home();
    let canary = ["canary", "8d1f6c", "in", "memory"].join("-");
    let id = home.submit(&["--secret", &format!("TOKEN={canary}")], "exec sleep 1000");
    let _ = home.until_status(&id, "running");
    let of = |pid| in_memory(pid, canary.as_bytes());
    let Some(_) = of(home.shim_pid(&id)) else {
        return left_out("no memory of another process can be read here");
    };
    // In the daemon, what the HTTP library read from the socket is not ours to overwrite.
    let most = [(home.daemon_pid(), 1), (home.shim_pid(&id), 0), (home.keeper_pid(), 0)];
    wait_until("the copies to be gone", PATIENCE, || {
        let found = most.map(|(pid, most)| (of(pid), most));
        let gone = found.iter().all(|(found, most)| found.is_none_or(|found| found <= *most));
        if gone { Ok(()) } else { Err(format!("daemon, shim, keeper: {found:?}")) }
    });
}
