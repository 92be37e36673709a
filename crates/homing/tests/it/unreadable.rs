//! Facts that cannot be read decide nothing about a task that lives.
use std::path::PathBuf;
use std::process::Command;

use homing_testkit::{Home, gate, wait_for};

fn folder(home: &Home, id: &str) -> PathBuf {
    home.path().join("tasks").join(id)
}

#[test]
fn p2_what_lies_in_the_place_of_the_record_of_a_living_task_is_not_believed() {
    let home = super::home();
    for put in
        ["mkdir \"${HOMING_OUTPUT%/*}/exit\"", "head -c 4096 /dev/urandom > \"${HOMING_OUTPUT%/*}/exit\""]
    {
        let id = home.submit(&[], &format!("{put}; touch there; {}; echo alive; exit 3", gate("go")));
        wait_for("the damage", || home.scratch().join("there").exists().then_some(()));
        home.kill(home.daemon_pid());
        let _ = home.daemon_pid();
        // Its shim holds the lock.
        let _ = home.until_status(&id, "running");
        std::fs::write(home.scratch().join("go"), b"").unwrap();
        let task = home.ended(&id);
        assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &3.into()));
        assert_eq!(home.output(&id), b"alive\n");
        assert!(folder(&home, &id).exists());
        for name in ["there", "go"] {
            std::fs::remove_file(home.scratch().join(name)).unwrap();
        }
    }
}

#[test]
fn p2_a_daemon_without_descriptors_declares_nobody_lost() {
    let home = super::home();
    let ids: Vec<String> = (0..30).map(|_| home.submit(&[], &format!("{}; exit 5", gate("go")))).collect();
    for id in &ids {
        let _ = home.until_status(id, "running");
    }
    let keeper = home.keeper_pid();
    let _ = home.cli(["daemon", "stop"]).ok();
    home.kill(keeper);
    let start = format!("ulimit -n 48; exec '{}' daemon start", home.program().display());
    let own = home.command();
    let mut shell = Command::new("sh");
    shell.args(["-c", &start]);
    shell.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let started = shell.output().unwrap();
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    // However little it can adopt now, a daemon with enough of them finds all of them alive.
    let keeper = home.keeper_pid();
    let _ = home.cli(["daemon", "stop"]);
    home.kill(keeper);
    let _ = home.cli(["daemon", "start"]).ok();
    std::fs::write(home.scratch().join("go"), b"").unwrap();
    for id in &ids {
        let task = home.ended(id);
        assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&"failed".into(), &5.into()));
    }
}

#[test]
fn a_pipe_in_the_place_of_the_configuration_is_told_and_nobody_waits_for_it() {
    let home = super::home();
    let id = home.submit(&[], &gate("go"));
    let file = home.path().join("config.toml");
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    home.kill(home.daemon_pid());
    let status = home.cli(["status"]);
    assert!(
        status.text().contains("plain file") || status.stderr.contains("plain file"),
        "{} {}",
        status.text(),
        status.stderr
    );
    std::fs::remove_file(&file).unwrap();
    std::fs::write(home.scratch().join("go"), b"").unwrap();
    assert_eq!(home.ended(&id)["status"], "succeeded");
}
