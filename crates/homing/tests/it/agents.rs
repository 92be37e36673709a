//! Agents as they look from outside, for tests of what wakes them: a session of Claude Code with its files and its real socket, programs by
//! the names of the real ones, a server like that of opencode. None of them is the real thing; `cargo xtask agents` runs those.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use homing_sys::process;
use homing_testkit::{Home, wait_for, write_program};
use serde_json::{Value, json};

/// The folder of a Claude Code that does not exist, and what leads there.
pub(crate) struct Claude {
    pub(crate) folder: PathBuf,
}

impl Claude {
    pub(crate) fn new(home: &Home) -> Self {
        let folder = home.scratch().join("claude");
        for part in ["sessions", "projects/-w"] {
            fs::create_dir_all(folder.join(part)).expect("the ground of the test");
        }
        Self { folder }
    }

    /// A session that is open: its file names this very process, its socket is served.
    pub(crate) fn open(&self, id: &str) -> Session {
        let socket = self.folder.join(format!("{id}.sock"));
        let transcript = self.folder.join(format!("projects/-w/{id}.jsonl"));
        File::options().create(true).append(true).open(&transcript).expect("the ground of the test");
        let listener = UnixListener::bind(&socket).expect("the ground of the test");
        let received = Arc::<Mutex<Vec<String>>>::default();
        let keeps = Arc::<AtomicBool>::default();
        let (heard, kept) = (Arc::clone(&received), Arc::clone(&keeps));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let message: Value = serde_json::from_str(&line).expect("JSON");
                    assert_eq!(
                        (&message["type"], &message["message"]["role"]),
                        (&"user".into(), &"user".into())
                    );
                    let text = message["message"]["content"].as_str().expect("a text").to_owned();
                    let line = match kept.load(Ordering::SeqCst) {
                        true => json!({ "type": "queue-operation", "operation": "enqueue", "content": text }),
                        false => message,
                    };
                    let mut file =
                        File::options().append(true).open(&transcript).expect("the ground of the test");
                    writeln!(file, "{line}").expect("the ground of the test");
                    heard.lock().expect("nobody panicked").push(text);
                }
            }
        });
        let session = Session {
            file: self.folder.join(format!("sessions/{id}.json")),
            id: id.into(),
            socket,
            received,
            keeps,
        };
        session.is("idle");
        session
    }

    /// A call of homing from inside this session.
    pub(crate) fn command(&self, home: &Home, id: &str) -> Command {
        let mut command = home.command();
        command
            .env("CLAUDE_CODE_SESSION_ID", id)
            .env("CLAUDE_CONFIG_DIR", &self.folder)
            .env("CLAUDE_CODE_ENTRYPOINT", "cli")
            .env_remove("CLAUDE_CODE_SESSION_ATTENDED")
            .env("CLAUDE_CODE_MESSAGING_TOKEN", "hunter2-of-the-session");
        command
    }

    /// Submits a shell line from inside this session.
    pub(crate) fn submit(&self, home: &Home, id: &str, line: &str) -> String {
        ok(self.command(home, id).args(["run", "--notify", "wake", "-c", line]))
    }
}

/// Runs it and answers what it printed.
pub(crate) fn ok(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

pub(crate) struct Session {
    file: PathBuf,
    id: String,
    socket: PathBuf,
    received: Arc<Mutex<Vec<String>>>,
    keeps: Arc<AtomicBool>,
}

impl Session {
    /// Whether it has no time for what it is sent from now on, and puts it into its queue.
    pub(crate) fn keeps(&self, keeps: bool) {
        self.keeps.store(keeps, Ordering::SeqCst);
    }

    /// Says that the session is idle or busy now.
    pub(crate) fn is(&self, status: &str) {
        let start = process::stat(std::process::id()).expect("this process").start;
        self.write(status, start);
    }

    /// Leaves the file as a process that was killed would: its number is somebody else's by now.
    pub(crate) fn was_killed(&self) {
        self.write("idle", 1);
    }

    fn write(&self, status: &str, start: u64) {
        let entry = json!({
            "pid": std::process::id(), "sessionId": self.id, "cwd": "/w", "procStart": start.to_string(), "version": "2.1.325",
            "kind": "interactive", "entrypoint": "cli", "messagingSocketPath": self.socket, "status": status,
        });
        let draft = self.file.with_extension("new");
        fs::write(&draft, entry.to_string()).expect("the ground of the test");
        fs::rename(draft, &self.file).expect("the ground of the test");
    }

    /// What it was sent.
    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().expect("nobody panicked").clone()
    }
}

/// A program by this name in `bin` of the scratch folder, which is on the path of what is submitted with [`path`].
pub(crate) fn program(home: &Home, name: &str, script: &str) {
    let folder = home.scratch().join("bin");
    fs::create_dir_all(&folder).expect("the ground of the test");
    let text = format!("#!/bin/sh\ncd '{}' || exit 9\n{script}", home.scratch().display());
    write_program(&folder.join(name), &text);
}

pub(crate) fn path(home: &Home) -> String {
    format!("{}:/usr/local/bin:/usr/bin:/bin", home.scratch().join("bin").display())
}

/// The one delivery of a task, once it is so.
pub(crate) fn delivery(home: &Home, id: &str, so: impl Fn(&Value) -> bool) -> Value {
    wait_for("the delivery", || {
        let answer = home.cli(["deliveries", "--task", id, "--json"]).ok().json();
        answer["items"].as_array()?.iter().find(|one| so(one)).cloned()
    })
}

pub(crate) fn delivered(home: &Home, id: &str) -> Value {
    delivery(home, id, |one| one["state"] == "delivered")
}

/// The tasks that an owner's inbox tells of.
pub(crate) fn inbox(home: &Home, owner: &str) -> Vec<String> {
    let answer = home.get(&format!("/v1/inbox/{owner}")).json();
    let items = answer["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|item| Some(item["task"]["id"].as_str()?.to_owned())).collect()
}

pub(crate) fn read(home: &Home, name: &str) -> String {
    fs::read_to_string(home.scratch().join(name)).unwrap_or_default()
}

/// A server that answers like that of opencode.
pub(crate) struct Opencode {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    busy: bool,
    prompts: Vec<(String, Value)>,
    authorization: Option<String>,
    refused: usize,
    breaks: bool,
}

impl Opencode {
    /// With one session.
    pub(crate) fn new(session: &'static str, password: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the ground of the test");
        let url = format!("http://{}", listener.local_addr().expect("the ground of the test"));
        let state = State { authorization: password.map(str::to_owned), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let Some((head, body)) = request(&mut reader) else { continue };
                let mut state = shared.lock().expect("nobody panicked");
                let (status, answer) = answer(&mut state, session, &head, &body);
                let text = format!(
                    "HTTP/1.1 {status} \r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
                    answer.len()
                );
                let _ = reader.get_mut().write_all(text.as_bytes());
            }
        });
        Self { url, state }
    }

    pub(crate) fn is_busy(&self, busy: bool) {
        self.state.lock().expect("nobody panicked").busy = busy;
    }

    /// The next prompt is taken, and answered as if it was not.
    pub(crate) fn breaks(&self) {
        self.state.lock().expect("nobody panicked").breaks = true;
    }

    pub(crate) fn refused(&self) -> usize {
        self.state.lock().expect("nobody panicked").refused
    }

    /// What it was asked, and of which session.
    pub(crate) fn prompts(&self) -> Vec<(String, Value)> {
        self.state.lock().expect("nobody panicked").prompts.clone()
    }
}

fn request(reader: &mut BufReader<std::net::TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn answer(state: &mut State, session: &str, head: &str, body: &[u8]) -> (u16, String) {
    if let Some(expected) = &state.authorization
        && !head
            .to_ascii_lowercase()
            .contains(&format!("authorization: basic {}", expected.to_ascii_lowercase()))
    {
        state.refused += 1;
        return (401, String::new());
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match (method, target) {
        ("GET", "/session/status") => {
            let status = if state.busy { json!({ session: {"type": "busy"} }) } else { json!({}) };
            (200, status.to_string())
        }
        ("GET", target) if target == format!("/session/{session}") => {
            (200, json!({ "id": session }).to_string())
        }
        ("POST", target) if target == format!("/session/{session}/prompt_async") => {
            state.prompts.push((session.to_owned(), serde_json::from_slice(body).expect("JSON")));
            (if std::mem::take(&mut state.breaks) { 500 } else { 204 }, String::new())
        }
        ("GET", target) if target.starts_with(&format!("/session/{session}/message?limit=")) => {
            let model = json!({ "providerID": "p", "modelID": "m", "variant": "high" });
            let first = json!({ "info": { "role": "user", "agent": "plan", "model": model }, "parts": [] });
            let reply = json!({ "info": { "role": "assistant", "agent": "none" }, "parts": [] });
            let message = |(_, prompt): &(String, Value)| json!({ "info": { "role": "user" }, "parts": prompt["parts"] });
            let messages = [first, reply].into_iter().chain(state.prompts.iter().map(message)).collect();
            (200, Value::Array(messages).to_string())
        }
        _ => (404, "{}".to_owned()),
    }
}

/// A tmux server of its own, ended with the test.
pub(crate) struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// None where there is no tmux.
    pub(crate) fn new(folder: &Path) -> Option<Self> {
        let there = Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success());
        there.then(|| Self { socket: folder.join("tmux") })
    }

    pub(crate) fn call(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(words).env_remove("TMUX");
        ok(&mut command)
    }

    /// A pane with this program in it; answers its id.
    pub(crate) fn pane(&self, line: &str) -> String {
        self.call(&["new-session", "-d", "-P", "-F", "#{pane_id}", "-x", "200", "-y", "50", line])
    }

    /// What says to a process that it is in this server.
    pub(crate) fn variable(&self) -> String {
        format!("{},1,0", self.socket.display())
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        let _ = command.arg("-S").arg(&self.socket).arg("kill-server").env_remove("TMUX").output();
    }
}
