//! `exec --pty` on a terminal: what is typed reaches the task, and the terminal is given back on every way out.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use homing_testkit::{Home, wait_for};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, tcgetattr};

/// A call of the command line by somebody who sits at a terminal.
struct Person {
    keys: File,
    screen: Arc<Mutex<Vec<u8>>>,
    terminal: File,
    before: Termios,
    child: Child,
}

impl Person {
    /// Types a command line; `setsid` makes the terminal the one that its session is controlled by.
    fn types(home: &Home, words: &[&str]) -> Self {
        let keys =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&keys).and_then(|()| unlockpt(&keys)).expect("a terminal");
        let name = ptsname(&keys, Vec::new()).expect("a terminal").into_string().expect("a terminal");
        let terminal = File::options().read(true).write(true).open(name).expect("a terminal");
        let before = tcgetattr(&terminal).expect("a terminal");
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(home.program()).args(words);
        command.env("HOMING_HOME", home.path()).env("TERM", "xterm").current_dir(home.scratch());
        for set in [Command::stdin, Command::stdout, Command::stderr] {
            set(&mut command, terminal.try_clone().expect("a terminal"));
        }
        let child = command.spawn().expect("a terminal");
        let screen = Arc::new(Mutex::new(Vec::new()));
        let keys = File::from(keys);
        let (shown, mut master) = (Arc::clone(&screen), keys.try_clone().expect("a terminal"));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = master.read(&mut buffer) {
                shown.lock().expect("a terminal").extend_from_slice(&buffer[..count]);
            }
        });
        Self { keys, screen, terminal, before, child }
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).expect("a terminal");
    }

    fn sees(&self, text: &str) {
        wait_for(&format!("{text:?} on the screen"), || {
            let screen = self.screen.lock().expect("a terminal");
            String::from_utf8_lossy(&screen).contains(text).then_some(())
        });
    }

    /// Whether keys go through as they are.
    fn is_taken(&self) -> bool {
        !tcgetattr(&self.terminal).expect("a terminal").local_modes.contains(LocalModes::ICANON)
    }

    /// The code; by then the terminal must be as it was.
    fn ends(mut self) -> i32 {
        let status = wait_for("the end of the command", || self.child.try_wait().expect("a terminal"));
        let after = tcgetattr(&self.terminal).expect("a terminal");
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(format!("{:?}", after.special_codes), format!("{:?}", self.before.special_codes));
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }
}

#[test]
fn what_is_typed_reaches_the_task_and_its_screen_is_seen_as_it_is() {
    let home = super::home();
    let line = r#"printf '\033[2Kname? '; read -r x; echo "got <$x>"; read -r y; exit 7"#;
    let mut person = Person::types(&home, &["exec", "--pty", "-c", line]);
    person.sees("\u{1b}[2Kname? ");
    assert!(person.is_taken());
    person.press(b"somebodx\x7fy\r");
    person.sees("got <somebody>\r\n");
    person.press(b"\r");
    assert_eq!(person.ends(), 7);
}

#[test]
fn the_interrupt_key_reaches_whoever_the_task_s_terminal_means() {
    let home = super::home();
    let line = "trap 'echo caught' INT; sleep 1000; echo on; read -r x; exit 3";
    let mut person = Person::types(&home, &["exec", "--pty", "-c", &format!("echo up; {line}")]);
    person.sees("up\r\n");
    wait_for("the sleep", || home.task_processes().iter().any(|found| found.name == "sleep").then_some(()));
    person.press(b"\x03");
    person.sees("on\r\n");
    person.press(b"x\r");
    assert_eq!(person.ends(), 3);
}

#[test]
fn the_interrupt_key_is_the_program_s_however_often_and_the_detach_keys_leave() {
    let home = super::home();
    let line = "n=0; trap 'n=$((n+1)); echo caught $n' INT; echo up; while :; do sleep 0.01; done";
    let mut person = Person::types(&home, &["exec", "--pty", "--name", "stubborn", "-c", line]);
    person.sees("up\r\n");
    for number in 1..=4 {
        person.press(b"\x03");
        person.sees(&format!("caught {number}\r\n"));
    }
    person.press(b"\x1c");
    person.sees("homing attach ");
    assert_eq!(person.ends(), 123);
    let _ = home.until_status("stubborn", "running");
    // Others, of one's own choice; then the usual one is the program's.
    let line = "trap 'echo quit' QUIT; echo up; while :; do sleep 0.01; done";
    let words = ["exec", "--pty", "--detach-keys", "ctrl-p,ctrl-q", "-c", line];
    let mut person = Person::types(&home, &words);
    person.sees("up\r\n");
    person.press(b"\x1c");
    person.sees("quit\r\n");
    person.press(b"\x10\x11");
    assert_eq!(person.ends(), 123);
}

#[test]
fn a_program_that_does_not_read_holds_up_neither_the_detach_keys_nor_what_comes_from_it() {
    let home = super::home();
    let line = "stty -echo; echo up; until [ -e go ]; do sleep 0.01; done; echo still here; exec sleep 1000";
    let mut person = Person::types(&home, &["exec", "--pty", "-c", line]);
    person.sees("up\r\n");
    wait_for("the terminal to be taken", || person.is_taken().then_some(()));
    // More than the task's terminal takes from anybody.
    for _ in 0..100 {
        person.press(&b"words that nobody reads, and that are many\r".repeat(4));
    }
    std::fs::write(home.scratch().join("go"), "").unwrap();
    person.sees("still here\r\n");
    person.press(b"\x1c");
    assert_eq!(person.ends(), 123);
}

#[test]
fn an_interrupt_from_elsewhere_is_passed_on_and_a_second_one_stops_the_task() {
    let home = super::home();
    let line = "trap 'echo caught' INT; echo up; while :; do sleep 0.01; done";
    let person = Person::types(&home, &["exec", "--pty", "-c", line]);
    person.sees("up\r\n");
    let interrupt = || {
        let pid = person.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    };
    interrupt();
    person.sees("caught\r\n");
    person.sees("once more stops it");
    interrupt();
    assert_eq!(person.ends(), 122);
}

#[test]
fn the_terminal_is_given_back_when_the_task_goes_to_the_background_and_when_the_command_is_ended() {
    let home = super::home();
    let person = Person::types(&home, &["exec", "--pty", "--bg-after", "300ms", "--", "sleep", "1000"]);
    person.sees("goes on in the background");
    assert_eq!(person.ends(), 123);
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("QUIT", 131)] {
        let person = Person::types(&home, &["exec", "--pty", "-c", "echo up; exec sleep 1000"]);
        person.sees("up\r\n");
        assert!(person.is_taken());
        let pid = person.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
        assert_eq!(person.ends(), code, "{signal}");
    }
    // What they print is there before their start is in the ledger.
    wait_for("all four to run on", || {
        let running = home.cli(["list", "--status", "running", "--json"]).ok().json();
        (running["items"].as_array()?.len() == 4).then_some(())
    });
}

#[test]
fn the_screen_is_given_back_by_a_program_that_was_left_or_ended_in_its_middle() {
    let home = super::home();
    let draws = "printf '\\033[?1049h\\033[?1004h\\033[?25ldrawn'; exec sleep 1000";
    for way in ["keys", "signal", "stop"] {
        let mut person = Person::types(&home, &["exec", "--pty", "--name", way, "-c", draws]);
        person.sees("drawn");
        let code = match way {
            "keys" => {
                person.press(b"\x1c");
                123
            }
            "signal" => {
                let pid = person.child.id().to_string();
                assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
                143
            }
            _ => {
                home.does(["stop", way]);
                122
            }
        };
        person.sees("\x1b[?1049l");
        person.sees("\x1b[?1004l");
        person.sees("\x1b[?25h");
        assert_eq!(person.ends(), code, "{way}");
    }
}

#[test]
fn without_a_terminal_what_is_piped_in_is_typed_unless_it_is_kept() {
    let home = super::home();
    std::fs::write(home.scratch().join("in"), "one\ntwo\n").unwrap();
    let run = |words: &[&str]| {
        let mut command = home.command();
        command.args(words).stdin(File::open(home.scratch().join("in")).unwrap());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = run(&["exec", "--pty", "-c", "stty -echo; cat; exit 5"]);
    assert_eq!(code, Some(5));
    assert!(text.contains("one\r\ntwo\r\n"), "{text:?}");
    let (code, text) = run(&["exec", "--pty", "--stdin", "none", "--timeout", "300ms", "-c", "cat"]);
    assert_eq!((code, text.as_str()), (Some(124), ""));
}
