//! Somebody who sits at a terminal of a certain size and looks at the command line.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use homing_testkit::{Home, PATIENCE, wait_until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    Action, LocalModes, OptionalActions, Termios, Winsize, tcflow, tcgetattr, tcsetattr, tcsetwinsize,
};

/// The terminal, and the command that runs on it.
pub(crate) struct Seat {
    keys: File,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: Option<std::thread::JoinHandle<()>>,
    terminal: Option<File>,
    before: Termios,
    size: (u16, u16),
    child: Child,
}

impl Seat {
    /// Runs a command line at a terminal of this size, with these variables, all of it on the terminal.
    pub(crate) fn take(home: &Home, size: (u16, u16), variables: &[(&str, &str)], words: &[&str]) -> Self {
        Self::begin(home, size, variables, home.program(), words, OFlags::empty())
    }

    /// The same at a terminal that somebody left so that a read does not wait.
    pub(crate) fn unwaiting(home: &Home, size: (u16, u16), words: &[&str]) -> Self {
        Self::begin(home, size, &[], home.program(), words, OFlags::NONBLOCK)
    }

    /// A shell that knows jobs.
    pub(crate) fn shell(home: &Home, size: (u16, u16)) -> Self {
        let variables = [("PS1", "> "), ("HISTFILE", "")];
        let words = ["--norc", "--noprofile", "--noediting", "-i"];
        Self::begin(home, size, &variables, "bash".as_ref(), &words, OFlags::empty())
    }

    fn begin(
        home: &Home,
        size: (u16, u16),
        variables: &[(&str, &str)],
        program: &Path,
        words: &[&str],
        flags: OFlags,
    ) -> Self {
        let keys =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&keys).and_then(|()| unlockpt(&keys)).expect("a terminal");
        let name = ptsname(&keys, Vec::new()).expect("a terminal").into_string().expect("a terminal");
        // Whoever leads a session would have it as its own by opening it.
        let flags = i32::try_from((flags | OFlags::NOCTTY).bits()).expect("flags");
        let terminal =
            File::options().read(true).write(true).custom_flags(flags).open(name).expect("a terminal");
        resize(&keys, size);
        let before = tcgetattr(&terminal).expect("a terminal");
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(program).args(words).current_dir(home.scratch());
        for unwanted in
            ["CI", "NO_COLOR", "HOMING_OWNER", "HOMING_TASK_ID", "TMUX", "TERM_PROGRAM", "VTE_VERSION"]
        {
            command.env_remove(unwanted);
        }
        command.env("HOMING_HOME", home.path()).env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
        command.envs(variables.iter().copied());
        for set in [Command::stdin, Command::stdout, Command::stderr] {
            set(&mut command, terminal.try_clone().expect("a terminal"));
        }
        let child = command.spawn().expect("the binary runs");
        let screen = Arc::new(Mutex::new(Vec::new()));
        let keys = File::from(keys);
        let (shown, mut master) = (Arc::clone(&screen), keys.try_clone().expect("a terminal"));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // A terminal whose last user is gone answers with an error.
            while let Ok(count) = master.read(&mut buffer) {
                shown.lock().expect("a terminal").extend_from_slice(&buffer[..count]);
            }
        });
        Self { keys, screen, reader: Some(reader), terminal: Some(terminal), before, size, child }
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).expect("a terminal");
    }

    /// Whether keys come as they are typed.
    pub(crate) fn is_raw(&self) -> bool {
        let terminal = self.terminal.as_ref().expect("a terminal");
        tcgetattr(terminal).is_ok_and(|modes| !modes.local_modes.contains(LocalModes::ICANON))
    }

    /// Has the terminal take nothing, as Ctrl-S does in one that knows it; or go on.
    pub(crate) fn holds_output(&self, held: bool) {
        let terminal = self.terminal.as_ref().expect("a terminal");
        tcflow(terminal, if held { Action::OOff } else { Action::OOn }).expect("a terminal");
    }

    /// Has it as it was at first, as a shell does that goes on.
    pub(crate) fn makes_sane(&self) {
        let terminal = self.terminal.as_ref().expect("a terminal");
        tcsetattr(terminal, OptionalActions::Now, &self.before).expect("a terminal");
    }

    /// What somebody sees who looks at it.
    pub(crate) fn screen(&self) -> String {
        let number = |number| std::num::NonZeroU16::new(number).expect("a size");
        let mut terminal = vt100::Parser::new(number(self.size.1), number(self.size.0), 0);
        terminal.process(&self.seen());
        terminal.screen().contents()
    }

    /// The process of the command.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the command stands still by a signal.
    pub(crate) fn is_stopped(&self) -> bool {
        homing_sys::process::stat(self.child.id()).is_some_and(|found| found.frozen)
    }

    /// Whether all that was typed was read by the command. The kernel passes it on when it comes to it, and does so first for whoever
    /// asks whether there is something to read, but not for whoever asks how much.
    pub(crate) fn was_read(&self) -> bool {
        let terminal = self.terminal.as_ref().expect("a terminal");
        let mut asked = [PollFd::new(terminal, PollFlags::IN)];
        poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready == 0)
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&self, size: (u16, u16)) {
        resize(&self.keys, size);
    }

    /// All that was written so far.
    pub(crate) fn seen(&self) -> Vec<u8> {
        self.screen.lock().expect("a terminal").clone()
    }

    /// Waits until this was written after so many bytes; answers where it ends.
    pub(crate) fn sees_after(&self, from: usize, text: &str) -> usize {
        wait_until(&format!("{text:?} on the screen after {from} bytes"), PATIENCE, || {
            let screen = self.seen();
            let rest = screen.get(from..).unwrap_or_default();
            let at = rest.windows(text.len()).position(|window| window == text.as_bytes());
            at.map(|at| from + at + text.len()).ok_or_else(|| self.state())
        })
    }

    /// Waits until this was written.
    pub(crate) fn sees(&self, text: &str) -> usize {
        self.sees_after(0, text)
    }

    /// The process of the command itself, which `setsid` may have forked.
    pub(crate) fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(done.expect("kill").success());
    }

    /// Everything that somebody needs who reads why a test failed: the process, the terminal's modes, and all that was written.
    fn state(&self) -> String {
        let proc = |file: &str| {
            std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap_or_default()
        };
        let status = proc("status");
        let told = |line: &&str| {
            ["Name", "State", "SigPnd", "ShdPnd", "SigBlk", "SigCgt"]
                .iter()
                .any(|name| line.starts_with(name))
        };
        let status: Vec<&str> = status.lines().filter(told).collect();
        let modes = self.terminal.as_ref().map(|terminal| tcgetattr(terminal).map(|modes| modes.local_modes));
        let seen = self.seen();
        let (wchan, seen) = (proc("wchan"), String::from_utf8_lossy(&seen));
        format!(
            "{status:?} in {wchan:?}; modes {modes:?}, at first {:?}; seen {seen:?}",
            self.before.local_modes
        )
    }

    /// The code, and all that was written; by then the terminal must be as it was.
    pub(crate) fn ends(mut self) -> (i32, Vec<u8>) {
        let status = wait_until("the end of the command", PATIENCE, || {
            self.child.try_wait().expect("a terminal").ok_or_else(|| self.state())
        });
        let after = tcgetattr(self.terminal.as_ref().expect("a terminal")).expect("a terminal");
        let state = self.state();
        assert_eq!(after.local_modes, self.before.local_modes, "{status}: {state}");
        assert_eq!(after.input_modes, self.before.input_modes, "{status}: {state}");
        let codes = |modes: &Termios| format!("{:?}", modes.special_codes);
        assert_eq!(codes(&after), codes(&self.before), "{status}: {state}");
        self.terminal = None;
        let _ = self.reader.take().expect("a reader").join();
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        (code, self.seen())
    }
}

/// A test that fails leaves nobody behind: who watches a home starts its daemon again.
impl Drop for Seat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: &impl std::os::fd::AsFd, (columns, rows): (u16, u16)) {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal");
}
