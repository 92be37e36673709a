//! The client itself: idle connections, and what happens when the daemon is not there.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use homing_api::Problem;
use homing_model::environment::DEFAULT_OWNER;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::transport::call::{Answer, Call};
use crate::transport::error::Error;
use crate::transport::socket;
use crate::transport::tcp::Tcp;

/// Whether the daemon was not there from the start, or went away in the middle, and how long the caller waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// This client has never reached it.
    NeverThere,
    /// The same, but the caller names a task and waits for as long as it takes ([`Client::patient_for_task`]).
    AwaitedFirst,
    /// It answered before.
    WentAway,
    /// It answered before, and the caller waits for as long as it takes ([`Client::patient`]).
    Awaited,
}

/// Called when nobody listens. Once it returns `Ok`, the connection is tried again.
pub type Revive =
    Arc<dyn Fn(Absence) -> Pin<Box<dyn Future<Output = Result<(), Problem>> + Send>> + Send + Sync>;

/// Opens a connection to a server in this process: gives the client's end of a pipe whose other end is served.
pub type Connect = Arc<dyn Fn() -> DuplexStream + Send + Sync>;

pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// How often in a row a repeatable request may find the daemon gone before that is an error.
pub(crate) const ATTEMPTS: u32 = 12;

/// Longer each time, about five seconds in all: enough for a restart, and no storm while it lasts.
pub(crate) fn pause_after(attempt: u32) -> Duration {
    Duration::from_millis(10) * 2_u32.pow(attempt.min(6))
}

/// A question that stood so long before it broke off was heard by a daemon that lived: that it is gone is news, not the last failure again.
const STOOD: Duration = Duration::from_millis(100);

/// How often in a row a repeatable request has found the daemon gone.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    pub(crate) failures: u32,
    /// Whether it is one that stands until something happens, and so may meet many daemons.
    stands: bool,
    /// When it was last sent to somebody.
    sent: Option<Instant>,
}

impl Tries {
    /// Of a question that stands.
    pub(crate) fn standing() -> Self {
        Self { stands: true, ..Self::default() }
    }

    fn count(&mut self) {
        let stood = self.stands && self.sent.take().is_some_and(|sent| sent.elapsed() >= STOOD);
        self.failures = if stood { 1 } else { self.failures + 1 };
    }
}

/// How long a client repeats what may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// [`ATTEMPTS`] times.
    Restart,
    /// Until a daemon answers, once one was reached.
    OnceReached,
    /// Until a daemon answers.
    FromStart,
}

/// A client of one home. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
    /// Who calls; nobody in particular if absent.
    pub(crate) owner: Option<HeaderValue>,
    patience: Patience,
}

/// How the server is reached.
pub(crate) enum Way {
    /// By the socket of a home.
    Socket { home: PathBuf, revive: Option<Revive> },
    /// It is in this process.
    Within(Connect),
    /// By its loopback listener.
    Tcp(Tcp),
}

pub(crate) struct Inner {
    pub(crate) way: Way,
    idle: Mutex<Vec<Sender>>,
    reviving: tokio::sync::Mutex<()>,
    pub(crate) connected_before: AtomicBool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let home = match &self.inner.way {
            Way::Socket { home, .. } => Some(home),
            Way::Within(_) | Way::Tcp(_) => None,
        };
        f.debug_struct("Client").field("home", &home).field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Client {
    /// A client that speaks for `owner`. Nothing is opened yet.
    #[must_use]
    pub fn new(home: impl Into<PathBuf>, owner: &str) -> Self {
        Self::build(Way::Socket { home: home.into(), revive: None }, owner)
    }

    /// A client that calls `revive` when nobody listens.
    #[must_use]
    pub fn with_revive(home: impl Into<PathBuf>, owner: &str, revive: Revive) -> Self {
        Self::build(Way::Socket { home: home.into(), revive: Some(revive) }, owner)
    }

    /// A client of a server in this process, which has neither a socket nor a home of its own.
    #[must_use]
    pub fn within(connect: Connect, owner: &str) -> Self {
        Self::build(Way::Within(connect), owner)
    }

    /// A client of a daemon's loopback listener, for whoever cannot reach the socket. Nothing is opened yet.
    #[must_use]
    pub fn over_tcp(address: SocketAddr, token: &str, owner: &str) -> Self {
        Self::build(Way::Tcp(Tcp::new(address, token)), owner)
    }

    fn build(way: Way, owner: &str) -> Self {
        let inner = Inner {
            way,
            idle: Mutex::default(),
            reviving: tokio::sync::Mutex::default(),
            connected_before: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner), owner: None, patience: Patience::Restart }.on_behalf_of(owner)
    }

    /// The same connections, speaking for another owner.
    #[must_use]
    pub fn on_behalf_of(&self, owner: &str) -> Self {
        // An owner that no header can carry is refused by name when a spec with it is submitted.
        let owner =
            HeaderValue::from_bytes(owner.as_bytes()).unwrap_or(HeaderValue::from_static(DEFAULT_OWNER));
        Self { owner: Some(owner), ..self.clone() }
    }

    /// The same connections, for looks that say nothing of who has heard what: a call in an owner's name confirms what it was told before.
    #[must_use]
    pub fn nameless(&self) -> Self {
        Self { owner: None, ..self.clone() }
    }

    /// The same connections, for a caller that has a task, or a place in the log, and so something to wait for: what may be repeated is repeated
    /// until a daemon answers, however many die before. One that was never reached is an error all the same.
    #[must_use]
    pub fn patient(&self) -> Self {
        Self { patience: Patience::OnceReached, ..self.clone() }
    }

    /// The same, from the first attempt on: for a caller that names a task, which some daemon has accepted.
    #[must_use]
    pub fn patient_for_task(&self) -> Self {
        Self { patience: Patience::FromStart, ..self.clone() }
    }

    fn is_patient(&self) -> bool {
        self.patience != Patience::Restart
    }

    /// Sends a request once and reads the whole answer.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        self.attempt(call, &mut Tries::default()).await
    }

    /// The same, where it may have been sent before: a failure is counted.
    pub(crate) async fn send_again(&self, call: &Call, tries: &mut Tries) -> Result<Answer, Error> {
        let answered = self.attempt(call, tries).await;
        match &answered {
            Ok(_) => tries.failures = 0,
            Err(_) => tries.count(),
        }
        answered
    }

    async fn attempt(&self, call: &Call, tries: &mut Tries) -> Result<Answer, Error> {
        let (response, sender) = self.exchange(call, tries).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(Error::Broken)?.to_bytes();
        if !sender.is_closed() {
            self.idle().push(sender);
        }
        Answer { what: call.what(), status: head.status, headers: head.headers, body }.accepted()
    }

    /// Sends a request that may be repeated until the daemon has answered it, through restarts.
    pub(crate) async fn persist(&self, call: &Call) -> Result<Answer, Error> {
        self.persist_by(call, Tries::default()).await
    }

    /// The same, by such tries.
    pub(crate) async fn persist_by(&self, call: &Call, mut tries: Tries) -> Result<Answer, Error> {
        loop {
            match self.send_again(call, &mut tries).await {
                Err(error) if self.worth_another(&error, tries.failures) => {
                    self.breathe(tries.failures).await;
                }
                result => return result,
            }
        }
    }

    /// Opens a streamed answer. The sender must live as long as the body is read.
    pub(crate) async fn open(&self, call: &Call) -> Result<(Response<Incoming>, Sender), Error> {
        let (response, sender) = self.exchange(call, &mut Tries::default()).await?;
        if response.status() == StatusCode::OK {
            return Ok((response, sender));
        }
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(Error::Broken)?.to_bytes();
        let answer =
            Answer { what: call.what(), status: head.status, headers: head.headers, body }.accepted()?;
        Err(Error::Protocol {
            why: format!("status {} instead of a stream", answer.status),
            what: answer.what,
        })
    }

    /// Sends a request by which a connection of its own becomes something else; gives back the answer that says so.
    pub(crate) async fn upgrade<const N: usize>(
        &self,
        call: &Call,
        headers: [(HeaderName, HeaderValue); N],
    ) -> Result<Response<Incoming>, Error> {
        let mut request = call.request(self.owner.as_ref())?;
        request.headers_mut().extend(headers);
        if let Way::Tcp(tcp) = &self.inner.way {
            tcp.dress(&mut request);
        }
        let mut sender = self.connect().await?;
        let response = sender.send_request(request).await.map_err(Error::Broken)?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(Error::Broken)?.to_bytes();
        let answer =
            Answer { what: call.what(), status: head.status, headers: head.headers, body }.accepted()?;
        Err(Error::Protocol {
            why: format!("status {} instead of another protocol", answer.status),
            what: answer.what,
        })
    }

    /// Whether a repeatable request should be tried again after this error, the last of so many in a row.
    pub(crate) fn worth_another(&self, error: &Error, failures: u32) -> bool {
        // A server in this process breaks off because the process leaves: the next one is elsewhere, and whoever asked us has to ask that.
        let may_come_back = !matches!(self.inner.way, Way::Within(_));
        let was_there = self.inner.connected_before.load(Ordering::Relaxed);
        let passes = error.is_disconnect() || (self.is_patient() && error.is_shortage());
        passes && (self.is_patient() || failures < ATTEMPTS) && was_there && may_come_back
    }

    /// Rests before another attempt.
    pub(crate) async fn breathe(&self, attempt: u32) {
        sleep(pause_after(attempt)).await;
    }

    async fn exchange(&self, call: &Call, tries: &mut Tries) -> Result<(Response<Incoming>, Sender), Error> {
        let request = || {
            let mut request = call.request(self.owner.as_ref())?;
            if let Way::Tcp(tcp) = &self.inner.way {
                tcp.dress(&mut request);
            }
            Ok::<_, Error>(request)
        };
        while let Some(mut sender) = self.take_idle() {
            if sender.ready().await.is_err() {
                continue;
            }
            tries.sent = Some(Instant::now());
            match sender.send_request(request()?).await {
                Ok(response) => return Ok((response, sender)),
                // An idle connection may be closed by the other side just now: what was not sent, or may be repeated, is.
                Err(error) if error.is_canceled() || call.is_safe() => {}
                Err(error) => return Err(Error::Broken(error)),
            }
        }
        tries.sent = None;
        let mut sender = self.connect().await?;
        tries.sent = Some(Instant::now());
        let response = sender.send_request(request()?).await.map_err(Error::Broken)?;
        Ok((response, sender))
    }

    async fn connect(&self) -> Result<Sender, Error> {
        let sender = match &self.inner.way {
            Way::Within(connect) => begin(connect()).await?,
            Way::Tcp(tcp) => begin(tcp.connect().await?).await?,
            Way::Socket { home, revive } => match (socket::connect(home).await, revive) {
                (Err(error), Some(revive)) if error.is_nobody_there() => {
                    begin(self.connect_revived(home, revive).await?).await?
                }
                (result, _) => begin(result?).await?,
            },
        };
        self.inner.connected_before.store(true, Ordering::Relaxed);
        Ok(sender)
    }

    /// Has the daemon revived, by one caller at a time, and connects.
    async fn connect_revived(&self, home: &Path, revive: &Revive) -> Result<UnixStream, Error> {
        let _turn = self.inner.reviving.lock().await;
        match socket::connect(home).await {
            Err(error) if error.is_nobody_there() => {}
            result => return result,
        }
        let before = self.inner.connected_before.load(Ordering::Relaxed);
        let absence = match (before, self.patience) {
            (false, Patience::Restart | Patience::OnceReached) => Absence::NeverThere,
            (false, Patience::FromStart) => Absence::AwaitedFirst,
            (true, Patience::Restart) => Absence::WentAway,
            (true, Patience::OnceReached | Patience::FromStart) => Absence::Awaited,
        };
        let mut attempt = 1;
        loop {
            revive(absence).await?;
            // It was there a moment ago: from now on its absence is a restart.
            self.inner.connected_before.store(true, Ordering::Relaxed);
            match socket::connect(home).await {
                Err(error) if error.is_nobody_there() && (self.is_patient() || attempt < ATTEMPTS) => {
                    // The last one no longer listens, and its keeper has not seen it go yet: it is asked again in a moment.
                    self.breathe(attempt).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// Whether nobody listens at the moment, and somebody is waited for.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.inner.reviving.try_lock().is_err()
    }

    fn take_idle(&self) -> Option<Sender> {
        self.idle().pop()
    }

    fn idle(&self) -> parking_lot::MutexGuard<'_, Vec<Sender>> {
        self.inner.idle.lock()
    }
}

async fn begin(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Result<Sender, Error> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Error::Broken)?;
    // The connection's driver. It ends when the sender is dropped or the daemon closes; its errors reach the sender.
    drop(tokio::spawn(connection.with_upgrades()));
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use homing_api::Code;

    use super::*;
    use crate::fake::{Fake, Reply, serve_stream};
    use crate::transport::query::Target;

    #[tokio::test]
    async fn requests_in_a_row_share_one_connection() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |_| Reply::json(200, "{}"));
        let client = Client::new(home.path(), "user");
        for _ in 0..5 {
            client.send(&Call::get(Target::new("/healthz"))).await.unwrap();
        }
        assert_eq!(fake.connections(), 1);
        assert_eq!(fake.requests().len(), 5);
        assert_eq!(fake.requests()[0].header("homing-owner"), Some("user"));
    }

    #[tokio::test]
    async fn one_client_speaks_for_several_owners_or_for_nobody() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |_| Reply::json(200, "{}"));
        let client = Client::new(home.path(), "ann");
        let look = Call::get(Target::new("/healthz"));
        for one in [&client, &client.on_behalf_of("bob"), &client.nameless()] {
            one.send(&look).await.unwrap();
        }
        let owners: Vec<_> =
            fake.requests().iter().map(|one| one.header("homing-owner").map(str::to_owned)).collect();
        assert_eq!(owners, [Some("ann".to_owned()), Some("bob".to_owned()), None]);
        assert_eq!(fake.connections(), 1);
    }

    #[tokio::test]
    async fn a_server_in_this_process_is_asked_over_a_pipe() {
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        let connect: Connect = Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            let (ours, theirs) = tokio::io::duplex(1024);
            drop(tokio::spawn(async { serve_stream(theirs, &|_| Reply::json(200, "{}")).await }));
            ours
        });
        let client = Client::within(connect, "user");
        for _ in 0..3 {
            client.send(&Call::get(Target::new("/healthz"))).await.unwrap();
        }
        assert_eq!(opened.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_server_in_this_process_that_breaks_off_is_not_asked_again() {
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        let connect: Connect = Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::io::duplex(1024).0
        });
        let error = Client::within(connect, "user").persist(&Call::get(Target::new("/v1/wait"))).await;
        assert!(error.is_err_and(|error| error.is_disconnect()));
        assert_eq!(opened.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_refusal_is_the_problem_that_was_sent() {
        let home = tempfile::tempdir().unwrap();
        let _fake =
            Fake::serve(home.path(), |_| Reply::problem(&Problem::new(Code::UnknownTask, "no task `x`")));
        let error = Client::new(home.path(), "u").send(&Call::get(Target::new("/x"))).await.unwrap_err();
        assert_eq!(error.code(), Some(Code::UnknownTask));
    }

    #[tokio::test]
    async fn nobody_there_calls_the_hook_which_may_start_one() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("home");
        let absent = path.clone();
        let started = Arc::new(Mutex::new(Vec::new()));
        let fakes = Arc::clone(&started);
        let revive: Revive = Arc::new(move |absence| {
            assert_eq!(absence, Absence::NeverThere);
            std::fs::create_dir(&path).unwrap();
            fakes.lock().push(Fake::serve(&path, |_| Reply::json(200, "{}")));
            Box::pin(async { Ok(()) })
        });
        let client = Client::with_revive(absent, "u", revive);
        client.send(&Call::post(Target::new("/v1/gc"))).await.unwrap();
        assert_eq!(started.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_hook_that_refuses_is_the_error() {
        let home = tempfile::tempdir().unwrap();
        let revive: Revive =
            Arc::new(|_| Box::pin(async { Err(Problem::new(Code::NestedStart, "inside a task")) }));
        let client = Client::with_revive(home.path().join("absent"), "u", revive);
        let error = client.persist(&Call::get(Target::new("/x"))).await.unwrap_err();
        assert_eq!(error.code(), Some(Code::NestedStart));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_heard_for_a_while_begins_to_count_anew() {
        let mut tries = Tries::standing();
        for (sent, stood, expected) in
            [(true, 0, 1), (true, 99, 2), (false, 5_000, 3), (true, 100, 1), (true, 60_000, 1), (false, 0, 2)]
        {
            tries.sent = sent.then(Instant::now);
            tokio::time::advance(Duration::from_millis(stood)).await;
            tries.count();
            assert_eq!(tries.failures, expected, "{sent} {stood}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_patient_caller_outlasts_any_number_of_daemons() {
        const DEATHS: usize = 5 * ATTEMPTS as usize;
        let home = tempfile::tempdir().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let deaths = Arc::clone(&count);
        let _fake = Fake::serve(home.path(), move |_| match deaths.fetch_add(1, Ordering::Relaxed) {
            // It was reached once; then the others die before they answer.
            1..=DEATHS => Reply::cut(),
            _ => Reply::json(200, "{}"),
        });
        let client = Client::new(home.path(), "u");
        let call = Call::get(Target::new("/v1/wait"));
        client.persist(&call).await.unwrap();
        let impatient = client.persist(&call).await;
        assert!(impatient.is_err_and(|error| error.is_disconnect()), "it has nothing to wait for");
        count.store(1, Ordering::Relaxed);
        client.patient().persist(&call).await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), DEATHS + 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_patient_caller_outlasts_a_shortage() {
        for code in [Code::TooManyConnections, Code::SystemLimit] {
            let home = tempfile::tempdir().unwrap();
            let count = AtomicUsize::new(0);
            let problem = serde_json::to_string(&Problem::new(code, "full")).unwrap();
            let _fake = Fake::serve(home.path(), move |_| match count.fetch_add(1, Ordering::Relaxed) {
                0..30 => Reply::json(503, problem.clone()),
                _ => Reply::json(200, "{}"),
            });
            let client = Client::new(home.path(), "u");
            let call = Call::get(Target::new("/v1/wait"));
            let impatient = client.persist(&call).await.unwrap_err();
            assert_eq!(impatient.code(), Some(code));
            client.patient().persist(&call).await.unwrap();
        }
    }

    #[tokio::test]
    async fn the_hook_learns_who_waits_for_as_long_as_it_takes() {
        let home = tempfile::tempdir().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&heard);
        let revive: Revive = Arc::new(move |absence| {
            told.lock().push(absence);
            Box::pin(async { Err(Problem::new(Code::DaemonUnreachable, "gone")) })
        });
        let client = Client::with_revive(home.path().join("absent"), "u", revive);
        let call = Call::get(Target::new("/x"));
        // Nothing was reached yet: patience is for what there was.
        assert!(client.patient().persist(&call).await.is_err());
        assert!(client.patient_for_task().persist(&call).await.is_err());
        client.inner.connected_before.store(true, Ordering::Relaxed);
        assert!(client.persist(&call).await.is_err());
        assert!(client.patient().nameless().persist(&call).await.is_err());
        let expected = [Absence::NeverThere, Absence::AwaitedFirst, Absence::WentAway, Absence::Awaited];
        assert_eq!(*heard.lock(), expected);
    }

    #[tokio::test]
    async fn what_may_be_repeated_is_repeated_and_what_may_not_is_not() {
        let home = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        let fake = Fake::serve(home.path(), move |_| match count.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Reply::cut(),
            _ => Reply::json(200, "{}"),
        });
        let client = Client::new(home.path(), "u");
        client.persist(&Call::get(Target::new("/a"))).await.unwrap();
        assert_eq!(fake.requests().len(), 2);
        let fresh = Client::new(home.path(), "u");
        assert!(matches!(fresh.send(&Call::post(Target::new("/b"))).await, Err(Error::Broken(_))));
        assert_eq!(fake.requests().len(), 3);
    }
}
