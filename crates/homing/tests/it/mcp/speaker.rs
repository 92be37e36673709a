//! A client of MCP that says exactly what a test wants it to say.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use homing_testkit::Home;
use serde_json::{Value, json};

/// The protocol without sessions, and with tasks.
pub(super) const MODERN: &str = "2026-07-28";

/// A bridge, and what is said to it.
pub(super) struct Speaker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
    meta: Option<Value>,
}

/// What a client of the newest protocol says of itself with each request.
pub(super) fn meta(tasks: bool) -> Value {
    let extensions = if tasks { json!({ "io.modelcontextprotocol/tasks": {} }) } else { json!({}) };
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "extensions": extensions },
    })
}

impl Speaker {
    /// A client of an earlier protocol, greeted; some of them declare the tasks extension all the same.
    pub(super) fn legacy(command: &mut Command) -> Self {
        Self::named(command, "test")
    }

    /// The same by another name.
    pub(super) fn named(command: &mut Command, name: &str) -> Self {
        let mut speaker = Self::begin(command, None);
        let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let client = json!({ "name": name, "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client });
        let answer = speaker.ask("initialize", hello);
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        speaker.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        speaker
    }

    /// What follows is said in that conversation, as Codex says it.
    pub(super) fn in_thread(&mut self, thread: &str) {
        self.meta = Some(json!({ "threadId": thread, "sessionId": thread }));
    }

    /// A client of the newest protocol, with or without tasks.
    pub(super) fn modern(command: &mut Command, tasks: bool) -> Self {
        Self::begin(command, Some(meta(tasks)))
    }

    /// The usual one.
    pub(super) fn of(home: &Home) -> Self {
        Self::legacy(home.command().env("HOMING_OWNER", "user"))
    }

    fn begin(command: &mut Command, meta: Option<Value>) -> Self {
        let mut child =
            command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("its output"));
        Self { child, input, output: BufReader::new(output), asked: 0, meta }
    }

    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{message}").expect("it reads");
        input.flush().expect("it reads");
    }

    /// Asks, and goes on without the answer.
    pub(super) fn begin_to_ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.asked += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        self.asked
    }

    /// The answer to a question, whatever else comes before it.
    pub(super) fn answer(&mut self, asked: u64) -> Value {
        self.answer_any(&[asked])
    }

    /// The first answer to one of these.
    pub(super) fn answer_any(&mut self, asked: &[u64]) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("a line"), 0, "it closed its output");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if asked.iter().any(|asked| message["id"] == *asked) {
                return message;
            }
        }
    }

    /// Asks and waits for the answer, result or error.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let asked = self.begin_to_ask(method, params);
        self.answer(asked)
    }

    /// Calls a tool: its whole result.
    #[expect(clippy::needless_pass_by_value, reason = "a test reads better without ampersands")]
    pub(super) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": name, "arguments": arguments }));
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that is to succeed: its data.
    pub(super) fn data(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.tool(name, arguments);
        assert_ne!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }

    /// Runs something in the background: its id.
    pub(super) fn background(&mut self, command: &str, notify: bool) -> String {
        let arguments = json!({ "command": command, "background": true, "notify_on_complete": notify });
        let ran = self.data("run", arguments);
        ran["task"]["id"].as_str().expect("an id").to_owned()
    }

    /// Closes its input, and waits for its end.
    pub(super) fn leave(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().expect("it ends").code().expect("a code")
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a model reads of a result.
pub(super) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}
