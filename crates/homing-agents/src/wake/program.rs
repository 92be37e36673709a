//! Programs that are run for a moment: found on a path, given an input, waited for with a limit.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use homing_model::Session;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// So much of what a program prints is looked at, from its end.
const MOST: u64 = 4 << 20;

/// What became of a program that was run.
#[derive(Debug)]
pub struct Ran {
    /// How it ended; nothing if it was ended for taking too long.
    pub status: Option<ExitStatus>,
    /// What it printed, the end of it.
    pub stdout: String,
    /// The same of its stderr.
    pub stderr: String,
}

impl Ran {
    /// Whether it ended with exit code 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The last line that says something, for people: of what it answers, or of why it failed. A
    /// warning says neither.
    pub fn last_line(&self) -> String {
        let lines = |text: &str| -> Vec<String> {
            let lines = text.lines().rev().map(homing_model::sanitize::line);
            lines.filter(|line| !line.trim().is_empty()).collect()
        };
        let is_warning = |line: &String| line.to_ascii_lowercase().starts_with("warning");
        let said = |text: &str| lines(text).into_iter().find(|line| !is_warning(line));
        let (first, second) = match self.succeeded() {
            true => (&self.stdout, &self.stderr),
            false => (&self.stderr, &self.stdout),
        };
        let status =
            || self.status.map_or_else(|| "it took too long".to_owned(), |status| status.to_string());
        let warned = || lines(&self.stderr).into_iter().next();
        said(first).or_else(|| said(second)).or_else(warned).unwrap_or_else(status)
    }
}

/// Finds a program as a shell would.
pub fn find(name: &str, path: &str) -> Option<PathBuf> {
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    folders.map(|folder| Path::new(folder).join(name)).find(|file| can_run(file))
}

/// The program of a session's agent: the one that it runs, else the one on its path.
pub(crate) fn of(session: &Session, path: &str) -> Option<PathBuf> {
    let own = session.program.as_ref().map(PathBuf::from).filter(|program| can_run(program));
    own.or_else(|| find(session.agent.as_str(), path))
}

fn can_run(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The version that a program says it is: the first word of its answer that looks like one.
pub(crate) fn version(program: &Path, path: &str) -> Option<Version> {
    let mut command = Command::new(program);
    command.arg("--version").env("PATH", path);
    let ran = run(command, b"", Duration::from_secs(20)).ok()?;
    ran.stdout.split_whitespace().find_map(Version::parse)
}

/// Three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u64, pub u64, pub u64);

impl Version {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('v');
        let text = text.split(['-', '+']).next()?;
        let mut numbers = text.split('.').map(str::parse::<u64>);
        let (major, minor, patch) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
        numbers.next().is_none().then_some(Self(major, minor, patch))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A program under way. What it prints goes to memory and not through a pipe: what it leaves behind cannot hold us up.
pub(crate) struct Running {
    child: Child,
    stdout: File,
    stderr: File,
}

/// Starts a program with this input.
pub(crate) fn start(mut command: Command, input: &[u8]) -> io::Result<Running> {
    let memory = || memfd_create("homing-wake", MemfdFlags::CLOEXEC).map(File::from);
    let (mut stdin, stdout, stderr) = (memory()?, memory()?, memory()?);
    stdin.write_all(input)?;
    stdin.rewind()?;
    let child = command.stdin(stdin).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).spawn()?;
    Ok(Running { child, stdout, stderr })
}

impl Running {
    /// Waits until it ends, or for this long.
    pub(crate) fn ends_within(&self, limit: Duration) -> io::Result<bool> {
        let pid =
            i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let seconds = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
        let limit = Timespec { tv_sec: seconds, tv_nsec: limit.subsec_nanos().into() };
        loop {
            match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends it, if it has not ended.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// How it ended, if it has, and what it has printed so far.
    pub(crate) fn seen(&mut self) -> io::Result<Ran> {
        let status = self.child.try_wait()?;
        Ok(Ran { status, stdout: text(&self.stdout)?, stderr: text(&self.stderr)? })
    }
}

/// The end of what was printed. The file's place is shared with whoever prints, so it is not moved.
fn text(file: &File) -> io::Result<String> {
    let length = file.metadata()?.len();
    let begin = length.saturating_sub(MOST);
    let mut bytes = vec![0; usize::try_from(length - begin).unwrap_or_default()];
    let read = file.read_at(&mut bytes, begin)?;
    bytes.truncate(read);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs a program to its end, or ends it when it takes too long.
pub fn run(command: Command, input: &[u8], limit: Duration) -> io::Result<Ran> {
    let mut running = start(command, input)?;
    if !running.ends_within(limit)? {
        running.end()?;
        return Ok(Ran { status: None, ..running.seen()? });
    }
    running.seen()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn versions_are_read_out_of_what_programs_say() {
        assert_eq!(Version::parse("0.166.0"), Some(Version(0, 166, 0)));
        assert_eq!(Version::parse("v1.18.33-beta.1"), Some(Version(1, 18, 33)));
        assert!(Version(0, 166, 0) > Version(0, 99, 9));
        for text in ["codex-cli", "1.2", "1.2.3.4", "(Claude", ""] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_program_is_given_its_input_and_its_end_is_seen() {
        let ran = run(shell("cat; echo why >&2; exit 3"), b"hello", Duration::from_secs(20)).unwrap();
        assert_eq!((ran.stdout.as_str(), ran.last_line().as_str()), ("hello", "why"));
        assert_eq!(ran.status.and_then(|status| status.code()), Some(3));
        assert!(!ran.succeeded());
    }

    #[test]
    fn a_warning_stands_for_no_answer_and_no_failure() {
        let last_line = |line: &str| run(shell(line), b"", Duration::from_secs(20)).unwrap().last_line();
        assert_eq!(last_line("echo queued; echo WARNING: no PATH >&2"), "queued");
        assert_eq!(last_line("echo why >&2; echo warning: old >&2; exit 1"), "why");
        assert_eq!(last_line("echo warning: old >&2; exit 1"), "warning: old");
    }

    #[test]
    fn what_a_program_leaves_behind_holds_nobody_up_and_what_takes_too_long_is_ended() {
        // It ends when the test's process has: nothing keeps it.
        let left = run(shell("sleep 1 & echo done"), b"", Duration::from_secs(20)).unwrap();
        assert!(left.succeeded() && left.stdout == "done\n");
        let slow = run(shell("echo begun; exec sleep 60"), b"", Duration::from_millis(200)).unwrap();
        assert_eq!(slow.status, None);
    }

    #[test]
    fn a_program_is_found_where_it_can_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = format!("relative:{}:/bin", folder.path().display());
        assert_eq!(find("homing-no-such-program", &path), None);
        std::fs::write(folder.path().join("sh"), "").unwrap();
        assert_eq!(
            find("sh", &path).as_deref(),
            Some(Path::new("/bin/sh")),
            "one that cannot be run is none"
        );
    }
}
