//! Stdout and stderr of a command that stays with a task and must react to signals all the while.
//!
//! While [`beside`] runs, everything that the console prints is queued and written without blocking
//! (`homing_tui::live::Outlet`), beside the work that prints it. Work with much to print waits for
//! [`settled`] before it fetches more: a reader that does not read holds up the output, but neither
//! signals nor keys. Last words on a way out ([`abandon`], [`part`]) are not waited for. Where stdout and
//! stderr are one terminal or one pipe they share a queue, so that nothing splits an escape sequence.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context as Polling, Poll};

use homing_tui::live::Outlet;
use rustix::io::Errno;
use tokio::sync::Notify;

use crate::cli::context::Context;
use crate::cli::exit_code::{self, Manner};
use crate::cli::failure::Failure;
use crate::terminal::keyboard::Endings;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// A pipe takes a write of at most this size whole, or not at all (PIPE_BUF).
const ATOMIC_WRITE_BYTES: usize = 4096;

/// A queue, or the error after which nothing can be written any more.
type Row = Result<Outlet, io::Error>;

#[derive(Debug)]
struct Outlets {
    out: Row,
    /// None where stderr leads to the same file as stdout.
    err: Option<Row>,
    /// Notified once everything is written.
    settled: Rc<Notify>,
    /// Set by [`hurry`].
    hurried: bool,
    /// Bytes of stdout that certainly were written, where stdout has a queue of its own.
    taken: u64,
    /// Whether stderr is a terminal in raw mode, where a newline does not return the cursor.
    raw: bool,
}

thread_local! {
    /// There is one stdout. Other threads print directly.
    static OUTLETS: RefCell<Option<Outlets>> = const { RefCell::new(None) };
}

fn with<T>(work: impl FnOnce(&mut Outlets) -> T) -> Option<T> {
    OUTLETS.with_borrow_mut(|outlets| outlets.as_mut().map(work))
}

/// Equal for two descriptors of the same terminal, pipe or file.
fn identity(fd: BorrowedFd<'_>) -> Option<(u64, u64, u64)> {
    let found = rustix::fs::fstat(fd).ok()?;
    // A terminal may have several names.
    if rustix::termios::isatty(fd) {
        return Some((0, 0, found.st_rdev));
    }
    Some((found.st_dev, found.st_ino, 0))
}

impl Outlets {
    fn open() -> Self {
        let (out, err) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let same = identity(out).is_some() && identity(out) == identity(err);
        let err = (!same).then(|| Outlet::to(err));
        Self { out: Outlet::to(out), err, settled: Rc::default(), hurried: false, taken: 0, raw: false }
    }

    fn row(&mut self, stream: Stream) -> &mut Row {
        match (stream, &mut self.err) {
            (Stream::Err, Some(err)) => err,
            (Stream::Err, None) | (Stream::Out, _) => &mut self.out,
        }
    }

    fn rows(&mut self) -> impl Iterator<Item = &mut Row> {
        std::iter::once(&mut self.out).chain(&mut self.err)
    }

    fn is_settled(&mut self) -> bool {
        self.rows().all(|row| row.as_ref().map_or(true, Outlet::is_done))
    }

    fn push(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let row = self.row(stream);
        let mut at_once = 0;
        let put = match row {
            Ok(outlet) => {
                // Only a write that is taken whole or not at all says how much was taken.
                let (first, rest) = bytes.split_at(bytes.len().min(ATOMIC_WRITE_BYTES));
                let put = outlet.put(first);
                if outlet.is_done() {
                    at_once = first.len() as u64;
                }
                outlet.push(rest);
                put
            }
            Err(error) => return Err(again(error)),
        };
        if let Err(error) = put {
            let told = again(&error);
            *row = Err(error);
            return Err(told);
        }
        if stream == Stream::Out {
            self.taken += at_once;
        }
        Ok(())
    }

    fn poll_flow(&mut self, polling: &mut Polling<'_>) {
        self.taken += flow(&mut self.out, polling);
        if let Some(err) = &mut self.err {
            flow(err, polling);
        }
        if self.is_settled() {
            self.settled.notify_waiters();
        }
    }

    fn part(&mut self) {
        for outlet in self.rows().flatten() {
            outlet.part();
        }
    }
}

/// Writes what is taken at once; returns how many bytes that was.
fn flow(row: &mut Row, polling: &mut Polling<'_>) -> u64 {
    let mut count = 0;
    while let Ok(outlet) = row {
        match outlet.poll_flow(polling) {
            Poll::Pending => break,
            Poll::Ready(Ok(taken)) => count += taken.len() as u64,
            Poll::Ready(Err(error)) => *row = Err(error),
        }
    }
    count
}

fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Ends the queueing, also at a panic: what is printed afterwards is written directly.
struct Opened;

impl Drop for Opened {
    fn drop(&mut self) {
        OUTLETS.take();
    }
}

/// Runs `work` and writes beside it what it prints, until all is written. An error is reported here, so that signals
/// are heard while that message cannot be written either. Must be called inside a tokio runtime, by a command that
/// returns a task's exit code.
pub(crate) async fn beside(
    context: &Context,
    work: impl Future<Output = Result<u8, Failure>>,
) -> Result<u8, Failure> {
    OUTLETS.set(Some(Outlets::open()));
    let opened = Opened;
    let work = async {
        let result = match work.await {
            Err(Failure::Problem(problem)) => {
                context.report(&problem);
                Ok(exit_code::of_problem(Manner::Task, &problem))
            }
            result => result,
        };
        let _ = taken().await;
        result
    };
    let mut work = pin!(work);
    // All that prints here is part of `work`, so a poll of it comes before everything there is to write.
    let result = poll_fn(|polling| {
        let done = work.as_mut().poll(polling);
        with(|outlets| outlets.poll_flow(polling));
        done
    })
    .await;
    drop(opened);
    result
}

/// Queues bytes; none where nothing is queued now. An error of what is not written at once shows up later only. On a
/// stderr in raw mode each line gets its carriage return here.
pub(crate) fn push(stream: Stream, bytes: &[u8]) -> Option<io::Result<()>> {
    with(|outlets| match stream {
        Stream::Err if outlets.raw => outlets.push(stream, &with_returns(bytes)),
        Stream::Err | Stream::Out => outlets.push(stream, bytes),
    })
}

/// Queues bytes for stderr unchanged; none where nothing is queued now.
pub(crate) fn push_as_is(bytes: &[u8]) -> Option<io::Result<()>> {
    with(|outlets| outlets.push(Stream::Err, bytes))
}

/// Sets whether the terminal is in raw mode now.
pub(crate) fn is_raw(raw: bool) {
    with(|outlets| outlets.raw = raw && rustix::termios::isatty(rustix::stdio::stderr()));
}

fn with_returns(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len() + 8);
    for byte in bytes {
        if *byte == b'\n' && text.last() != Some(&b'\r') {
            text.push(b'\r');
        }
        text.push(*byte);
    }
    text
}

/// Whether all that was printed is written, or never will be.
pub(crate) fn is_settled() -> bool {
    with(Outlets::is_settled).unwrap_or(true)
}

/// Waits until that is so.
pub(crate) async fn settled() {
    while !is_settled() {
        let Some(settled) = with(|outlets| Rc::clone(&outlets.settled)) else { return };
        settled.notified().await;
    }
}

/// The same, but gives up at a signal that ends a process. Returns whether everything was written.
pub(crate) async fn taken() -> bool {
    if with(|outlets| outlets.hurried).unwrap_or(false) {
        let settled = is_settled();
        part();
        return settled && is_whole();
    }
    if is_settled() {
        return is_whole();
    }
    tokio::select! {
        biased;
        () = settled() => is_whole(),
        () = Endings::any() => parted(),
    }
}

fn parted() -> bool {
    abandon();
    part();
    false
}

/// At least so many bytes of stdout were written; none where notes may be among them.
pub(crate) fn taken_of_stdout() -> Option<u64> {
    with(|outlets| outlets.err.is_some().then_some(outlets.taken)).flatten()
}

/// Whether no write failed.
pub(crate) fn is_whole() -> bool {
    with(|outlets| outlets.rows().all(|row| row.is_ok())).unwrap_or(true)
}

/// The error after which nothing can be written to stdout any more.
pub(crate) fn broken() -> Option<io::Error> {
    with(|outlets| outlets.out.as_ref().err().map(again)).flatten()
}

/// Whether the error means that the terminal is gone.
pub(crate) fn is_hang_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// Drops what is queued: this process leaves, or stops.
pub(crate) fn abandon() {
    with(|outlets| outlets.rows().flatten().for_each(Outlet::abandon));
}

/// From here on, [`taken`] does not wait for a reader.
pub(crate) fn hurry() {
    with(|outlets| outlets.hurried = true);
}

/// Writes what is queued, without waiting for a reader that takes nothing.
pub(crate) fn part() {
    with(Outlets::part);
}
