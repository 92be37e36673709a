//! One question and its answer for a process that does nothing else meanwhile: over a blocking socket, without an event loop.
//!
//! For such a process the loop is a large part of what it does at all. This is the way of a daemon that is there and answers; whatever takes more
//! than that, the loop does. What is asked here can be repeated, so it can begin again there.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use homing_shim::private::PrivateHome;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::call::{Answer, Call};
use crate::client::{Client, Way};
use crate::error::Error;
use crate::socket::SOCKET;

/// More fields than the daemon ever sends.
const FIELDS: usize = 32;
/// A longer head than it ever sends.
const LONGEST_HEAD: usize = 64 << 10;

impl Client {
    /// Asks at once, and does something while the daemon finds the answer; if there is none, it may have been heard or not.
    pub(crate) fn ask_directly(
        &self,
        call: &Call,
        meanwhile: impl FnOnce(),
    ) -> Result<Option<Answer>, Error> {
        let Way::Socket { home, .. } = &self.inner.way else { return Ok(None) };
        // What cannot be repeated is asked once, by the loop.
        if !call.is_safe() {
            return Ok(None);
        }
        let Some(mut stream) = reach(home) else { return Ok(None) };
        self.inner.connected_before.store(true, Ordering::Relaxed);
        if stream.write_all(&call.message(self.owner.as_ref())).is_err() {
            return Ok(None);
        }
        meanwhile();
        match hear(&mut stream) {
            Some((status, headers, body)) => {
                Answer { what: call.what(), status, headers, body }.accepted().map(Some)
            }
            None => Ok(None),
        }
    }
}

/// A connection to a daemon of ours, if it can be had without waiting for anything.
fn reach(home: &Path) -> Option<UnixStream> {
    let home = PrivateHome::open(home).ok()?;
    let address = SocketAddrUnix::new(home.socket(SOCKET)).ok()?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    // A full queue is an error here.
    connect(&stream, &address).ok()?;
    home.check_listener(&stream).ok()?;
    let stream = UnixStream::from(stream);
    stream.set_nonblocking(false).ok()?;
    Some(stream)
}

/// A whole answer, if one comes, and of known length.
fn hear(stream: &mut impl Read) -> Option<(StatusCode, HeaderMap, Bytes)> {
    let mut heard = Vec::with_capacity(4096);
    let mut head = None;
    loop {
        if head.is_none() {
            head = understand(&heard)?;
        }
        if head.is_none() && heard.len() > LONGEST_HEAD {
            return None;
        }
        if let Some(Head { status, headers, body, end }) = head.take_if(|head| heard.len() >= head.end) {
            return Some((status, headers, Bytes::from(heard).slice(body..end)));
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(0) => return None,
            Ok(read) => heard.extend_from_slice(piece.get(..read)?),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// The head of an answer.
struct Head {
    status: StatusCode,
    headers: HeaderMap,
    /// Where the body begins, and where it ends.
    body: usize,
    end: usize,
}

/// The head, if it is here, and whole; nothing at all where it cannot be one.
#[expect(clippy::option_option, reason = "never, not yet, or this")]
fn understand(heard: &[u8]) -> Option<Option<Head>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(body) = parsed.parse(heard).ok()? else { return Some(None) };
    let status = StatusCode::from_u16(parsed.code?).ok()?;
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    for field in parsed.headers.iter() {
        headers.append(
            HeaderName::from_bytes(field.name.as_bytes()).ok()?,
            HeaderValue::from_bytes(field.value).ok()?,
        );
    }
    let length: usize = headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()?;
    let end = body.checked_add(length)?;
    Some(Some(Head { status, headers, body, end }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use homing_api::Code;
    use homing_api::Problem;
    use homing_model::Spec;

    use super::*;
    use crate::fake::{Fake, Reply, Request, sample_task};
    use crate::tasks::Submitted;

    /// What comes of a submit, and whether something was done meanwhile.
    async fn submit(home: &Path) -> (Result<Option<Submitted>, Error>, bool) {
        let client = Client::new(home, "me");
        let asking = tokio::task::spawn_blocking(move || {
            let spec = Spec { argv: vec!["true".into()], ..Spec::default() };
            let mut done = false;
            (client.submit_directly(&spec, "k1", || done = true), done)
        });
        asking.await.unwrap()
    }

    async fn answered(
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> (Result<Option<Submitted>, Error>, Vec<Request>) {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), answer);
        let (submitted, done) = submit(home.path()).await;
        assert!(done, "meanwhile, whatever comes of it");
        (submitted, fake.requests())
    }

    #[tokio::test]
    async fn it_is_the_same_question_and_the_same_answer() {
        let task = || sample_task("running").to_string();
        let (submitted, asked) = answered(move |_| Reply::json(201, task())).await;
        let submitted = submitted.unwrap().unwrap();
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), move |_| Reply::json(201, task()));
        let spec = Spec { argv: vec!["true".into()], ..Spec::default() };
        let usual = Client::new(home.path(), "me").submit(&spec, Some("k1")).await.unwrap();
        assert_eq!(submitted, usual);
        let sorted = |request: &Request| {
            let mut headers = request.headers.clone();
            headers.sort();
            (request.method.clone(), request.target.clone(), headers, request.body.clone())
        };
        assert_eq!(
            asked.iter().map(sorted).collect::<Vec<_>>(),
            fake.requests().iter().map(sorted).collect::<Vec<_>>()
        );
        let (joined, _) = answered(move |_| Reply::json(200, task())).await;
        assert!(joined.unwrap().unwrap().joined);
    }

    #[tokio::test]
    async fn a_long_answer_is_heard_to_its_end() {
        let mut task = sample_task("running");
        task["command"] = "x".repeat(100_000).into();
        let (submitted, _) = answered(move |_| Reply::json(201, task.to_string())).await;
        assert_eq!(submitted.unwrap().unwrap().task.command.len(), 100_000);
    }

    #[tokio::test]
    async fn a_refusal_is_the_answer() {
        let problem = Problem::new(Code::TooLarge, "too much");
        let (submitted, _) = answered(move |_| Reply::problem(&problem)).await;
        assert_eq!(submitted.unwrap_err().code(), Some(Code::TooLarge));
    }

    #[tokio::test]
    async fn what_takes_more_is_left_to_the_loop() {
        for reply in [Reply::cut(), Reply::json(201, "{}").broken(), Reply::stream(["data: x\n\n"])] {
            let (submitted, asked) = answered(move |_| reply.clone()).await;
            assert!(matches!(submitted, Ok(None)), "{submitted:?}");
            assert_eq!(asked.len(), 1);
        }
        let unheard = Client::new(tempfile::tempdir().unwrap().path(), "me");
        let spec = Spec { argv: vec!["true".into()], ..Spec::default() };
        assert!(matches!(unheard.submit_directly(&spec, "no\nheader", || unreachable!()), Ok(None)));
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(submit(folder.path()).await, (Ok(None), false)), "nobody listens");
        let fake = Fake::serve(folder.path(), |_| Reply::json(201, "{}"));
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        assert!(matches!(submit(folder.path()).await, (Ok(None), false)), "others could be behind it");
        assert_eq!(fake.connections(), 0);
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for bytes in [
            "",
            "HTTP/1.1 201 Created\r\n",
            "HTTP/1.1 201 Created\r\ncontent-length: 3\r\n\r\nab",
            "HTTP/1.1 201 Created\r\ncontent-length: 18446744073709551615\r\n\r\n",
            "nonsense\r\n\r\n",
        ] {
            assert!(hear(&mut bytes.as_bytes()).is_none(), "{bytes:?}");
        }
        let endless = std::io::repeat(b'x');
        assert!(hear(&mut b"HTTP/1.1 201 Created\r\nx: ".chain(endless)).is_none());
        let (status, _, body) =
            hear(&mut &b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nabc"[..]).unwrap();
        assert_eq!((status, &body[..]), (StatusCode::CREATED, &b"ab"[..]));
    }
}
