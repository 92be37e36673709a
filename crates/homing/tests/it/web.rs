//! `homing web`: the address of the page, and what becomes of a browser that was signed in by it.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use homing_testkit::{Home, wait_for};

/// Port and path of an address.
fn parts(url: &str) -> (u16, String) {
    let (port, path) = url.strip_prefix("http://127.0.0.1:").unwrap().split_once('/').unwrap();
    (port.parse().unwrap(), format!("/{path}"))
}

/// What a GET is answered with; nothing while nobody listens.
fn get(port: u16, path: &str, cookie: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let cookie = if cookie.is_empty() { String::new() } else { format!("cookie: {cookie}\r\n") };
    let head = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{cookie}connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    (!answer.is_empty()).then_some(answer)
}

/// Sends each request that it reads from its input, on a connection of its own.
const BROWSER: &str = r#"
import json, socket, sys
for line in sys.stdin:
    port, request = json.loads(line)
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(request.encode())
        with s.makefile("rb") as answer:
            print(json.dumps(answer.read().decode()), flush=True)
"#;

/// A browser in a process with no_new_privs, as Chromium's network process is.
struct Confined {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Confined {
    fn start() -> Self {
        let mut child = Command::new("setpriv")
            .args(["--no-new-privs", "python3", "-c", BROWSER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn get(&mut self, port: u16, path: &str, cookie: &str) -> String {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n"
        );
        let line = serde_json::json!([port, request]);
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn address(home: &Home) -> String {
    home.cli(["web", "--json"]).ok().json()["url"].as_str().unwrap().to_owned()
}

fn sign_in(home: &Home) -> (u16, String) {
    let (port, path) = parts(&address(home));
    (port, cookie(&get(port, &path, "").unwrap()))
}

/// What a browser that was signed in sends back.
fn cookie(answer: &str) -> String {
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn web_prints_an_address_that_works_once() {
    let home = super::home();
    let printed = home.cli(["web", "--no-open"]).ok();
    let (port, path) = parts(&printed.text());
    assert!(path.starts_with("/signin?code="), "{path}");
    assert!(printed.stderr.contains("good once"), "{}", printed.stderr);
    assert!(get(port, &path, "").unwrap().starts_with("HTTP/1.1 303"));
    let again = get(port, &path, "").unwrap();
    assert!(again.starts_with("HTTP/1.1 401") && again.contains("HM0360"), "{again}");
    assert_eq!(parts(&address(&home)).0, port, "the next one is at the same port");
    let off = home.cli(["web", "--off", "--json"]).ok();
    assert_eq!((off.json()["enabled"].clone(), off.stderr.as_str()), (false.into(), ""));
    assert_eq!(home.cli(["web", "--off"]).code, 0, "what is off stays off");
    wait_for("nobody to listen", || get(port, "/", "").is_none().then_some(()));
}

#[test]
fn web_opens_a_browser_only_where_one_can_appear_and_is_wanted() {
    let home = super::home();
    let (tools, opened) = (home.scratch().join("tools"), home.scratch().join("opened"));
    std::fs::create_dir(&tools).unwrap();
    let fake = tools.join("xdg-open");
    std::fs::write(
        &fake,
        format!("#!/bin/sh\nprintf %s \"$1\" > '{}.new' && mv '{0}.new' '{0}'\n", opened.display()),
    )
    .unwrap();
    std::fs::set_permissions(&fake, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", tools.display());
    let web = |words: &[&str], display: &str| {
        let mut command = home.command();
        command
            .arg("web")
            .args(words)
            .env("PATH", &path)
            .env("DISPLAY", display)
            .env_remove("WAYLAND_DISPLAY");
        Home::finish(&mut command).ok()
    };
    for (words, display) in [(&["--no-open"][..], ":9"), (&["--json"], ":9"), (&[], "")] {
        assert!(!web(words, display).stderr.contains("opened"), "{words:?} {display}");
    }
    assert!(!opened.exists());
    let printed = web(&[], ":9");
    let told = wait_for("the browser", || std::fs::read_to_string(&opened).ok());
    assert_eq!(told, printed.text());
    assert!(printed.stderr.contains("opened in your browser"), "{}", printed.stderr);
}

#[test]
fn p11_a_browser_stays_signed_in_through_a_kill_of_the_daemon_and_not_through_another_token() {
    let home = super::home();
    let (port, cookie) = sign_in(&home);
    let open = || get(port, "/v1/tasks", &cookie);
    assert!(open().unwrap().starts_with("HTTP/1.1 200"));
    home.kill(home.daemon_pid());
    let answer = wait_for("the next daemon", open);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let _ = home.cli(["token", "rotate"]).ok();
    let answer = open().unwrap();
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("HM0362"), "{answer}");
}

#[test]
fn p11_an_address_is_made_for_callers_on_the_socket_and_outside_of_tasks_alone() {
    let home = super::home();
    address(&home);
    let program = home.program().display().to_string();
    let id = home.submit(&[], &format!("'{program}' web --json"));
    assert_ne!(home.ended(&id)["status"], "succeeded");
    let printed = String::from_utf8_lossy(&home.output(&id)).into_owned();
    assert!(!printed.contains("signin?code") && printed.contains("HM00"), "{printed}");
}

#[test]
fn p11_a_confined_browser_is_served_where_it_signed_in() {
    let home = super::home();
    let (port, path) = parts(&address(&home));
    let (mut browser, mut other) = (Confined::start(), Confined::start());
    let cookie = cookie(&browser.get(port, &path, ""));
    let served = |answer: &str| assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    served(&browser.get(port, "/v1/tasks", &cookie));
    let daemon = home.daemon_pid();
    home.kill(daemon);
    let _ = home.next_daemon(daemon);
    let _ = wait_for("the listener", || get(port, "/v1/tasks", &cookie));
    served(&browser.get(port, "/v1/tasks", &cookie));
    let refused = other.get(port, "/v1/tasks", &cookie);
    assert!(refused.starts_with("HTTP/1.1 401") && refused.contains("HM0362"), "{refused}");
    served(&get(port, "/v1/tasks", &cookie).unwrap());
}

/// Hides its descriptors from the daemon, and asks it to collect garbage.
const HIDDEN: &str = r#"
import ctypes, socket, sys
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
port, cookie = int(sys.argv[1]), sys.argv[2]
head = f"host: 127.0.0.1:{port}\r\norigin: http://127.0.0.1:{port}\r\ncookie: {cookie}\r\n"
s = socket.create_connection(("127.0.0.1", port))
s.sendall(f"POST /v1/gc HTTP/1.1\r\n{head}content-type: application/json\r\nconnection: close\r\n\r\n".encode())
print(s.makefile().read())
"#;

#[test]
fn p11_a_task_that_hides_its_descriptors_is_refused() {
    let home = super::home();
    // As root the daemon would see them, with this capability.
    let drop_it = ["setpriv", "--bounding-set=-sys_ptrace"];
    let wrapper = if rustix::process::geteuid().is_root() { &drop_it[..] } else { &["env"] };
    let cli = |words: &[&str]| {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(home.program()).args(words).current_dir(home.scratch());
        Home::finish(command.env("HOMING_HOME", home.path()).env("NO_COLOR", "1"))
    };
    let _ = cli(&["daemon", "start"]).ok();
    for allowed in [false, true] {
        std::fs::write(home.path().join("config.toml"), format!("[confined]\nallow = {allowed}\n")).unwrap();
        let _ = cli(&["config", "reload"]).ok();
        let (port, path) = parts(cli(&["web", "--json"]).ok().json()["url"].as_str().unwrap());
        let cookie = cookie(&get(port, &path, "").unwrap());
        let ran = cli(&["run", "--follow", "--", "python3", "-c", HIDDEN, &port.to_string(), &cookie]);
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(said.starts_with("HTTP/1.1 401") || said.starts_with("HTTP/1.1 403"), "{allowed}: {said}");
    }
}
