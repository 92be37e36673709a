//! Another build takes over a home in which tasks run: none of them notices.
//!
//! The previous build is a copy of this one that says another version of itself, at another path; with `HOMING_TEST_PREVIOUS` it is whatever binary that names, a
//! release from before for instance.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::path::{Path, PathBuf};

use homing_testkit::{Home, alive, copy_program, gate, wait_for};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A version of the same length, which can take the other's place in a program.
const EARLIER: &str = "0.0.9";

/// The previous build, in this folder.
fn previous(folder: &Path) -> PathBuf {
    let place = folder.join("previous-homing");
    let given =
        std::env::vars_os().find_map(|(name, value)| (name == "HOMING_TEST_PREVIOUS").then_some(value));
    if let Some(given) = given {
        copy_program(Path::new(&given), &place);
        return place;
    }
    let unpatched = folder.join("unpatched-homing");
    let mut bytes = std::fs::read(env!("CARGO_BIN_EXE_homing")).unwrap();
    assert_eq!(VERSION.len(), EARLIER.len(), "choose another earlier version");
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(VERSION.len()).position(|window| window == VERSION.as_bytes())
    {
        at += found;
        bytes[at..at + VERSION.len()].copy_from_slice(EARLIER.as_bytes());
        at += VERSION.len();
    }
    std::fs::write(&unpatched, bytes).unwrap();
    std::fs::set_permissions(&unpatched, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // Copied by another process: see `copy_program`.
    copy_program(&unpatched, &place);
    std::fs::remove_file(unpatched).unwrap();
    place
}

/// Calls another build of the command line for the same home.
fn by(program: &Path, home: &Home, arguments: &[&str]) -> homing_testkit::Output {
    let mut command = std::process::Command::new(program);
    command.args(arguments).env("HOMING_HOME", home.path()).env("NO_COLOR", "1").env_remove("HOMING_OWNER");
    Home::finish(command.stdin(std::process::Stdio::null()).current_dir(home.scratch()))
}

fn version(home: &Home) -> String {
    let status = home.cli(["daemon", "status", "--json"]).ok().json();
    status["daemon"]["version"].as_str().unwrap().to_owned()
}

#[test]
fn p3_a_restart_onto_another_build_disturbs_no_task() {
    let home = super::home();
    let old = previous(home.scratch());
    let _ = by(&old, &home, &["daemon", "start"]).ok();
    let was = version(&home);
    let doctor = home.cli(["doctor", "--json"]).json();
    let daemon = doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == "daemon").unwrap();
    if was != VERSION {
        assert!(
            daemon["state"] == "warn" && daemon["advice"].as_str().unwrap().contains("daemon restart"),
            "{daemon}"
        );
    }
    let submit = |options: &[&str], line: &str| {
        by(&old, &home, &[&["run"], options, &["-c", line]].concat()).ok().text()
    };
    let count =
        "i=0; while [ ! -e go ]; do i=$((i+1)); echo line $i; sleep 0.005; done; echo $i > counted; exit 6";
    let counting = submit(&["--watch", "line 3$"], count);
    let terminal = submit(&["--pty"], &format!("{}; tty && exit 4", gate("go")));
    let reading = submit(&["--stdin", "pipe"], "read line; echo got $line; exit 5");
    let timed = submit(&["--timeout", "60s"], &gate("go"));
    let ids = [&counting, &terminal, &reading, &timed];
    for id in ids {
        let _ = home.until_status(id, "running");
    }
    let pids: Vec<_> = ids.map(|id| home.task(id)["pid"].clone()).into();
    let daemon = home.daemon_pid();
    let said = home.cli(["daemon", "restart"]).ok();
    assert!(said.text().contains(&format!("version {VERSION}")), "{said:?}");
    assert_eq!(version(&home), VERSION);
    assert_ne!(home.daemon_pid(), daemon);
    wait_for("the one before to leave", || (!alive(daemon)).then_some(()));
    for (id, pid) in ids.iter().zip(&pids) {
        let task = home.task(id);
        assert_eq!((&task["status"], &task["pid"]), (&"running".into(), pid), "{task}");
        assert_eq!(task["attempt"], 1);
    }
    // The new one speaks with the shims of the old one.
    assert_eq!(home.cli(["input", &reading, "word", "--enter"]).ok().code, 0);
    home.open("go");
    let codes = [(&counting, 6), (&terminal, 4), (&reading, 5), (&timed, 0)];
    for (id, code) in codes {
        assert_eq!(home.ended(id)["outcome"]["exit_code"], code, "{id}");
    }
    let counted: usize = home.truth("counted").trim().parse().unwrap();
    let lines: String = (1..=counted).map(|number| format!("line {number}\n")).collect();
    assert_eq!(String::from_utf8(home.output(&counting)).unwrap(), lines, "no line is lost or told twice");
    assert_eq!(home.output(&reading), b"got word\n");
    // And back again: a release that turns out to be bad is left the same way, while something runs.
    let back = home.submit(&[], &format!("{}; exit 3", gate("back")));
    let _ = home.until_status(&back, "running");
    let _ = by(&old, &home, &["daemon", "restart"]).ok();
    assert_eq!(version(&home), was);
    home.open("back");
    assert_eq!(home.ended(&back)["outcome"]["exit_code"], 3);
    wait_for("the shims to leave", || home.processes("homing-shim").is_empty().then_some(()));
}

#[test]
fn a_program_that_was_replaced_under_the_daemon_is_told_and_a_restart_takes_the_new_one() {
    let home = super::home();
    let program = home.scratch().join("homing-installed");
    copy_program(Path::new(env!("CARGO_BIN_EXE_homing")), &program);
    let _ = by(&program, &home, &["daemon", "start"]).ok();
    let id = by(&program, &home, &["run", "-c", &gate("go")]).ok().text();
    let _ = home.until_status(&id, "running");
    // As package managers do it: the new file takes the old one's name.
    let fresh = home.scratch().join("homing-fresh");
    copy_program(Path::new(env!("CARGO_BIN_EXE_homing")), &fresh);
    std::fs::rename(&fresh, &program).unwrap();
    let told = |home: &Home| {
        let doctor = by(&program, home, &["doctor", "--json"]).json();
        let checks = doctor["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "daemon").unwrap()
    };
    let check = told(&home);
    assert!(check["state"] == "warn" && check["detail"].as_str().unwrap().contains("replaced"), "{check}");
    let _ = by(&program, &home, &["daemon", "restart"]).ok();
    assert_eq!(told(&home)["state"], "ok");
    let running = std::fs::read_link(format!("/proc/{}/exe", home.daemon_pid())).unwrap();
    assert_eq!(running, program);
    assert_eq!(home.task(&id)["status"], "running");
    home.open("go");
    assert_eq!(home.ended(&id)["status"], "succeeded");
}
