//! An in-process server on a home's socket that answers as a test scripts it, and can break off in the middle.

use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use homing_api::Problem;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use crate::transport::socket::SOCKET;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// A header by its lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether method and path (with its query) begin so.
    #[must_use]
    pub fn is(&self, method: &str, target: &str) -> bool {
        self.method == method && self.target.starts_with(target)
    }
}

/// What to answer.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    pieces: Vec<Vec<u8>>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// A whole answer; the connection stays.
    Whole,
    /// A stream without a length, which ends with the connection.
    Stream,
    /// A stream that promises more than it sends.
    Broken,
    /// No answer at all.
    Cut,
    /// No answer, and the connection stays open.
    Silence,
}

impl Reply {
    /// Some bytes.
    #[must_use]
    pub fn bytes(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), pieces: vec![body.into()], end: End::Whole }
    }

    /// Some JSON.
    #[must_use]
    pub fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::bytes(status, body).header("content-type", "application/json")
    }

    /// A refusal.
    #[must_use]
    pub fn problem(problem: &Problem) -> Self {
        let body = serde_json::to_vec(problem).unwrap_or_default();
        Self::bytes(problem.status, body).header("content-type", "application/problem+json")
    }

    /// An event stream, written in these pieces and then closed.
    #[must_use]
    pub fn stream(pieces: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Self { status: 200, headers, pieces, end: End::Stream }
    }

    /// The connection is closed without a word.
    #[must_use]
    pub fn cut() -> Self {
        Self { end: End::Cut, ..Self::bytes(0, "") }
    }

    /// The connection stays open and nothing comes.
    #[must_use]
    pub fn silence() -> Self {
        Self { end: End::Silence, ..Self::bytes(0, "") }
    }

    /// The same, but the connection breaks before the body is whole.
    #[must_use]
    pub fn broken(mut self) -> Self {
        self.end = End::Broken;
        self
    }

    /// Adds a header.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a script of answers reads better without ampersands")]
    pub fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}

/// A running server; dropping it closes the socket and every connection.
#[derive(Debug)]
pub struct Fake {
    log: Arc<Log>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Log {
    connections: AtomicUsize,
    requests: Mutex<Vec<Request>>,
    serving: Mutex<Vec<JoinHandle<()>>>,
}

impl Fake {
    /// Serves `home`, which is closed to others, taking the place of a socket that is there.
    ///
    /// # Panics
    /// If the socket cannot be bound.
    #[expect(clippy::expect_used, reason = "a test without its server has failed")]
    pub fn serve(home: &Path, answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let folder = std::fs::File::open(home).expect("the home opens");
        // Clients refuse an open one, and test folders may be made open.
        folder.set_permissions(PermissionsExt::from_mode(0o700)).expect("the home is ours");
        let path = format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd());
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("the socket binds");
        let log = Arc::new(Log::default());
        let answer = Arc::new(answer);
        let shared = Arc::clone(&log);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let (log, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                let serving = tokio::spawn(async move { converse(stream, &log, &*answer).await });
                shared.serving.lock().push(serving);
            }
        });
        Self { log, accepting }
    }

    /// How many connections there were.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.log.connections.load(Ordering::Relaxed)
    }

    /// All requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.log.requests.lock().clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.accepting.abort();
        for serving in self.log.serving.lock().drain(..) {
            serving.abort();
        }
    }
}

/// Answers what comes over one stream, in the place of a server in this process.
pub async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: &(dyn Fn(&Request) -> Reply + Send + Sync),
) {
    converse(stream, &Log::default(), answer).await;
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    log: &Log,
    answer: &(dyn Fn(&Request) -> Reply + Send + Sync),
) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        log.requests.lock().push(request.clone());
        let reply = answer(&request);
        match reply.end {
            End::Cut => return,
            End::Silence => continue,
            End::Whole | End::Stream | End::Broken => {}
        }
        let length: usize = reply.pieces.iter().map(Vec::len).sum();
        let mut head = format!("HTTP/1.1 {} X\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match reply.end {
            End::Stream => head.push_str("connection: close\r\n"),
            End::Broken => head.push_str(&format!("content-length: {}\r\n", length + 1)),
            End::Whole | End::Cut | End::Silence => head.push_str(&format!("content-length: {length}\r\n")),
        }
        head.push_str("\r\n");
        let mut written = stream.write_all(head.as_bytes()).await;
        for piece in &reply.pieces {
            tokio::task::yield_now().await;
            written = written.and(stream.write_all(piece).await);
        }
        if written.is_err() || reply.end != End::Whole {
            return;
        }
    }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Option<Request> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let whole = head_end + 4 + length;
    while buffer.len() < whole {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = buffer[head_end + 4..whole].to_vec();
    buffer.drain(..whole);
    Some(Request { method, target, headers, body })
}

/// A task in the given status, as JSON that a test may change.
#[must_use]
pub fn sample_task(status: &str) -> serde_json::Value {
    let ended = !matches!(status, "queued" | "starting" | "running" | "paused" | "stopping");
    let code = match status {
        "succeeded" => Some(0),
        "failed" => Some(1),
        _ => None,
    };
    let outcome = ended.then(|| {
        serde_json::json!({ "exit_code": code, "signal": null, "reason": null, "stopped_by": null, "survivors": [] })
    });
    serde_json::json!({
        "id": "t-bcdfghjkmn", "kind": "command", "name": null, "description": null, "owner": "user", "labels": {},
        "command": "cargo test", "argv": ["cargo", "test"], "cwd": "/src", "env_names": ["PATH"], "group": "default",
        "priority": 0, "status": status, "queued_reason": null, "attempt": 1, "pid": 4242, "quiet_since": null,
        "waiting_for_input": false, "progress": null, "created_at": "2026-01-01T00:00:00.000Z",
        "started_at": "2026-01-01T00:00:00.010Z", "ended_at": ended.then_some("2026-01-01T00:00:01.010Z"),
        "duration_ms": ended.then_some(1000), "outcome": outcome,
        "output": { "bytes": 9, "dropped": 0, "path": "/h/tasks/t-bcdfghjkmn/output.log" }, "agent": null,
        "answer": null, "answer_state": null, "notify": { "on": "always", "targets": ["inbox"] }, "parent": null, "depth": 0
    })
}
