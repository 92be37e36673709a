//! Sessions of agents: each lives in one process after the other, submits, is told by its hooks, by a waiter, by MCP or by being woken, and is
//! killed as often as it takes its leave. Its hooks are killed too.
//!
//! The agent is a shell that does line by line what it is told here. Whatever one of its calls prints goes into a file of its own, with a second
//! one that says how and when the call ended; [`super::heard`] reads them when all is over.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use homing_model::TaskId;
use homing_sys::process;
use homing_testkit::Random;
use serde_json::json;

use super::field::Field;
use super::load::{EACH, SESSIONS, Script};
use super::story::{Call, Submit, now};

/// One that is known for the whole of the soak.
#[derive(Debug)]
struct Known {
    agent: &'static str,
    id: &'static str,
    owner: &'static str,
    /// By the name of the target.
    wake: Option<&'static str>,
    /// It has hooks, and a life in which they are called; else it is run for one prompt at a time, and only woken.
    hooks: bool,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Sessions(&'static [Known]);

const ALL: &[Known] = &[
    Known { agent: "claude", id: "s1", owner: "claude:s1", wake: None, hooks: true },
    Known { agent: "claude", id: "s2", owner: "claude:s2", wake: None, hooks: true },
    Known { agent: "codex", id: "c1", owner: "codex:c1", wake: Some("wake:codex:c1"), hooks: true },
    Known { agent: "claude", id: "h1", owner: "claude:h1", wake: Some("wake:claude:h1"), hooks: false },
];

impl Sessions {
    pub(crate) const fn new() -> Self {
        Self(ALL)
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        0..self.0.len() as u64
    }

    fn get(&self, number: u64) -> Option<&'static Known> {
        self.0.get(usize::try_from(number).ok()?)
    }

    pub(crate) fn owner(&self, number: u64) -> &'static str {
        self.get(number).map_or("nobody", |one| one.owner)
    }

    pub(crate) fn wake(&self, number: u64) -> Option<String> {
        self.get(number)?.wake.map(str::to_owned)
    }
}

/// A session in one process.
struct Life<'a> {
    field: &'a Field,
    known: &'static Known,
    session: u64,
    life: u64,
    steps: u64,
    shell: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Lives one life after the other until it is over.
pub(crate) fn live(field: &Field, session: u64, seed: u64) {
    let Some(known) = field.sessions.get(session) else { return };
    let (mut random, mut next) = (Random::new(seed), SESSIONS + session * EACH);
    for life in session * EACH.. {
        if field.is_over() {
            return;
        }
        let Some(mut life) = Life::begin(field, known, session, life) else { return };
        life.go_on(&mut random, &mut next);
        life.end(&mut random);
    }
}

/// The last turn of a session, when nothing is killed any more: it hears what waits.
pub(crate) fn last_turn(field: &Field, session: u64, turn: u64) {
    let Some(known) = field.sessions.get(session).filter(|known| known.hooks) else { return };
    let life = session * EACH + EACH / 2 + turn;
    let Some(mut life) = Life::begin(field, known, session, life) else { return };
    life.hook("SessionStart", false);
    life.hook("Stop", false);
    life.leave();
}

/// The first id of a task in a text; the path of a home may look like the beginning of one.
pub(super) fn first_id(text: &str) -> Option<&str> {
    let words = text.match_indices("t-").filter_map(|(at, _)| text.get(at..at + 12));
    words.into_iter().find(|word| word.parse::<TaskId>().is_ok())
}

impl<'a> Life<'a> {
    fn begin(field: &'a Field, known: &'static Known, session: u64, life: u64) -> Option<Self> {
        let mut shell = Command::new("bash");
        shell.args([
            "-c",
            "export CLAUDE_PID=$$; while IFS= read -r line; do eval \"$line\"; echo done; done",
        ]);
        shell.env("HOMING_HOME", field.home.path()).env("PATH", field.stand_ins.path());
        shell.env("CLAUDE_CONFIG_DIR", field.home.scratch().join("claude"));
        let entry = if known.hooks { "cli" } else { "sdk-cli" };
        shell.env("CLAUDE_CODE_ENTRYPOINT", entry).env("CODEX_HOME", field.home.scratch().join("codex"));
        for other in ["HOMING_OWNER", "HOMING_TASK_ID", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID"] {
            shell.env_remove(other);
        }
        let name = if known.agent == "codex" { "CODEX_THREAD_ID" } else { "CLAUDE_CODE_SESSION_ID" };
        shell.env(name, known.id).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = shell.current_dir(field.home.scratch()).spawn().ok()?;
        let (input, output) = (shell.stdin.take()?, BufReader::new(shell.stdout.take()?));
        Some(Self { field, known, session, life, steps: 0, shell, input, output })
    }

    /// The file that the next call prints into.
    fn file(&mut self, kind: &str) -> String {
        self.steps += 1;
        let Self { session, life, steps, .. } = self;
        let name = format!("{kind}.{session}.{life}.{steps}");
        self.field.stand_ins.heard.join(name).display().to_string()
    }

    /// Has the shell do something; true when it has.
    fn has(&mut self, line: &str) -> bool {
        let mut said = String::new();
        writeln!(self.input, "{line}").and_then(|()| self.input.flush()).is_ok()
            && self.output.read_line(&mut said).is_ok_and(|read| read > 0)
    }

    fn homing(&self) -> String {
        format!("'{}'", self.field.home.program().display())
    }

    /// The same, of a call in the session's name.
    fn calls(&mut self, line: &str, is_killed: bool, ends_turn: bool) {
        let began = now();
        if is_killed {
            self.kill_within(line);
        } else if self.has(line) {
            self.field.story().calls.push(Call { life: self.life, began, ended: now(), ends_turn });
        }
    }

    /// Has it begin, and kills what the shell has begun by then.
    fn kill_within(&mut self, line: &str) {
        let began = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        let mut random = Random::new(now());
        self.field.pause(&mut random, 40);
        let shell = self.shell.id();
        // The shell of the call waits for it, and notes that it was killed.
        let all = process::all();
        let below = |pid: u32| all.iter().filter(move |found| found.parent == pid).collect::<Vec<_>>();
        for child in below(shell) {
            let inner = below(child.pid);
            for victim in inner.iter().chain(inner.is_empty().then_some(&child)) {
                self.field.home.kill(victim.pid);
            }
        }
        let mut said = String::new();
        if began.is_ok() {
            let _ = self.output.read_line(&mut said);
        }
    }

    fn hook(&mut self, event: &str, is_killed: bool) {
        let file = self.file("hook");
        let input = json!({ "session_id": self.known.id, "hook_event_name": event, "source": "resume" });
        let (homing, agent) = (self.homing(), self.known.agent);
        let line = format!(
            "( HOMING_HOOK_DIARY={file}.diary {homing} hook {agent} {event} > {file} <<< '{input}'; echo $? $(date +%s%N) > {file}.end )"
        );
        // The end of a session confirms nothing, so it is not recorded as a call.
        if event == "SessionEnd" {
            self.has(&line);
        } else {
            self.calls(&line, is_killed, event == "Stop");
        }
    }

    /// In the background, as the agent does at the end of a turn.
    fn waiter(&mut self) {
        let file = self.file("waiter");
        let input = json!({ "session_id": self.known.id });
        let (homing, agent) = (self.homing(), self.known.agent);
        let _ = self.has(&format!(
            "( HOMING_HOOK_DIARY={file}.diary {homing} hook {agent} rewake 2> {file} > /dev/null <<< '{input}'; echo $? $(date +%s%N) > {file}.end ) &"
        ));
    }

    /// What is submitted by the command line of the session.
    fn submit(&mut self, number: u64) {
        let script = Script::of(number);
        let file = self.file("submit");
        let wake = self.known.wake.map(|_| "--notify inbox --notify wake").unwrap_or_default();
        let watches = script.watches().iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let line = script.line(self.field).replace('\'', r"'\''");
        let homing = self.homing();
        self.calls(
            &format!("( {homing} run {wake} --label number={number} {watches} -c '{line}' > {file} )"),
            false,
            false,
        );
        self.submitted(number, &file);
    }

    /// A tool call that waits for the end, and tells it.
    fn tool(&mut self, number: u64, is_killed: bool) {
        let script = Script::of(number);
        let file = self.file(&format!("mcp-{number}"));
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "soak", "version": "1" } } });
        let greeted = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let mut arguments = json!({ "command": script.line(self.field), "wait_ms": 4_000, "notify_on_complete": true,
            "name": format!("number-{number}") });
        if !script.watches().is_empty() {
            arguments["watch"] = script.watches()[1].into();
        }
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "run", "arguments": arguments } });
        let said = [hello, greeted, call].map(|one| format!("{one}\n")).concat();
        let input = format!("{file}.said");
        let _ = std::fs::write(&input, said);
        let homing = self.homing();
        // Its input stays open until the answer is there, or nobody can answer any more.
        self.calls(
            &format!(
                "( {{ cat {input}; for i in $(seq 1 60); do grep -q '\"id\":2' {file} && break; sleep 0.1; done; }} | {homing} mcp > {file}; \
                 echo ${{PIPESTATUS[1]}} $(date +%s%N) > {file}.end )"
            ),
            is_killed,
            false,
        );
        self.submitted(number, &file);
    }

    /// The id in what a submit printed.
    fn submitted(&self, number: u64, file: &str) {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let answers = first_id(&text).map(str::to_owned).into_iter().collect();
        self.field.story().submits.push(Submit { number, answers });
    }

    fn go_on(&mut self, random: &mut Random, next: &mut u64) {
        let mut fresh = || {
            *next += 1;
            *next - 1
        };
        if self.known.hooks {
            self.hook("SessionStart", random.below(10) == 0);
        }
        for _ in 0..3 + random.below(12) {
            if self.field.is_over() {
                return;
            }
            let is_killed = random.below(10) == 0;
            match random.below(10) {
                choice if !self.known.hooks || choice < 3 => self.submit(fresh()),
                3..=5 => self.hook("Stop", is_killed),
                6 => self.hook("UserPromptSubmit", is_killed),
                7 | 8 if self.known.agent == "claude" => self.tool(fresh(), is_killed),
                _ if self.known.agent == "claude" => self.waiter(),
                _ => self.submit(fresh()),
            }
            self.field.pause(random, 200);
        }
    }

    fn end(mut self, random: &mut Random) {
        if random.below(2) == 0 {
            self.field.home.kill(self.shell.id());
            let _ = self.shell.wait();
        } else {
            if self.known.hooks {
                self.hook("SessionEnd", false);
            }
            self.leave();
        }
    }

    fn leave(mut self) {
        drop(self.input);
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::first_id;

    #[test]
    fn a_path_is_no_id() {
        let text = "no daemon serves /tmp/homing-test-GU3OzN/home: t-2222222222 was submitted before";
        assert_eq!(first_id(text), Some("t-2222222222"));
        assert_eq!(first_id("no daemon serves /tmp/homing-test-GU3OzN/home"), None);
    }
}
