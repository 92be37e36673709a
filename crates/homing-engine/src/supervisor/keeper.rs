//! The engine's side of the keeper: hands launches over, and starts the keeper again when it dies.
//!
//! Keeps P4. On cancel (shutdown) the connection is dropped, which the keeper takes as the engine's end. On error the
//! connection is made anew, with a keeper started if there is none; launches wait meanwhile. A launch that was handed over and
//! then lost is noticed by its own attendant, which decides by the facts in the attempt's folder.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use homing_shim::keeper::{self, Mode, StartError};
use homing_shim::wire::{FromKeeper, ToKeeper};
use parking_lot::Mutex;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::background::Reporter;
use crate::run_blocking;
use crate::supervisor::is_shortage;

/// Between two tries to get a keeper.
const RETRY: Duration = Duration::from_millis(100);
/// A keeper that is just leaving may take a connection and never answer it: how often, and how soon again, a new engine asks.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// How long the keeper may take to hear why a daemon cannot start.
const HEARING: Duration = Duration::from_secs(2);
/// How often a packet that could not be sent for want of kernel memory is sent again, and the pause before each repetition.
const SHORTAGE_RETRIES: u32 = 50;
const SHORTAGE_PAUSE: Duration = Duration::from_millis(10);
/// Launches that wait for the keeper at most; beyond it submitters wait.
const QUEUE: usize = 1024;
/// Failed launches remembered at most.
const FAILURES: usize = 1024;

/// Where the keeper comes from.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) home: PathBuf,
    pub(crate) program: PathBuf,
    pub(crate) mode: Mode,
}

enum Request {
    Launch { nonce: u64, socket: OwnedFd, folder: OwnedFd },
    Say(ToKeeper, oneshot::Sender<()>),
}

/// What others hold.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    requests: mpsc::Sender<Request>,
    failures: Arc<Mutex<HashMap<u64, i32>>>,
    pid: watch::Receiver<Option<u32>>,
}

impl Handle {
    /// Asks for a shim over this socket in this folder.
    pub(crate) async fn launch(&self, nonce: u64, socket: OwnedFd, folder: OwnedFd) {
        // The receiver lives as long as the engine; after its end nothing is launched any more.
        let _ = self.requests.send(Request::Launch { nonce, socket, folder }).await;
    }

    /// Tells the keeper something and waits until it was sent.
    pub(crate) async fn say(&self, message: ToKeeper) {
        let (done, told) = oneshot::channel();
        if self.requests.send(Request::Say(message, done)).await.is_ok() {
            let _ = told.await;
        }
    }

    /// Why the keeper could not fork a shim for this launch, if it said so.
    pub(crate) fn take_failure(&self, nonce: u64) -> Option<io::Error> {
        let mut failures = self.failures.lock();
        failures.remove(&nonce).map(io::Error::from_raw_os_error)
    }

    /// The keeper's process, while connected.
    pub(crate) fn pid(&self) -> Option<u32> {
        *self.pid.borrow()
    }
}

struct Service {
    options: Options,
    requests: mpsc::Receiver<Request>,
    failures: Arc<Mutex<HashMap<u64, i32>>>,
    pid: watch::Sender<Option<u32>>,
}

/// Connects to the home's keeper, starting one if need be, and goes on attending it in the background.
pub(crate) async fn start(
    options: Options,
    shutdown: CancellationToken,
    report: Reporter,
) -> Result<Handle, StartError> {
    let (requests, receiver) = mpsc::channel(QUEUE);
    let failures = Arc::default();
    let (pid, pid_seen) = watch::channel(None);
    let mut service = Service { options, requests: receiver, failures: Arc::clone(&failures), pid };
    let connection = service.connect_patiently().await?;
    tokio::spawn(service.run(connection, shutdown, report));
    Ok(Handle { requests, failures, pid: pid_seen })
}

impl Service {
    async fn run(mut self, connection: UnixStream, shutdown: CancellationToken, report: Reporter) {
        let mut connection = Some(connection);
        let mut unsent = None;
        loop {
            let Some(current) = &connection else {
                tokio::select! {
                    biased;
                    () = shutdown.cancelled() => return,
                    made = self.connect() => match made {
                        Ok(made) => {
                            report.run();
                            connection = Some(made);
                        }
                        Err(error) => {
                            report.error(&error);
                            tracing::warn!(%error, "no keeper; trying again");
                            tokio::time::sleep(RETRY).await;
                        }
                    },
                }
                continue;
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                request = next(&mut unsent, &mut self.requests) => {
                    let Some(request) = request else { return };
                    if let Err(request) = self.send(current, request).await {
                        unsent = request;
                        connection = self.part();
                    }
                }
                heard = receive(current) => match heard {
                    Ok(Some(FromKeeper::LaunchFailed(nonce, code))) => self.remember_failure(nonce, code),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => {
                        tracing::warn!("the keeper is gone; starting another");
                        connection = self.part();
                    }
                },
            }
        }
    }

    /// The connection is of no use any more. Nor is the keeper's pid: it may be another process's from now on, below which nobody is an orphan.
    fn part(&self) -> Option<UnixStream> {
        self.pid.send_replace(None);
        None
    }

    fn remember_failure(&self, nonce: u64, code: i32) {
        let mut failures = self.failures.lock();
        if failures.len() < FAILURES {
            failures.insert(nonce, code);
        }
    }

    /// Sends a request; on failure answers what is to be sent to the next keeper.
    async fn send(&self, connection: &UnixStream, request: Request) -> Result<(), Option<Request>> {
        match request {
            Request::Launch { nonce, socket, folder } => {
                let fds = [socket.as_fd(), folder.as_fd()];
                // A launch that cannot be handed over drops its socket, and its attendant sees that.
                write(connection, &ToKeeper::Launch(nonce), &fds).await.map_err(|error| {
                    if let Some(code) = error.raw_os_error() {
                        self.remember_failure(nonce, code);
                    }
                    None
                })
            }
            // Nobody else says it again: clients wait for the daemon until the keeper has heard that it is ready.
            Request::Say(message, done) => match write(connection, &message, &[]).await {
                Ok(()) => {
                    let _ = done.send(());
                    Ok(())
                }
                Err(_) => Err(Some(Request::Say(message, done))),
            },
        }
    }

    async fn connect_patiently(&mut self) -> Result<UnixStream, StartError> {
        for _ in 1..TRIES {
            match self.connect().await {
                Err(StartError::Silent(_)) => tokio::time::sleep(BETWEEN_TRIES).await,
                result => return result,
            }
        }
        self.connect().await
    }

    async fn connect(&mut self) -> Result<UnixStream, StartError> {
        let options = self.options.clone();
        let connection = run_blocking(move || open(&options))
            .await
            .map_err(|error| StartError::Keeper(error.to_string()))??;
        // A packet socket; the stream type is only how the runtime watches it.
        let connection = UnixStream::from_std(connection).map_err(StartError::Silent)?;
        write(&connection, &ToKeeper::Engine, &[]).await.map_err(StartError::Silent)?;
        match receive(&connection).await.map_err(StartError::Silent)? {
            Some(FromKeeper::Welcome(pid)) => {
                self.pid.send_replace(Some(pid));
                Ok(connection)
            }
            Some(_) => Err(StartError::Keeper("it did not welcome the engine".into())),
            None => Err(StartError::Silent(io::ErrorKind::ConnectionAborted.into())),
        }
    }
}

fn open(options: &Options) -> Result<std::os::unix::net::UnixStream, StartError> {
    let connect = |home: &Path| -> io::Result<std::os::unix::net::UnixStream> {
        let connection = std::os::unix::net::UnixStream::from(OwnedFd::from(keeper::connect(home)?));
        connection.set_nonblocking(true)?;
        Ok(connection)
    };
    if let Ok(connection) = connect(&options.home) {
        return Ok(connection);
    }
    keeper::spawn(&options.home, &options.program, options.mode)?;
    Ok(connect(&options.home)?)
}

/// The request that could not be sent, else the next one.
async fn next(unsent: &mut Option<Request>, requests: &mut mpsc::Receiver<Request>) -> Option<Request> {
    match unsent.take() {
        Some(request) => Some(request),
        None => requests.recv().await,
    }
}

async fn write(
    connection: &UnixStream,
    message: &ToKeeper,
    fds: &[std::os::fd::BorrowedFd<'_>],
) -> io::Result<()> {
    let mut retries = 0;
    loop {
        connection.writable().await?;
        match connection.try_io(Interest::WRITABLE, || keeper::send(connection, message, fds)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if is_shortage(&error) && retries < SHORTAGE_RETRIES => {
                retries += 1;
                tokio::time::sleep(SHORTAGE_PAUSE).await;
            }
            sent => return sent,
        }
    }
}

/// The next message; none when the keeper is gone. Messages of a later release are passed over.
async fn receive(connection: &UnixStream) -> io::Result<Option<FromKeeper>> {
    loop {
        connection.readable().await?;
        match connection.try_io(Interest::READABLE, || keeper::receive::<FromKeeper>(connection)) {
            Ok(Some(received)) => {
                if let Some(message) = received.message {
                    return Ok(Some(message));
                }
            }
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Tells the keeper why this daemon could not start, so that whoever asked for it is told. Best effort: the log has it too.
pub fn report_start_failure(home: &Path, reason: &str) {
    let short: String = reason.chars().take(1000).collect();
    let Ok(connection) = keeper::connect(home) else { return };
    // It hangs up when it has heard; whoever dies before that is not looked at any more, and dies without a reason.
    let limited = set_socket_timeout(&connection, Timeout::Recv, Some(HEARING));
    if limited.is_ok() && connection.send(&ToKeeper::CannotStart(short), &[]).is_ok() {
        let _ = connection.receive::<FromKeeper>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::background::Background;
    use crate::clock::SystemClock;

    #[tokio::test]
    async fn p11_a_keeper_that_cannot_be_sent_to_is_not_known_by_its_pid() {
        let home = tempfile::tempdir().unwrap();
        let options =
            Options { home: home.path().to_owned(), program: home.path().join("none"), mode: Mode::Embedded };
        let (requests, receiver) = mpsc::channel(1);
        let (pid, mut pid_seen) = watch::channel(Some(17));
        let service = Service { options, requests: receiver, failures: Arc::default(), pid };
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let (done, _told) = oneshot::channel();
        // It is there before the service looks, which then sends before it reads.
        assert!(requests.send(Request::Say(ToKeeper::Engine, done)).await.is_ok());
        let shutdown = CancellationToken::new();
        let report = Background::new(Arc::new(SystemClock)).register("keeper", "keeps a connection", None);
        let running = tokio::spawn(service.run(ours, shutdown.clone(), report));
        let cleared = tokio::time::timeout(Duration::from_secs(30), pid_seen.wait_for(Option::is_none)).await;
        assert!(matches!(cleared, Ok(Ok(_))), "the pid stays");
        shutdown.cancel();
        running.await.unwrap();
    }
}
