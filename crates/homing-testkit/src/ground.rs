//! Ground truth: what tasks themselves wrote, gates that hold them, and deaths that happen at one moment.
//!
//! Tasks run in [`Home::scratch`], so a name in a shell line is a file there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use homing_sys::process;
use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;
use crate::wait::wait_for;

/// Whether a process runs. A zombie does not, once its threads are gone too.
#[must_use]
pub fn alive(pid: u32) -> bool {
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    process::stat(pid).is_some_and(|process| !process.zombie || threads() > 1)
}

/// A shell line that waits until the gate of this name is opened.
#[must_use]
pub fn gate(name: &str) -> String {
    format!("until [ -e {name} ]; do sleep 0.01; done")
}

/// Lets some time pass, to hit a process at an arbitrary point of its work. Nothing may depend on how long it was.
#[expect(
    clippy::disallowed_methods,
    reason = "this is not a wait for something: the moment itself is what is tested"
)]
pub fn drift(time: Duration) {
    std::thread::sleep(time);
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Stops a process where it is, and returns when it stands still, with all of its threads, or is gone; [`thaw`] lets it go on.
pub fn freeze(pid: u32) {
    // Again with each look: somebody may have continued it before it was seen to stand.
    wait_for(&format!("{pid} to stand still"), || {
        send(pid, Signal::STOP);
        stands_still(pid).then_some(())
    });
}

/// A signal to stop is carried out by each thread when it comes to it; until then it does its work.
fn stands_still(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        stat.rsplit_once(')')?.1.trim_start().chars().next()
    });
    states.all(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
}

/// Keeps a process where it is, whoever continues it, until this is dropped; then it goes on.
#[derive(Debug)]
pub struct Freezer {
    pid: u32,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Freezer {
    /// Begins.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        freeze(pid);
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let keep = move || {
            while !seen.load(Ordering::Relaxed) && alive(pid) {
                send(pid, Signal::STOP);
                std::thread::yield_now();
            }
        };
        Self { pid, over, thread: Some(std::thread::spawn(keep)) }
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        thaw(self.pid);
    }
}

/// Lets a frozen process go on.
pub fn thaw(pid: u32) {
    send(pid, Signal::CONT);
}

impl Home {
    /// What a task wrote into this file; empty if it is not there.
    #[must_use]
    pub fn truth(&self, name: &str) -> String {
        std::fs::read(self.scratch().join(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Waits until a task has written a whole line into this file; answers it without the line feed.
    #[must_use]
    pub fn told(&self, name: &str) -> String {
        wait_for(&format!("a line in {name}"), || self.truth(name).strip_suffix('\n').map(str::to_owned))
    }

    /// The pid that a task wrote into this file.
    #[must_use]
    pub fn told_pid(&self, name: &str) -> u32 {
        self.told(name).trim().parse().expect("a pid")
    }

    /// Opens a gate.
    pub fn open(&self, name: &str) {
        std::fs::write(self.scratch().join(name), b"").expect("the scratch folder can be written");
    }

    /// `kill -9` of several at one moment: none of them sees another's death. Returns when all are gone.
    pub fn kill_at_once(&self, pids: &[u32]) {
        for pid in pids {
            freeze(*pid);
        }
        for pid in pids {
            self.kill(*pid);
        }
        for pid in pids {
            wait_for(&format!("the death of {pid}"), || (!alive(*pid)).then_some(()));
        }
    }

    /// `kill -9` of the daemon, found without asking it; answers its pid once it is gone.
    #[must_use]
    pub fn kill_daemon(&self) -> u32 {
        let pid = wait_for("the daemon", || self.find_daemon()).pid;
        self.kill_at_once(&[pid]);
        pid
    }

    /// Waits for a daemon that is not this one, without asking for it.
    #[must_use]
    pub fn next_daemon(&self, old: u32) -> u32 {
        wait_for("the next daemon", || self.find_daemon().map(|daemon| daemon.pid).filter(|pid| *pid != old))
    }

    /// Calls the command line, which must go well.
    pub fn does<const N: usize>(&self, arguments: [&str; N]) {
        let _ = self.cli(arguments).ok();
    }

    /// `daemon stop`. Returns when its process is gone, not only its socket.
    pub fn stop_daemon(&self) {
        self.does(["daemon", "stop"]);
        wait_for("the daemon to leave", || self.find_daemon().is_none().then_some(()));
    }

    /// Waits until nothing that the tasks of this home started is left.
    pub fn nothing_left(&self) {
        wait_for("the end of every task's process", || self.task_processes().is_empty().then_some(()));
    }
}

/// Whoever the kernel had not ended when a task's end was told is named there; they are gone soon all the same.
pub fn survivors_go(task: &serde_json::Value) {
    for survivor in task["outcome"]["survivors"].as_array().into_iter().flatten() {
        let pid = survivor["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid");
        wait_for("the end of a survivor", || (!alive(pid)).then_some(()));
    }
}

/// Copies a program. Not in this process: another thread may be forking, and its child would hold the copy open for writing, which keeps
/// everybody from executing it.
pub fn copy_program(from: &std::path::Path, to: &std::path::Path) {
    let copied = std::process::Command::new("cp").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} could not be copied", from.display());
}

/// Makes a program of this text, whole and at once. Not in this process, for the same reason.
pub fn write_program(path: &std::path::Path, text: &str) {
    let draft = path.with_extension("draft");
    std::fs::write(&draft, text).unwrap_or_else(|error| panic!("{}: {error}", draft.display()));
    let made = path.with_extension("made");
    let installed = std::process::Command::new("install").args(["-m", "755"]).arg(&draft).arg(&made).status();
    assert!(installed.is_ok_and(|status| status.success()), "{} could not be made", path.display());
    std::fs::rename(&made, path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let _ = std::fs::remove_file(draft);
}
