//! Kills daemon, keeper or shim at every interesting system call of a task's life, one call after the other.
//!
//! `cargo xtask sweep`; with `failures` calls fail instead ([`failures`](crate::failures)). For each call by name and each time it is made, a fresh task is submitted while `strace` waits to send SIGKILL at that very
//! call; then the books are compared with the task's own mark. The sweep of a call ends when it is no longer reached.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use homing_sys::process;
use homing_testkit::{Home, wait_for};

use crate::failures;

/// Calls of the daemon: what it writes, syncs, sends and hears.
const DAEMON: &[&str] = &[
    "mkdir",
    "open",
    "openat",
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "socketpair",
    "sendmsg",
    "sendto",
    "recvfrom",
    "writev",
    "accept4",
    "close",
    "unlinkat",
    "epoll_ctl",
];
/// Calls of keeper and shim, from the fork to the record.
const SHIM: &[&str] = &[
    "recvmsg",
    "clone",
    "close_range",
    "setsid",
    "prctl",
    "flock",
    "openat",
    "unlinkat",
    "fallocate",
    "bind",
    "listen",
    "mkdir",
    "pipe2",
    "clone3",
    "ppoll",
    "pwrite64",
    "wait4",
    "sendto",
    "write",
    "fdatasync",
    "linkat",
    "fsync",
    "recvfrom",
    "rmdir",
];
/// No call is tried more often than this for one task.
const MOST: u32 = 40;
const CODE: u64 = 5;

/// What a sweep found.
#[derive(Debug, Default)]
struct Found {
    kills: u32,
    truth: u32,
    lost: u32,
    unstarted: u32,
    refused: u32,
}

/// From the command line.
pub(crate) fn main(arguments: &[&str]) -> Result<()> {
    let [program, only @ ..] = arguments else { bail!("usage: homing-bench sweep PATH-OF-HOMING [CALL…]") };
    let program = PathBuf::from(program).canonicalize()?;
    if let ["failures", only @ ..] = only {
        return failures::main(&program, only);
    }
    let mut found = Found::default();
    for (victim, calls) in [("daemon", DAEMON), ("shim", SHIM)] {
        for call in calls.iter().filter(|call| only.is_empty() || only.contains(call)) {
            let before = found.kills;
            // A home per call: what an earlier one left cannot help this one.
            let home = Home::new(&program);
            let _ = home.daemon_pid();
            for when in 1..=MOST {
                if !strike(&home, victim, call, when, &mut found)
                    .with_context(|| format!("{victim}, {call} number {when}"))?
                {
                    break;
                }
            }
            eprintln!("  {victim} at {call}: {} kills", found.kills - before);
        }
    }
    let Found { kills, truth, lost, unstarted, refused } = found;
    println!(
        "{kills} kills at system calls: {truth} ended with the truth, {lost} lost (their shim was killed), {unstarted} never started (every shim was killed), {refused} submits refused; no violation"
    );
    Ok(())
}

/// One task, one kill. False if the call was not reached so often.
fn strike(home: &Home, victim: &str, call: &str, when: u32, found: &mut Found) -> Result<bool> {
    // The keeper that lives, not the one that a daemon last heard of.
    let keeper = || Some(home.processes("homing-keeper").first()?.pid);
    let target = if victim == "daemon" { home.daemon_pid() } else { wait_for("a keeper", keeper) };
    let truth = home.scratch().join(format!("{victim}-{call}-{when}"));
    let mut strace = attach(target, call, when, home.scratch())?;
    let line = format!("echo run >> '{}'; echo out; exit {CODE}", truth.display());
    let mut submitting = home.spawn(["run", "-c", &line]);
    // A process that is killed while it is traced stays until its tracer lets go; strace is not always quick to.
    let trace = || std::fs::read_to_string(home.scratch().join("strace.txt")).unwrap_or_default();
    let settled =
        || trace().contains("killed by SIGKILL") || submitting.try_wait().is_ok_and(|ended| ended.is_some());
    let _ = look_for(settled);
    let _ = look_for(|| trace().contains("killed by SIGKILL"));
    let struck = trace().contains("killed by SIGKILL");
    strace.kill()?;
    strace.wait()?;
    let submitted = submitting.wait_with_output()?;
    let id = String::from_utf8_lossy(&submitted.stdout).trim().to_owned();
    let ended = submitted.status.success().then(|| home.ended(&id));
    let runs = std::fs::read_to_string(&truth).map_or(0, |text| text.lines().count());
    ensure!(runs <= 1, "it ran {runs} times");
    match ended {
        None => found.refused += 1,
        Some(task) if task["status"] == "lost" => {
            ensure!(victim == "shim", "lost, although only the daemon was killed: {task}");
            found.lost += 1;
        }
        // Every shim that was tried was killed before it could begin.
        Some(task) if victim == "shim" && task["status"] == "start_failed" && runs == 0 => {
            found.unstarted += 1;
        }
        // strace follows the command too; killed there, that is the truth.
        Some(task) if victim == "shim" && task["outcome"]["signal"] == 9 => found.truth += 1,
        Some(task) => {
            ensure!(task["outcome"]["exit_code"] == CODE && runs == 1, "{runs} runs, {task}");
            let output = home.output(task["id"].as_str().unwrap_or_default());
            ensure!(output == b"out\n", "output {:?}", String::from_utf8_lossy(&output));
            found.truth += 1;
        }
    }
    found.kills += u32::from(struck);
    wait_for("a daemon to be there again", || home.find_daemon());
    Ok(struck)
}

/// Looks for a condition for a moment; a kill comes soon or not at all.
fn look_for(mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..60 {
        if condition() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    false
}

/// Waits until strace holds the process and every thread of it.
fn attach(pid: u32, call: &str, when: u32, folder: &Path) -> Result<Child> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"))?.count();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-p", &pid.to_string(), "-e", &format!("trace={call}")]);
    strace.args(["-e", &format!("inject={call}:signal=SIGKILL:when={when}")]);
    strace
        .arg("-o")
        .arg(folder.join("strace.txt"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let strace = strace.spawn().context("strace is needed for a sweep")?;
    let traced = |thread: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
    };
    wait_for("strace to hold every thread", || {
        let all = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let held = all
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|id| traced(*id))
            .count();
        (held >= threads || process::stat(pid).is_none_or(|found| found.zombie)).then_some(())
    });
    Ok(strace)
}
