//! Executes the command: everything is prepared before the clone, so that the child makes system calls only.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::output::{FIRST_SIZE, Stream};
use crate::record::StartError;
use crate::wire::{Launch, Stdin};
use homing_sys::memory;
use homing_sys::sys;

/// What execvp uses when there is no PATH.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";
const SHELL: &CStr = c"/bin/sh";

/// Where a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Terminal = 1,
    Limits = 2,
    Folder = 3,
    Exec = 4,
}

/// A command that was cloned; whether it could be executed is read from `status`.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) pid: u32,
    /// Closes when the command was executed; holds a step and an error number if it could not be.
    pub(super) status: Option<OwnedFd>,
    pub(super) sources: Vec<(OwnedFd, Stream)>,
    /// The other end of its input, if that is open.
    pub(super) input: Option<OwnedFd>,
}

/// Why there is no command; `reason` is for people.
#[derive(Debug)]
pub(super) struct StartFailure {
    pub(super) reason: String,
    pub(super) kind: StartError,
}

impl StartFailure {
    /// Something around the command went wrong.
    pub(super) fn other(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: StartError::Other }
    }

    fn new(what: &str, error: &io::Error) -> Self {
        Self::other(format!("{what}: {}", describe(error)))
    }
}

/// The kernel's words without the `(os error 2)`.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// Reads the child's word on its own start.
pub(super) fn start_failure(report: &[u8], launch_program: &str, cwd: &str) -> StartFailure {
    let number = |at: usize| {
        report.get(at..at + 4).and_then(|b| b.first_chunk::<4>()).map_or(0, |b| i32::from_le_bytes(*b))
    };
    let error = io::Error::from_raw_os_error(number(4));
    match number(0) {
        1 => StartFailure::new("the terminal could not be set up", &error),
        2 => StartFailure::new("the caller's limits could not be set", &error),
        3 => StartFailure::other(format!("{}: {cwd}", describe(&error))),
        _ => {
            let missing = error.raw_os_error() == Some(libc::ENOENT);
            let kind = if missing { StartError::NotFound } else { StartError::NotExecutable };
            let is_there = launch_program.contains('/') && Path::new(cwd).join(launch_program).is_file();
            let what = if missing && is_there {
                "the interpreter that it names is not there".to_owned()
            } else {
                describe(&error)
            };
            StartFailure { reason: format!("{what}: {launch_program}"), kind }
        }
    }
}

/// C strings and pointers to them, alive together.
struct Strings {
    pointers: Vec<*const libc::c_char>,
    owned: Vec<CString>,
}

impl Drop for Strings {
    fn drop(&mut self) {
        for text in self.owned.drain(..) {
            memory::wipe(&mut text.into_bytes());
        }
    }
}

impl Strings {
    fn new<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Result<Self, StartFailure> {
        let owned = texts.map(CString::new).collect::<Result<Vec<_>, _>>();
        let owned = owned.map_err(|_| StartFailure::other("a NUL byte in the command or its environment"))?;
        let mut pointers: Vec<_> = owned.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Ok(Self { pointers, owned })
    }
}

/// The paths to try, in order.
fn candidates(launch: &Launch) -> Vec<CString> {
    let program = launch.argv.first().map(|program| program.as_slice()).unwrap_or_default();
    if program.contains(&b'/') {
        return CString::new(program).into_iter().collect();
    }
    let path = launch.env.iter().find_map(|entry| entry.strip_prefix(b"PATH=")).unwrap_or(DEFAULT_PATH);
    path.split(|byte| *byte == b':')
        .filter_map(|folder| {
            let folder = if folder.is_empty() { b"." } else { folder };
            CString::new([folder, b"/", program].concat()).ok()
        })
        .collect()
}

/// The descriptors the child takes as 0, 1 and 2.
struct Ends {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    terminal: bool,
}

fn null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// A pipe whose reading end is ours and does not block; the writing end is the child's and does.
fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&read, OFlags::NONBLOCK)?;
    Ok((read, write))
}

type Plumbing = (Ends, Vec<(OwnedFd, Stream)>, Option<OwnedFd>);

fn terminal((cols, rows): (u16, u16)) -> io::Result<Plumbing> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let slave =
        rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    let size = rustix::termios::Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&master, size)?;
    fcntl_setfl(&master, OFlags::NONBLOCK)?;
    let input = master.try_clone()?;
    let ends = Ends { stdin: slave.try_clone()?, stdout: slave.try_clone()?, stderr: slave, terminal: true };
    Ok((ends, vec![(master, Stream::Pty)], Some(input)))
}

fn pipes(stdin: &Stdin, shown: Option<&str>) -> Result<Plumbing, StartFailure> {
    let failed = |error: &io::Error| StartFailure::new("its pipes could not be made", error);
    let (stdin, input) = match stdin {
        Stdin::None => (null().map_err(|error| failed(&error))?, None),
        Stdin::Pipe => {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(&error.into()))?;
            fcntl_setfl(&write, OFlags::NONBLOCK).map_err(|error| failed(&error.into()))?;
            (read, Some(write))
        }
        Stdin::File(path) => {
            // Opening a fifo must not hang the shim: it is opened without waiting for its writer.
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
            let shown = || shown.map_or_else(|| String::from_utf8_lossy(path), Into::into);
            let file = rustix::fs::open(path.as_slice(), flags, Mode::empty())
                .map_err(|error| StartFailure::other(format!("{}: {}", describe(&error.into()), shown())))?;
            if is_abandoned(&file) {
                let why = format!("nobody writes to the pipe {}: its writer has to be there first", shown());
                return Err(StartFailure::other(why));
            }
            let _ = fcntl_setfl(&file, OFlags::empty());
            (file, None)
        }
    };
    let (out_read, stdout) = output_pipe().map_err(|error| failed(&error))?;
    let (err_read, stderr) = output_pipe().map_err(|error| failed(&error))?;
    let sources = vec![(out_read, Stream::Stdout), (err_read, Stream::Stderr)];
    Ok((Ends { stdin, stdout, stderr, terminal: false }, sources, input))
}

/// Whether it is a pipe that is empty and has no writer: its reader would take that for the end. Looks at what is in it without taking it.
fn is_abandoned(file: &OwnedFd) -> bool {
    let is_pipe =
        rustix::fs::fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    let peek = || {
        let (_read, aside) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        rustix::pipe::tee(file, &aside, 1, SpliceFlags::NONBLOCK).ok()
    };
    is_pipe && peek() == Some(0)
}

/// Clones the child that will execute the command.
pub(super) fn spawn(launch: &Launch, cgroup: Option<BorrowedFd<'_>>) -> Result<Child, StartFailure> {
    let argv = Strings::new(launch.argv.iter().map(|text| text.as_slice()))?;
    let env = Strings::new(launch.env.iter().map(|text| text.as_slice()))?;
    let cwd = CString::new(launch.cwd.as_slice()).map_err(|_| StartFailure::other("a NUL byte in cwd"))?;
    let paths = candidates(launch);
    // For a script without `#!`, as execvp does: sh, the script, and the arguments behind it.
    let mut script = vec![SHELL.as_ptr(), std::ptr::null()];
    script.extend(argv.pointers.iter().skip(1));
    let (ends, sources, input) = if launch.pty {
        terminal(launch.pty_size.unwrap_or(FIRST_SIZE))
            .map_err(|error| StartFailure::new("no terminal could be had", &error))?
    } else {
        pipes(&launch.stdin, launch.shown.as_ref().map(|shown| shown.input.as_str()))?
    };
    let (status, report) = pipe_with(PipeFlags::CLOEXEC)
        .map_err(|error| StartFailure::new("its pipes could not be made", &error.into()))?;
    fcntl_setfl(&status, OFlags::NONBLOCK)
        .map_err(|error| StartFailure::new("its pipes could not be made", &error.into()))?;
    match sys::clone(cgroup).map_err(|error| StartFailure::new("no process could be made", &error))? {
        sys::Fork::Parent(pid) => Ok(Child { pid, status: Some(status), sources, input }),
        sys::Fork::Child => {
            let (step, error) = become_command(launch, &ends, &cwd, &paths, &argv, &env, &mut script);
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&(step as i32).to_le_bytes());
            bytes[4..].copy_from_slice(&error.to_le_bytes());
            let _ = rustix::io::write(&report, &bytes);
            sys::exit_now(127)
        }
    }
}

/// The child's side: returns only if the command could not be executed.
fn become_command(
    launch: &Launch,
    ends: &Ends,
    cwd: &CStr,
    paths: &[CString],
    argv: &Strings,
    env: &Strings,
    script: &mut [*const libc::c_char],
) -> (Step, i32) {
    let _ = rustix::process::setsid();
    sys::reset_ignored_signals();
    if ends.terminal
        && let Err(error) = rustix::process::ioctl_tiocsctty(ends.stdin.as_fd())
    {
        return (Step::Terminal, error.raw_os_error());
    }
    let moved = rustix::stdio::dup2_stdin(&ends.stdin)
        .and_then(|()| rustix::stdio::dup2_stdout(&ends.stdout))
        .and_then(|()| rustix::stdio::dup2_stderr(&ends.stderr));
    if let Err(error) = moved {
        return (Step::Terminal, error.raw_os_error());
    }
    sys::close_range(3, u32::MAX, true);
    if let Some(mask) = launch.umask {
        rustix::process::umask(Mode::from_raw_mode(mask));
    }
    for limit in &launch.rlimits {
        // A hard limit above ours cannot be had without privilege; the caller's soft limit is what counts then.
        if sys::set_rlimit(limit.resource, limit.soft, limit.hard).is_err()
            && let Err(error) = sys::set_rlimit(limit.resource, limit.soft, limit.soft)
            && error.raw_os_error() != Some(libc::EPERM)
        {
            return (Step::Limits, error.raw_os_error().unwrap_or(0));
        }
    }
    if let Some(nice) = launch.nice {
        // Raising one's own precedence needs privilege; without it the task runs at ours.
        let _ = rustix::process::setpriority_process(None, nice);
    }
    if let Err(error) = rustix::process::chdir(cwd) {
        return (Step::Folder, error.raw_os_error());
    }
    let mut worst = libc::ENOENT;
    for path in paths {
        match sys::exec(path, &argv.pointers, &env.pointers) {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::ENOEXEC => {
                if let Some(slot) = script.get_mut(1) {
                    *slot = path.as_ptr();
                }
                return (Step::Exec, sys::exec(SHELL, script, &env.pointers));
            }
            libc::EACCES => worst = libc::EACCES,
            error => return (Step::Exec, error),
        }
    }
    (Step::Exec, worst)
}
