//! Lets system calls fail once, one after the other: of daemon, keeper and shim between a claim and the command's start, and of a daemon that
//! recovers what it finds.
//!
//! `cargo xtask sweep failures`. Whatever fails, a task is launched again, or it ends with the reason, by itself: nothing is restarted and nobody
//! asks again. A sweep of a call ends when it is no longer reached.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use homing_testkit::{Home, freeze, gate, wait_for};

/// Calls of a daemon that launches, with what they may fail with.
const DAEMON: &[(&str, &str)] = &[
    ("openat", "EMFILE"),
    ("mkdir", "EIO"),
    ("socketpair", "ENFILE"),
    ("sendmsg", "ENOBUFS"),
    ("sendmsg", "ETOOMANYREFS"),
    ("sendto", "ENOMEM"),
    ("recvfrom", "ENOMEM"),
    ("recvmsg", "ENOMEM"),
    ("epoll_ctl", "ENOMEM"),
    ("flock", "ENOLCK"),
    ("write", "EIO"),
    ("pwrite64", "EIO"),
    ("fdatasync", "EIO"),
    ("pread64", "EIO"),
    ("read", "EIO"),
    ("connect", "EAGAIN"),
    ("socket", "ENFILE"),
];
/// Calls of keeper and shim, from the request to the record.
const SHIM: &[(&str, &str)] = &[
    ("recvmsg", "ENOMEM"),
    ("recvfrom", "ENOMEM"),
    ("sendto", "ENOBUFS"),
    ("clone", "EAGAIN"),
    ("close_range", "EPERM"),
    ("setsid", "EPERM"),
    ("prctl", "EINVAL"),
    ("flock", "ENOLCK"),
    ("openat", "EMFILE"),
    ("renameat2", "EIO"),
    ("fallocate", "EIO"),
    ("ftruncate", "EIO"),
    ("pipe2", "ENFILE"),
    ("clone3", "EAGAIN"),
    ("signalfd4", "ENFILE"),
    ("poll", "ENOMEM"),
    ("ppoll", "ENOMEM"),
    ("read", "EIO"),
    ("socket", "ENFILE"),
    ("fcntl", "EMFILE"),
];
/// Calls of a daemon that opens a home with live tasks in it.
const RECOVERY: &[(&str, &str)] = &[
    ("connect", "EAGAIN"),
    ("connect", "ENOBUFS"),
    ("socket", "ENFILE"),
    ("openat", "EMFILE"),
    ("read", "EIO"),
    ("flock", "ENOLCK"),
    ("recvfrom", "ENOMEM"),
    ("recvmsg", "ENOMEM"),
    ("sendto", "ENOBUFS"),
    ("sendmsg", "ENOBUFS"),
    ("socketpair", "ENFILE"),
    ("pidfd_open", "EMFILE"),
    ("epoll_ctl", "ENOMEM"),
    ("statx", "ENOMEM"),
    ("getsockopt", "ENOBUFS"),
];
/// No call is tried more often than this for one task.
const MOST: u32 = 60;
const CODE: u64 = 5;

/// From the command line: `failures`, and calls to keep to.
pub(crate) fn main(program: &Path, only: &[&str]) -> Result<()> {
    let mut failures = 0;
    let mut found = Vec::new();
    for (victim, calls) in [("daemon", DAEMON), ("shim", SHIM), ("recovery", RECOVERY)] {
        for (call, error) in calls {
            if !only.is_empty() && !only.contains(call) && !only.contains(&victim) {
                continue;
            }
            let mut home = Home::new(program);
            let before = failures;
            for when in 1..=MOST {
                let _ = home.daemon_pid();
                let reached = match victim {
                    "recovery" => recover(&home, call, error, when),
                    _ => launch(&home, victim, call, error, when),
                };
                match reached {
                    Ok(true) => failures += 1,
                    Ok(false) => break,
                    Err(why) => {
                        eprintln!("VIOLATION: {victim}, {call} number {when} fails with {error}: {why:#}");
                        found.push(format!("{victim} {call}:{error} number {when}"));
                        failures += 1;
                        // What hangs in the old one says nothing of the next.
                        home = Home::new(program);
                    }
                }
            }
            eprintln!("  {victim} at {call} ({error}): {} failures", failures - before);
        }
    }
    ensure!(
        found.is_empty(),
        "{} of {failures} failures were not got over: {}",
        found.len(),
        found.join("; ")
    );
    println!(
        "{failures} failures of system calls: every task was launched again, or ended with the reason; no violation"
    );
    Ok(())
}

/// One task, one failure between its submit and its end. False if the call was not reached so often.
fn launch(home: &Home, victim: &str, call: &str, error: &str, when: u32) -> Result<bool> {
    let keeper = || Some(home.processes("homing-keeper").first()?.pid);
    let target = if victim == "daemon" { home.daemon_pid() } else { wait_for("a keeper", keeper) };
    let truth = home.scratch().join(format!("{victim}-{call}-{error}-{when}"));
    let tracing = Tracing::attach(home, target, call, error, when)?;
    let line = format!("echo run >> '{}'; exit {CODE}", truth.display());
    let mut submitting = home.spawn(["run", "-c", &line]);
    let _ = look_for(|| tracing.struck() || submitting.try_wait().is_ok_and(|ended| ended.is_some()));
    // Beyond the answer, the start goes on.
    let _ = look_for(|| tracing.struck() || truth.exists());
    let struck = tracing.end()?;
    let submitted = submitting.wait_with_output()?;
    let id = String::from_utf8_lossy(&submitted.stdout).trim().to_owned();
    let ended = if submitted.status.success() { Some(end(home, &id)?) } else { None };
    let runs = std::fs::read_to_string(&truth).map_or(0, |text| text.lines().count());
    ensure!(runs <= 1, "it ran {runs} times");
    if let Some(task) = ended {
        let told = task["status"] == "start_failed" && task["outcome"]["reason"].is_string() && runs == 0;
        let ran = task["outcome"]["exit_code"] == CODE && runs == 1;
        // What fails in the shim may fail in the command, which is traced with it.
        let traced = victim == "shim" && task["status"].as_str().is_some_and(|status| status == "failed");
        ensure!(told || ran || traced, "{runs} runs, {task}");
    }
    Ok(struck)
}

/// A task that runs through a death of the daemon, one that ends in the middle, and one failure of the daemon that comes after.
fn recover(home: &Home, call: &str, error: &str, when: u32) -> Result<bool> {
    let name = format!("{call}-{error}-{when}");
    let (first, second) = (format!("{name}-during"), format!("{name}-after"));
    let during = home.submit(&[], &format!("{}; exit {CODE}", gate(&first)));
    let after = home.submit(&[], &format!("{}; exit {CODE}", gate(&second)));
    for id in [&during, &after] {
        let _ = home.until_status(id, "running");
    }
    let shims = home.processes("homing-shim").len();
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    freeze(daemon);
    home.open(&first);
    wait_for("the first end", || {
        (home.processes("homing-shim").len() < shims || record(home, &during)).then_some(())
    });
    // The next daemon is a child of the keeper, and traced from its first call on.
    let tracing = Tracing::attach(home, keeper, call, error, when)?;
    home.kill(daemon);
    let _ = look_for(|| tracing.struck());
    let struck = tracing.end()?;
    home.open(&second);
    for id in [&during, &after] {
        let task = end(home, id)?;
        ensure!(task["outcome"]["exit_code"] == CODE, "{task}");
    }
    Ok(struck)
}

fn record(home: &Home, id: &str) -> bool {
    home.path().join("tasks").join(id).join("exit").exists()
}

/// The task, once it has ended; an error if it does not.
fn end(home: &Home, id: &str) -> Result<serde_json::Value> {
    let answered = home.cli(["wait", id, "--timeout", "20s", "--json"]);
    let shown = home.cli(["show", id, "--json"]);
    ensure!(shown.code == 0, "{id} is not answered: {}", shown.stderr);
    let task = shown.json();
    match task["status"].as_str() {
        Some("queued" | "starting" | "running" | "stopping") | None => {
            bail!("it hangs: {} ({})", task, answered.stderr)
        }
        Some(_) => Ok(task),
    }
}

/// Looks for a condition for a moment; a failure comes soon or not at all.
fn look_for(mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..80 {
        if condition() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    false
}

/// `strace`, while it lets a call fail.
struct Tracing {
    strace: Child,
    log: std::path::PathBuf,
}

impl Tracing {
    fn attach(home: &Home, pid: u32, call: &str, error: &str, when: u32) -> Result<Self> {
        let log = home.scratch().join("strace.txt");
        let _ = std::fs::remove_file(&log);
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"))?.count();
        let strace = Command::new("strace")
            .args(["-f", "-p", &pid.to_string(), "-e", &format!("trace={call}")])
            .args(["-e", &format!("inject={call}:error={error}:when={when}"), "-o"])
            .arg(&log)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("strace is needed for a sweep")?;
        wait_for("strace to hold every thread", || {
            let all = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
            let held = all.flatten().filter(|thread| {
                let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
                status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
            });
            (held.count() >= threads).then_some(())
        });
        Ok(Self { strace, log })
    }

    fn struck(&self) -> bool {
        std::fs::read_to_string(&self.log).unwrap_or_default().contains("(INJECTED)")
    }

    /// Lets the processes go, and says whether the call failed.
    fn end(mut self) -> Result<bool> {
        self.strace.kill()?;
        self.strace.wait()?;
        Ok(self.struck())
    }
}
