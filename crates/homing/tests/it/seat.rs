//! Somebody who sits at a terminal of a certain size and looks at the command line.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use homing_testkit::{Home, wait_for};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// The terminal, and the command that runs on it.
pub(crate) struct Seat {
    keys: File,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: Option<std::thread::JoinHandle<()>>,
    terminal: Option<File>,
    before: Termios,
    child: Child,
}

impl Seat {
    /// Runs a command line at a terminal of this size, with these variables, all of it on the terminal.
    pub(crate) fn take(home: &Home, size: (u16, u16), variables: &[(&str, &str)], words: &[&str]) -> Self {
        let keys =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&keys).and_then(|()| unlockpt(&keys)).expect("a terminal");
        let name = ptsname(&keys, Vec::new()).expect("a terminal").into_string().expect("a terminal");
        let terminal = File::options().read(true).write(true).open(name).expect("a terminal");
        resize(&keys, size);
        let before = tcgetattr(&terminal).expect("a terminal");
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(home.program()).args(words).current_dir(home.scratch());
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
        Self { keys, screen, reader: Some(reader), terminal: Some(terminal), before, child }
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).expect("a terminal");
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
        wait_for(&format!("{text:?} on the screen: {:?}", String::from_utf8_lossy(&self.seen())), || {
            let screen = self.screen.lock().expect("a terminal");
            let rest = screen.get(from..).unwrap_or_default();
            let at = rest.windows(text.len()).position(|window| window == text.as_bytes())?;
            Some(from + at + text.len())
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

    /// The code, and all that was written; by then the terminal must be as it was.
    pub(crate) fn ends(mut self) -> (i32, Vec<u8>) {
        let status = wait_for("the end of the command", || self.child.try_wait().expect("a terminal"));
        let terminal = self.terminal.take().expect("a terminal");
        let after = tcgetattr(&terminal).expect("a terminal");
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(format!("{:?}", after.special_codes), format!("{:?}", self.before.special_codes));
        drop(terminal);
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
