//! What a [`Receiver`](crate::Receiver) does with a connection, well or badly.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::ground::drift;

/// What to do with one connection.
#[derive(Debug, Clone)]
pub enum Script {
    /// Reads the request and answers.
    Answer {
        /// The status.
        status: u16,
        /// Headers besides the length of the body.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// Takes the connection and neither reads nor writes.
    Silent,
    /// Reads the request and sends half a head.
    HangInHead,
    /// Sends a whole head with this status and half a body.
    HangInBody(u16),
    /// Sends a whole head with this status and closes in the middle of the body.
    BreakInBody(u16),
    /// Sends a head with status 200 and a body of ten gigabytes.
    Endless,
    /// Sends a head that does not end.
    EndlessHead,
    /// Sends something that is not HTTP.
    Garbage,
    /// Reads the request and closes.
    Close,
    /// Closes without a look.
    Slam,
    /// Reads the request, takes this time, and answers with 200.
    Late(Duration),
}

impl Script {
    /// An answer with this status and nothing else.
    #[must_use]
    pub const fn status(status: u16) -> Self {
        Self::Answer { status, headers: Vec::new(), body: Vec::new() }
    }

    /// The same with a header. Only an answer has any.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The same with a body. Only an answer has one.
    #[must_use]
    pub fn body(mut self, text: impl Into<Vec<u8>>) -> Self {
        if let Self::Answer { body, .. } = &mut self {
            *body = text.into();
        }
        self
    }

    /// Plays it. Hanging lasts until the other side, or the end of the receiver, closes the connection.
    pub(crate) fn play<S: Read + Write>(
        &self,
        stream: S,
        sent: &AtomicU64,
        record: impl FnOnce(Request),
    ) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        if matches!(self, Self::Silent | Self::Slam) {
            // Not even a handshake: nothing is read here. In silence the caller holds the connection open.
            return Ok(());
        }
        record(Request::read(&mut stream)?);
        let out = stream.get_mut();
        match self {
            Self::Silent | Self::Slam | Self::Close => return Ok(()),
            Self::Late(time) => {
                drift(*time);
                out.write_all(b"HTTP/1.1 200 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n")?;
            }
            Self::Answer { status, headers, body } => {
                let mut answer = format!("HTTP/1.1 {status} \r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    answer.push_str(&format!("{name}: {value}\r\n"));
                }
                answer.push_str("connection: close\r\n\r\n");
                out.write_all(&[answer.as_bytes(), body].concat())?;
            }
            Self::HangInHead => out.write_all(b"HTTP/1.1 200 OK\r\ncontent-")?,
            Self::HangInBody(status) | Self::BreakInBody(status) => {
                write!(out, "HTTP/1.1 {status} \r\ncontent-length: 100\r\n\r\nhalf of it")?;
            }
            Self::Endless => {
                write!(out, "HTTP/1.1 200 OK\r\ncontent-length: 10737418240\r\n\r\n")?;
                pour(out, 10 << 30, sent)?;
            }
            Self::EndlessHead => {
                write!(out, "HTTP/1.1 200 OK\r\nx-endless: ")?;
                pour(out, 10 << 30, sent)?;
            }
            Self::Garbage => out.write_all(b"SSH-2.0-OpenSSH_9.9\r\n")?,
        }
        out.flush()
    }

    /// Whether the connection is held open when everything was said.
    pub(crate) const fn hangs(&self) -> bool {
        matches!(self, Self::Silent | Self::HangInHead | Self::HangInBody(_))
    }
}

fn pour(out: &mut impl Write, bytes: u64, sent: &AtomicU64) -> io::Result<()> {
    let piece = [b'x'; 16 * 1024];
    for _ in 0..bytes / piece.len() as u64 {
        out.write_all(&piece)?;
        sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// When it was there, whole.
    pub at: Instant,
    /// `POST`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// A header by its lower-case name; empty if it is not there.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a body in JSON")
    }

    #[expect(clippy::disallowed_methods, reason = "a receiver in a test is where the real time is noted")]
    fn read(stream: &mut impl BufRead) -> io::Result<Self> {
        let first = line(stream)?;
        let mut words = first.split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = Vec::new();
        loop {
            let line = line(stream)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut body = vec![0; length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)];
        stream.read_exact(&mut body)?;
        Ok(Self { at: Instant::now(), method, target, headers, body })
    }
}

fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}
