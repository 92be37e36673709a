//! System calls that fail once in a while, on the way from an accepted task to its end. `strace` injects the failures.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use homing_testkit::{Home, gate, left_out, wait_for};

/// Makes calls of a process fail until it is dropped.
struct Injection(Child, PathBuf);

impl Injection {
    /// None where no process can be traced. `rule` is that of strace's `inject`.
    fn into(home: &Home, pid: u32, rule: &str) -> Option<Self> {
        Self::at(home, pid, rule, &[])
    }

    /// The same of calls that other options of strace choose.
    fn at(home: &Home, pid: u32, rule: &str, which: &[&str]) -> Option<Self> {
        let call = rule.split(':').next().unwrap_or_default();
        let log = home.scratch().join(format!("strace.{call}"));
        let tracing = Command::new("strace")
            .args(["-f", "-p", &pid.to_string(), "-e", &format!("trace={call}")])
            .args(["-e", &format!("inject={rule}")])
            .args(which)
            .arg("-o")
            .arg(&log)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut strace) = tracing else {
            left_out("there is no strace here");
            return None;
        };
        let attached = wait_for("strace to attach or to give up", || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let traced = status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"));
            (traced || strace.try_wait().unwrap().is_some()).then_some(traced)
        });
        if !attached {
            left_out("no process can be traced here");
            return None;
        }
        Some(Self(strace, log))
    }

    fn has_struck(&self) -> bool {
        std::fs::read_to_string(&self.1).unwrap_or_default().contains("(INJECTED)")
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        // Its death lets them go; asked politely it may wait for a process that it holds itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Every task that the daemon accepted ends by itself, with its exit code or a reason for why it has none.
fn all_end(home: &Home, rule: &str) {
    let listed = home.cli(["list", "--all", "--json"]).ok();
    for task in listed.json()["items"].as_array().unwrap() {
        let id = task["id"].as_str().unwrap();
        let task = home.ended(id);
        let outcome = &task["outcome"];
        let ran = outcome["exit_code"] == 3;
        let told = task["status"] == "start_failed" && outcome["reason"].is_string();
        assert!(ran || told, "{rule}: {task}");
    }
}

fn submit_under(home: &Home, pid: u32, rules: &[&str]) {
    for rule in rules {
        let Some(injection) = Injection::into(home, pid, rule) else { return };
        for _ in 0..4 {
            // The answer may be lost too; what was accepted is in the list.
            let _ = home.cli(["run", "-c", "exit 3"]);
        }
        drop(injection);
        all_end(home, rule);
    }
}

#[test]
fn p1_a_launch_that_fails_in_the_daemon_is_repeated() {
    let home = super::home();
    let daemon = home.daemon_pid();
    submit_under(
        &home,
        daemon,
        &[
            "sendto:error=ENOBUFS:when=1+2",
            "sendto:error=ENOMEM:when=2+2",
            // Longer than the daemon repeats one send.
            "sendto:error=ENOBUFS:when=2+60",
            "sendmsg:error=ENOBUFS:when=1+2",
            "sendmsg:error=ETOOMANYREFS:when=1+2",
            "socketpair:error=ENFILE:when=1+2",
            "recvfrom:error=ENOMEM:when=3+5",
            "recvmsg:error=ENOMEM:when=1+2",
            "flock:error=ENOLCK:when=1+2",
        ],
    );
}

#[test]
fn p1_a_launch_that_fails_in_keeper_or_shim_is_repeated() {
    let home = super::home();
    let _ = home.daemon_pid();
    let keeper = home.keeper_pid();
    submit_under(
        &home,
        keeper,
        &[
            "recvmsg:error=ENOMEM:when=1+3",
            "clone:error=EAGAIN:when=1+2",
            "recvfrom:error=ENOBUFS:when=1",
            "sendto:error=ENOBUFS:when=1+2",
            "poll:error=ENOMEM:when=1+2",
            "signalfd4:error=ENFILE:when=1",
            "flock:error=ENOLCK:when=1",
            "pipe2:error=ENFILE:when=1",
            "renameat2:error=EIO:when=1",
        ],
    );
}

#[test]
fn p8_a_stop_that_could_not_be_sent_is_sent_again() {
    let home = super::home();
    let id = home.submit(&[], "exec sleep 1000");
    let _ = home.until_status(&id, "running");
    // More failures in a row than the daemon repeats one send.
    let rule = "sendto:error=ENOBUFS:when=1..60";
    let Some(injection) = Injection::into(&home, home.daemon_pid(), rule) else { return };
    let _ = home.cli(["stop", &id]);
    drop(injection);
    assert_eq!(home.ended(&id)["status"], "stopped");
}

#[test]
fn p2_a_recovery_that_meets_a_shortage_loses_no_task() {
    let home = super::home();
    let boot = ["-P", "/proc/sys/kernel/random/boot_id"];
    for (number, (rule, which)) in [
        ("openat:error=EMFILE:when=1", &boot[..]),
        ("read:error=EIO:when=1", &boot[..]),
        ("connect:error=EAGAIN:when=1", &[]),
        ("openat:error=EMFILE:when=14", &[]),
        ("flock:error=ENOLCK:when=2", &[]),
        ("recvfrom:error=ENOMEM:when=1", &[]),
        ("sendto:error=ENOBUFS:when=1", &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("go{number}");
        let id = home.submit(&[], &format!("{}; exit 3", gate(&name)));
        let _ = home.until_status(&id, "running");
        // Every daemon that the keeper starts meanwhile is traced from its first call on.
        let Some(injection) = Injection::at(&home, home.keeper_pid(), rule, which) else { return };
        let _ = home.kill_daemon();
        wait_for(&format!("{rule} to strike"), || injection.has_struck().then_some(()));
        drop(injection);
        home.open(&name);
        let task = home.ended(&id);
        assert_eq!(task["outcome"]["exit_code"], 3, "{rule}: {task}");
    }
}
