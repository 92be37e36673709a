//! HTTP by hand over the home's socket: what a program without our client would send, and what it would get.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use crate::home::Home;

/// An answer whose body is still to be read.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
    body: BufReader<Body>,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sse {
    /// Its name.
    pub event: String,
    /// Its id, where it has one.
    pub id: Option<String>,
    /// Its data.
    pub data: String,
}

impl Sse {
    /// The data as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.data))
    }
}

impl Reply {
    /// A header's value; empty if it is not there.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        find(&self.headers, name)
    }

    /// A header's value as a number.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.header(name).parse().unwrap_or_else(|_| panic!("no number in {name}: {:?}", self.headers))
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {} {text}", self.status))
    }
}

impl Answer {
    /// The rest of it.
    #[must_use]
    pub fn whole(self) -> Reply {
        self.try_whole().expect("the body")
    }

    /// The rest of it, from a daemon that may be killed meanwhile.
    ///
    /// # Errors
    /// If it broke off.
    pub fn try_whole(mut self) -> io::Result<Reply> {
        let mut body = Vec::new();
        self.body.read_to_end(&mut body)?;
        Ok(Reply { status: self.status, headers: self.headers, body })
    }
}

/// The events of a stream, until it ends.
impl Iterator for Answer {
    type Item = Sse;

    fn next(&mut self) -> Option<Sse> {
        let (mut event, mut id, mut data) = (String::new(), None, String::new());
        loop {
            let mut line = Vec::new();
            // A line without its end is of a stream that broke off.
            self.body.read_until(b'\n', &mut line).ok()?;
            if line.pop() != Some(b'\n') {
                return None;
            }
            let line = String::from_utf8_lossy(&line).into_owned();
            match line.split_once(':').map(|(name, value)| (name, value.trim_start())) {
                Some(("event", value)) => event = value.to_owned(),
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("data", value)) => data.push_str(value),
                None if line.is_empty() && !event.is_empty() => return Some(Sse { event, id, data }),
                _ => {}
            }
        }
    }
}

impl Home {
    /// Sends a request; the daemon must run.
    #[must_use]
    pub fn http(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_http(method, target, headers, body).expect("an answer")
    }

    /// Sends a request to a daemon that may not be there.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn try_http(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let folder = std::fs::File::open(self.path())?;
        let mut stream = UnixStream::connect(format!("/proc/self/fd/{}/homing.sock", folder.as_raw_fd()))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut head =
            format!("{method} {target} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str("host: homing\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        // A refused caller may be answered before it has said everything.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        read_head(BufReader::new(stream))
    }

    /// Asks for something.
    #[must_use]
    pub fn get(&self, target: &str) -> Reply {
        self.http("GET", target, &[], b"").whole()
    }

    /// Sends JSON.
    #[must_use]
    pub fn post(&self, target: &str, body: &Value) -> Reply {
        self.http("POST", target, &[("content-type", "application/json")], body.to_string().as_bytes())
            .whole()
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> &'a str {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
}

fn read_head(mut stream: BufReader<UnixStream>) -> io::Result<Answer> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let status = lines
        .first()
        .and_then(|line| line.split(' ').nth(1)?.parse().ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    let headers: Vec<_> = lines[1..].iter().filter_map(|line| line.split_once(':')).collect();
    let headers: Vec<_> =
        headers.into_iter().map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
    let chunked = find(&headers, "transfer-encoding") == "chunked";
    let left = if chunked { 0 } else { find(&headers, "content-length").parse().unwrap_or(u64::MAX) };
    Ok(Answer { status, headers, body: BufReader::new(Body { stream, chunked, left, over: false }) })
}

/// The bytes of a body, however they are framed.
#[derive(Debug)]
struct Body {
    stream: BufReader<UnixStream>,
    chunked: bool,
    /// In this chunk, or in all.
    left: u64,
    over: bool,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.over {
            return Ok(0);
        }
        if self.chunked && self.left == 0 {
            let mut line = String::new();
            // The line feed after the last chunk, then the size of this one.
            while line.trim().is_empty() {
                line.clear();
                if self.stream.read_line(&mut line)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            self.left = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = if most == 0 { 0 } else { self.stream.read(&mut buffer[..most])? };
        self.left -= count as u64;
        self.over = count == 0;
        Ok(count)
    }
}
