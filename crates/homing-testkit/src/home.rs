//! A temporary home and everything that lives in it.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use homing_sys::process::{self, Process};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::mount::Mount;
use crate::output::Output;
use crate::wait::{PATIENCE, wait_for, wait_until};

/// A state folder of its own, with its daemon, keeper and shims; all of it is gone when this is dropped.
#[derive(Debug)]
pub struct Home {
    // Before the folder that it is in.
    _mount: Option<Mount>,
    _dir: tempfile::TempDir,
    path: PathBuf,
    program: PathBuf,
    cleared: AtomicBool,
}

impl Home {
    /// A new home for this binary. Nothing is started yet.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self::named(program, "home")
    }

    /// A new home with a folder of this name.
    #[must_use]
    pub fn named(program: impl Into<PathBuf>, name: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("homing-test-").tempdir().expect("a temporary folder");
        let path = dir.path().join(name);
        Self { _mount: None, _dir: dir, path, program: program.into(), cleared: AtomicBool::new(false) }
    }

    /// A new home that is a disk of `size` bytes of its own; none where that is not allowed.
    #[must_use]
    pub fn on_tmpfs(program: impl Into<PathBuf>, size: u64) -> Option<Self> {
        let mut home = Self::new(program);
        home._mount = Some(Mount::new(&home.path, size)?);
        Some(home)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder beside the home, for files that a test makes.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        self._dir.path()
    }

    /// The binary.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A call of the command line, to be completed.
    #[must_use]
    pub fn command(&self) -> Command {
        while self.cleared.load(Ordering::Relaxed) {
            std::thread::park();
        }
        let mut command = Command::new(&self.program);
        command
            .env_remove("HOMING_OWNER")
            .env_remove("HOMING_TASK_ID")
            .env("HOMING_HOME", &self.path)
            // A hook of a test gives nobody up who is only slow.
            .env("HOMING_HOOK_PATIENCE", "30s")
            .env("NO_COLOR", "1");
        command.stdin(Stdio::null()).current_dir(self.scratch());
        command
    }

    /// Calls the command line and waits for it.
    #[must_use]
    pub fn cli<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        Self::finish(self.command().args(arguments))
    }

    /// Runs a call that was completed, and waits for it.
    #[must_use]
    pub fn finish(command: &mut Command) -> Output {
        let output = command.output().expect("the binary runs");
        let status = output.status;
        Output {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts a call of the command line and does not wait.
    #[must_use]
    pub fn spawn<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Child {
        let mut command = self.command();
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the binary runs")
    }

    /// Submits a shell line with options; answers its id.
    #[must_use]
    pub fn submit(&self, options: &[&str], line: &str) -> String {
        let mut arguments = vec!["run"];
        arguments.extend(options);
        arguments.extend(["-c", line]);
        self.cli(arguments).ok().text()
    }

    /// A task as JSON.
    #[must_use]
    pub fn task(&self, id: &str) -> Value {
        self.cli(["show", id, "--json"]).ok().json()
    }

    /// Waits until a task has ended, by the command line's own `wait`; answers the task.
    #[must_use]
    pub fn ended(&self, id: &str) -> Value {
        let waited = self.cli(["wait", id, "--timeout", "60s"]);
        assert_ne!(waited.code, 123, "task {id} did not end: {}", self.task(id));
        self.task(id)
    }

    /// Waits until a task has this status; answers the task.
    #[must_use]
    pub fn until_status(&self, id: &str, status: &str) -> Value {
        wait_until(&format!("task {id} to be {status}"), PATIENCE, || {
            let task = self.task(id);
            if task["status"] == status { Ok(task) } else { Err(task["status"].to_string()) }
        })
    }

    /// Everything a task printed.
    #[must_use]
    pub fn output(&self, id: &str) -> Vec<u8> {
        self.cli(["output", id, "--raw"]).ok().stdout
    }

    /// The daemon's process, by its own word. Starts one if none runs.
    #[must_use]
    pub fn daemon_pid(&self) -> u32 {
        let status = self.cli(["status", "--json"]).ok().json();
        u32::try_from(status["daemon"]["pid"].as_u64().expect("a pid")).expect("a pid")
    }

    /// The keeper's process, by the daemon's word.
    #[must_use]
    pub fn keeper_pid(&self) -> u32 {
        wait_for("the keeper's pid", || {
            let status = self.cli(["status", "--json"]).ok().json();
            u32::try_from(status["daemon"]["keeper_pid"].as_u64()?).ok()
        })
    }

    /// Processes of this home by the name the kernel shows: `homing-keeper`, `homing-shim`, `homing`.
    #[must_use]
    pub fn processes(&self, name: &str) -> Vec<Process> {
        self.all_processes().into_iter().filter(|process| process.name == name).collect()
    }

    /// The daemon, looked for without asking it.
    #[must_use]
    pub fn find_daemon(&self) -> Option<Process> {
        self.all_processes()
            .into_iter()
            .find(|process| first_argument(process.pid).as_deref() == Some("__homing-daemon"))
    }

    /// The shim of a running task: the parent of its main process.
    #[must_use]
    pub fn shim_pid(&self, id: &str) -> u32 {
        let pid = wait_for("the task's pid", || self.task(id)["pid"].as_u64());
        process::stat(u32::try_from(pid).expect("a pid")).expect("the task runs").parent
    }

    /// Every process that was started for this home: keeper, daemon, shims.
    #[must_use]
    pub fn all_processes(&self) -> Vec<Process> {
        let home = self.path.as_os_str().as_encoded_bytes();
        let of_home = |process: &Process| {
            std::fs::read(format!("/proc/{}/cmdline", process.pid)).is_ok_and(|line| {
                let mut words = line.split(|byte| *byte == 0).skip(1);
                let hidden = words.next().is_some_and(|word| word.starts_with(b"__homing-"));
                hidden && words.next() == Some(home)
            })
        };
        process::all().into_iter().filter(|process| !process.zombie).filter(of_home).collect()
    }

    /// Everything that the tasks of this home left running.
    #[must_use]
    pub fn task_processes(&self) -> Vec<Process> {
        process::with_variable("HOMING_HOME", &self.path.to_string_lossy())
            .into_iter()
            .filter(|found| {
                std::fs::read(format!("/proc/{}/environ", found.pid))
                    .is_ok_and(|e| contains(&e, b"HOMING_TASK_ID="))
            })
            .collect()
    }

    /// `kill -9`.
    pub fn kill(&self, pid: u32) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn first_argument(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    String::from_utf8(line.split(|byte| *byte == 0).nth(1)?.to_vec()).ok()
}

impl Home {
    /// Ends what it started, by pid, until two looks in a row find nothing: a keeper may be restarting what was killed.
    fn end_processes(&self) {
        let mut quiet = 0;
        for _ in 0..500 {
            let mut found = self.all_processes();
            found.extend(self.task_processes());
            quiet = if found.is_empty() { quiet + 1 } else { 0 };
            if quiet == 2 {
                return;
            }
            // The keeper first: it restarts the daemon.
            found.sort_by_key(|process| process.name != "homing-keeper");
            for process in found {
                self.kill(process.pid);
            }
            pause();
        }
    }

    /// The cgroups of the home: empty now, or as soon as the last of the dead are buried.
    fn remove_cgroups(&self) {
        let Some(base) = homing_shim::cgroup::base(&self.path) else { return };
        for _ in 0..500 {
            let Ok(entries) = std::fs::read_dir(&base) else { return };
            for folder in entries.flatten().filter(|entry| entry.path().is_dir()) {
                let _ = std::fs::remove_dir(folder.path());
            }
            if std::fs::remove_dir(&base).is_ok() {
                return;
            }
            pause();
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the kernel gives no event for the end of processes that are not ours"
)]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(2));
}

impl Home {
    /// Ends and removes everything now, for whoever cannot wait until it is dropped. What this process itself began is ended too, and
    /// whoever calls the command line from now on stands still: nothing comes back.
    pub fn clear(&self) {
        self.cleared.store(true, Ordering::Relaxed);
        for _ in 0..3 {
            for child in process::all().into_iter().filter(|found| found.parent == std::process::id()) {
                self.kill(child.pid);
            }
            self.end_processes();
        }
        self.remove_cgroups();
        let _ = std::fs::remove_dir_all(self.scratch());
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.end_processes();
        self.remove_cgroups();
    }
}
