//! Lets system calls fail once, one after the other: of daemon, keeper and shim between a claim and the command's start, and of a daemon that
//! recovers what it finds.
//!
//! `cargo xtask sweep failures`. Whatever fails, a task is launched again, or it ends with the reason, by itself: nothing is restarted and nobody
//! asks again. Which calls there are is seen in a run of each path under `strace`, so that a call that is made from now on is swept from now
//! on. A sweep of a call ends when it is no longer reached.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use homing_testkit::{Home, freeze, gate, wait_for};

/// What a call may fail with, where that is not `EIO`.
const ERRORS: &[(&str, &[&str])] = &[
    ("accept4", &["EMFILE"]),
    ("clone", &["EAGAIN"]),
    ("clone3", &["EAGAIN"]),
    ("close_range", &["EPERM"]),
    ("connect", &["EAGAIN", "ENOBUFS"]),
    ("dup", &["EMFILE"]),
    ("epoll_create1", &["EMFILE"]),
    ("epoll_ctl", &["ENOMEM"]),
    ("eventfd2", &["EMFILE"]),
    ("fallocate", &["EIO", "ENOSPC"]),
    ("fcntl", &["EMFILE"]),
    ("flock", &["ENOLCK"]),
    ("fstat", &["ENOMEM"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("getsockname", &["ENOBUFS"]),
    ("getsockopt", &["ENOBUFS"]),
    ("inotify_add_watch", &["ENOSPC"]),
    ("inotify_init1", &["EMFILE"]),
    ("mkdir", &["EIO", "ENOSPC"]),
    ("mkdirat", &["EIO", "ENOSPC"]),
    ("newfstatat", &["ENOMEM"]),
    ("openat", &["EMFILE", "EIO"]),
    ("openat2", &["EMFILE"]),
    ("pidfd_open", &["EMFILE"]),
    ("pipe2", &["ENFILE"]),
    ("poll", &["ENOMEM"]),
    ("ppoll", &["ENOMEM"]),
    ("prctl", &["EINVAL"]),
    ("pwrite64", &["EIO", "ENOSPC"]),
    ("recvfrom", &["ENOMEM"]),
    ("recvmsg", &["ENOMEM"]),
    ("sendmsg", &["ENOBUFS", "ETOOMANYREFS"]),
    ("sendto", &["ENOBUFS", "ENOMEM"]),
    ("setsid", &["EPERM"]),
    ("setsockopt", &["ENOBUFS"]),
    ("signalfd4", &["ENFILE"]),
    ("socket", &["ENFILE"]),
    ("socketpair", &["ENFILE"]),
    ("statx", &["ENOMEM"]),
    ("timerfd_create", &["EMFILE"]),
];
/// Calls that are not let fail, and why.
const LEFT_OUT: &[(&str, &[&str])] = &[
    ("it does not return", &["exit", "exit_group", "rt_sigreturn", "restart_syscall"]),
    (
        "it cannot fail",
        &[
            "alarm",
            "clock_gettime",
            "getegid",
            "geteuid",
            "getgid",
            "getpgid",
            "getpid",
            "getppid",
            "getsid",
            "gettid",
            "getuid",
            "sched_yield",
            "set_robust_list",
            "set_tid_address",
            "umask",
        ],
    ),
    (
        "it fails for a wrong argument or a signal alone",
        &[
            "arch_prctl",
            "clock_nanosleep",
            "epoll_pwait",
            "epoll_wait",
            "futex",
            "getresgid",
            "getresuid",
            "getrlimit",
            "getrusage",
            "lseek",
            "pause",
            "prlimit64",
            "rseq",
            "rt_sigaction",
            "rt_sigpending",
            "rt_sigprocmask",
            "sched_getaffinity",
            "sched_setaffinity",
            "setpgid",
            "sigaltstack",
            "shutdown",
            "uname",
        ],
    ),
    ("the descriptor is gone whatever it answers", &["close"]),
    ("it fails where the process is gone alone", &["kill", "pidfd_send_signal", "tgkill", "wait4", "waitid"]),
    (
        "a process without memory aborts: the sweep of kills",
        &["brk", "madvise", "mmap", "mprotect", "mremap", "munmap"],
    ),
    ("eventfds are written by it, which cannot fail; tests of a full disk have the files", &["write"]),
    ("it fails before the system has booted alone", &["getrandom"]),
    ("its failure is how a task ends that cannot be started, which has tests", &["execve"]),
];
/// What is swept, each with its own calls.
const VICTIMS: [&str; 3] = ["daemon", "shim", "recovery"];
/// No call is tried more often than this for one task; a call that is reached more often is named at the end.
const MOST: u32 = 60;
const CODE: u64 = 5;

/// From the command line: `failures`, and calls to keep to.
pub(crate) fn main(program: &Path, only: &[&str]) -> Result<()> {
    let (mut failures, mut found, mut capped) = (0, Vec::new(), Vec::new());
    for victim in VICTIMS {
        let calls = calls_of(program, victim)?;
        for call in calls.iter().map(String::as_str) {
            if !only.is_empty() && !only.contains(&call) && !only.contains(&victim) {
                continue;
            }
            let known = ERRORS.iter().find(|(name, _)| *name == call);
            for error in known.map_or(&["EIO"][..], |(_, errors)| errors) {
                let mut home = Home::new(program);
                let before = failures;
                for when in 1..=MOST {
                    // One that leaves for the failure before may still answer, with an error.
                    wait_for("a daemon", || (home.cli(["status"]).code == 0).then_some(()));
                    let reached = match victim {
                        "recovery" => recover(&home, call, error, when),
                        _ => launch(&home, victim, call, error, when),
                    };
                    match reached {
                        Ok(true) => failures += 1,
                        Ok(false) => break,
                        Err(why) => {
                            eprintln!(
                                "VIOLATION: {victim}, {call} number {when} fails with {error}: {why:#}"
                            );
                            found.push(format!("{victim} {call}:{error} number {when}"));
                            failures += 1;
                            // What hangs in the old one says nothing of the next.
                            home = Home::new(program);
                        }
                    }
                }
                let swept = failures - before;
                eprintln!("  {victim} at {call} ({error}): {swept} failures");
                if swept == MOST {
                    capped.push(format!("{victim} {call}:{error}"));
                }
            }
        }
    }
    ensure!(
        found.is_empty(),
        "{} of {failures} failures were not got over: {}",
        found.len(),
        found.join("; ")
    );
    if !capped.is_empty() {
        println!("reached more than {MOST} times, and not let fail beyond that: {}", capped.join("; "));
    }
    println!(
        "{failures} failures of system calls: every task was launched again, or ended with the reason; no violation"
    );
    Ok(())
}

/// The calls that a path makes when nothing fails, but for those that are left out.
fn calls_of(program: &Path, victim: &str) -> Result<BTreeSet<String>> {
    let home = Home::new(program);
    let _ = home.daemon_pid();
    // No call is made so often that one fails.
    let (call, error, when) = ("all", "EIO", u16::MAX.into());
    let _ = match victim {
        "recovery" => recover(&home, call, error, when)?,
        _ => launch(&home, victim, call, error, when)?,
    };
    let log = std::fs::read_to_string(home.scratch().join(TRACE))?;
    let mut calls = traced_calls(&log);
    for (_, names) in LEFT_OUT {
        calls.retain(|call| !names.contains(&call.as_str()));
    }
    ensure!(!calls.is_empty(), "strace saw no call of {victim}");
    Ok(calls)
}

/// The names in a trace, of each process up to where it becomes a program that is not homing.
fn traced_calls(log: &str) -> BTreeSet<String> {
    let (mut calls, mut others) = (BTreeSet::new(), HashSet::new());
    for line in log.lines() {
        let Some((pid, rest)) = line.trim_start().split_once(' ') else { continue };
        let Some((name, _)) = rest.trim_start().split_once('(') else { continue };
        let is_name =
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_name || name.is_empty() || others.contains(pid) {
            continue;
        }
        let program = rest.split('"').nth(1).unwrap_or_default();
        if name == "execve" && !program.ends_with("/homing") && !program.ends_with("/exe") {
            others.insert(pid);
        }
        calls.insert(name.to_owned());
    }
    calls
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

/// What `strace` saw, in the scratch folder of a home.
const TRACE: &str = "strace.txt";

/// `strace`, while it lets a call fail.
struct Tracing {
    strace: Child,
    log: std::path::PathBuf,
}

impl Tracing {
    fn attach(home: &Home, pid: u32, call: &str, error: &str, when: u32) -> Result<Self> {
        let log = home.scratch().join(TRACE);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_up_to_where_another_program_begins() {
        let log = "7  read(3, \"a\", 1) = 1\n8 clone3({flags=0} <unfinished ...>\n8 <... clone3 resumed>) = 9\n9 dup2(3, 1) = 1\n\
                   9 execve(\"/bin/sh\", [\"sh\"]) = 0\n9 access(\"/x\") = 0\n\
                   10 execve(\"/b/homing\", []) = 0\n10 statx(3) = 0\n7 +++ exited with 0 +++\n";
        assert_eq!(Vec::from_iter(traced_calls(log)), ["clone3", "dup2", "execve", "read", "statx"]);
    }

    #[test]
    fn no_call_is_both_left_out_and_let_fail() {
        let left_out: Vec<_> = LEFT_OUT.iter().flat_map(|(_, names)| *names).collect();
        assert!(ERRORS.iter().all(|(name, _)| !left_out.contains(&name)));
    }
}
