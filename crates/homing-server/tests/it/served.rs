//! A served home, and a client that knows nothing but HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use homing_api::StopRequest;
use homing_engine::{Config, Engine};
use homing_server::{Ended, Server};
use homing_testkit::wait_for;
use serde_json::Value;
use tokio::sync::oneshot;

/// Longer than anything may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// The helper that cargo builds beside the tests.
pub(crate) fn helper() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let helper = test.ancestors().nth(2).unwrap().join("examples/homing-server-helper");
    assert!(helper.exists(), "{} is not built: run the tests without a target filter", helper.display());
    helper
}

/// An engine and its server in a thread, as the daemon runs them.
pub(crate) struct Served {
    home: PathBuf,
    tell: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Ended>>,
    _folder: tempfile::TempDir,
}

impl Served {
    pub(crate) fn start() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::DirBuilder::new().mode(0o700).create(&home).unwrap();
        let (tell, told) = oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let path = home.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let engine = Engine::builder(path).helper(helper()).config(config).open().await.unwrap();
                let server = Server::bind(engine.clone()).unwrap();
                ready.send(()).unwrap();
                let ended = server.serve(async { drop(told.await) }).await;
                // The folder goes with the test, and a shim must not be left in a folder that is gone.
                for task in engine.snapshot().running() {
                    let stop = StopRequest { wait: true, grace_ms: Some(100), ..StopRequest::default() };
                    let _ = tokio::time::timeout(DEADLINE, engine.stop(&task.id, stop)).await;
                }
                engine.leave(false).await;
                ended
            })
        });
        is_ready.recv_timeout(DEADLINE).expect("the server did not start");
        Self { home, tell: Some(tell), thread: Some(thread), _folder: folder }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home.join("homing.sock")
    }

    /// Sends a request and leaves the answer to be read.
    pub(crate) fn open(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Stream {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut head = format!("{method} {target} HTTP/1.1\r\nhost: homing\r\nconnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        // Who is refused may be answered, and cut off, before everything is said.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        Stream::read_head(BufReader::new(stream))
    }

    /// Sends a request and reads the whole answer.
    pub(crate) fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = self.open(method, target, headers, body);
        let body = stream.rest();
        Answer { status: stream.status, headers: stream.headers, body }
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], b"")
    }

    pub(crate) fn post(&self, target: &str, body: &str) -> Answer {
        self.ask("POST", target, &[("content-type", "application/json")], body.as_bytes())
    }

    /// Submits a shell line with further fields, and gives its id.
    pub(crate) fn run(&self, line: &str, more: &Value) -> String {
        let mut spec = serde_json::json!({ "argv": ["sh", "-c", line] });
        spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        let answer = self.post("/v1/tasks", &spec.to_string());
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// The same, once it runs.
    pub(crate) fn running(&self, line: &str, more: &Value) -> String {
        let id = self.run(line, more);
        wait_for("it to run", || {
            (self.get(&format!("/v1/tasks/{id}")).json()["status"] == "running").then_some(())
        });
        id
    }

    /// Runs a shell line to its end, and gives its id.
    pub(crate) fn run_to_end(&self, line: &str) -> String {
        let id = self.run(line, &Value::Null);
        assert_eq!(self.get(&format!("/v1/tasks/{id}/wait?timeout_ms=30000")).status, 200);
        id
    }

    /// Ends the server and says why it ended.
    pub(crate) fn end(mut self) -> Ended {
        drop(self.tell.take());
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits for a server that was asked to end.
    pub(crate) fn ended(mut self) -> Ended {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.tell.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Status and code of a refusal.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        (self.status, problem["code"].as_str().unwrap().to_owned())
    }
}

/// An answer whose head was read.
pub(crate) struct Stream {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    reader: BufReader<UnixStream>,
    decoded: Vec<u8>,
    over: bool,
}

impl Stream {
    fn read_head(mut reader: BufReader<UnixStream>) -> Self {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).expect("a status").parse().unwrap();
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Self { status, headers, reader, decoded: Vec::new(), over: false }
    }

    fn is_chunked(&self) -> bool {
        self.headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked")
    }

    /// Reads one chunk more.
    fn more(&mut self) {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        let size = usize::from_str_radix(line.trim(), 16).expect("a whole answer");
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).unwrap();
        self.decoded.extend_from_slice(&chunk[..size]);
        self.over = size == 0;
    }

    fn rest(&mut self) -> Vec<u8> {
        if !self.is_chunked() {
            let mut body = Vec::new();
            self.reader.read_to_end(&mut body).unwrap();
            return body;
        }
        while !self.over {
            self.more();
        }
        std::mem::take(&mut self.decoded)
    }

    /// The next server-sent event; comments are passed over.
    pub(crate) fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.decoded.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.decoded.drain(..end + 2).collect();
                let text = String::from_utf8(block).unwrap();
                if text.starts_with(':') {
                    continue;
                }
                let field =
                    |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let data = field("data: ").map(|data| serde_json::from_str(&data).unwrap()).unwrap();
                return Some(Event { name: field("event: ").unwrap(), id: field("id: "), data });
            }
            if self.over {
                return None;
            }
            self.more();
        }
    }

    /// Every event to the end.
    pub(crate) fn events(mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.event()).collect()
    }
}

/// One server-sent event.
#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}
