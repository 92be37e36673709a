//! Stdout and stderr of a command that stays with a task, and must hear signals all the while.
//!
//! For as long as [`beside`] lasts, whatever is printed by way of the console is put in a row and written as it is taken (`homing_tui::live::Outlet`), beside the work that
//! prints it. Who has much to print waits for [`settled`] before it asks for more: a reader that does not read holds up the output, as it would with a write, and neither signals nor keys. What
//! is printed on a way out ([`abandon`]) is not waited for. Where both are one terminal, or one pipe, there is one row: nothing comes between the halves of a sequence.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::task::{Context as Polling, Poll, Waker};

use homing_tui::live::Outlet;
use rustix::io::Errno;
use tokio::signal::unix::SignalKind;

use crate::cli::context::Context;
use crate::cli::exit_code::{self, Manner};
use crate::cli::failure::Failure;
use crate::terminal::keyboard::Caught;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// A pipe takes so much whole, or not at all.
const PIECE: usize = 4096;

/// A row, or why there is none any more.
type Row = Result<Outlet, io::Error>;

#[derive(Debug)]
struct Outlets {
    out: Row,
    /// None where it is the same as the other.
    err: Option<Row>,
    /// Who writes.
    writer: Option<Waker>,
    /// Who waits until all is written.
    waiting: Vec<Waker>,
    /// Nobody waits for that any more.
    hurried: bool,
    /// Bytes of stdout that were taken for sure, where nothing else is in its row.
    taken: u64,
    /// Whether stderr is a terminal that does not end lines by itself now.
    raw: bool,
}

thread_local! {
    /// There is one stdout. What other threads print is none of this.
    static OUTLETS: RefCell<Option<Outlets>> = const { RefCell::new(None) };
}

fn with<T>(work: impl FnOnce(&mut Outlets) -> T) -> Option<T> {
    OUTLETS.with_borrow_mut(|outlets| outlets.as_mut().map(work))
}

/// What tells whether two descriptors lead to the same.
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
        Self {
            out: Outlet::to(out),
            err,
            writer: None,
            waiting: Vec::new(),
            hurried: false,
            taken: 0,
            raw: false,
        }
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
                // How much of a piece is taken at once is only known where that is all of it, or nothing.
                let (first, rest) = bytes.split_at(bytes.len().min(PIECE));
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
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
        Ok(())
    }

    fn poll_flow(&mut self, polling: &mut Polling<'_>) {
        self.writer = Some(polling.waker().clone());
        self.taken += flow(&mut self.out, polling);
        if let Some(err) = &mut self.err {
            flow(err, polling);
        }
        if self.is_settled() {
            self.waiting.drain(..).for_each(Waker::wake);
        }
    }

    fn part(&mut self) {
        for outlet in self.rows().flatten() {
            outlet.part();
        }
    }
}

/// Has it written what is taken; how much that was.
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

/// Whoever panics leaves nothing behind that would take what is printed and never write it.
struct Opened;

impl Drop for Opened {
    fn drop(&mut self) {
        OUTLETS.take();
    }
}

/// Does this work; what it prints is written meanwhile, and what is wrong is told here, so that a signal is heard while nobody takes that either. Must be
/// called inside a tokio runtime, by a command that returns a task's code.
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
    let result = poll_fn(|polling| {
        let done = work.as_mut().poll(polling);
        with(|outlets| outlets.poll_flow(polling));
        done
    })
    .await;
    drop(opened);
    result
}

/// Prints this by the row, if there is one; what is wrong with what is not taken at once shows only later. Whoever says something on stderr need not know whether lines end by themselves there.
pub(crate) fn push(stream: Stream, bytes: &[u8]) -> Option<io::Result<()>> {
    with(|outlets| match stream {
        Stream::Err if outlets.raw => outlets.push(stream, &with_returns(bytes)),
        Stream::Err | Stream::Out => outlets.push(stream, bytes),
    })
}

/// Prints this on stderr as it is, if there is a row.
pub(crate) fn push_as_is(bytes: &[u8]) -> Option<io::Result<()>> {
    with(|outlets| outlets.push(Stream::Err, bytes))
}

/// Says whether this terminal is one now that does not end lines by itself.
pub(crate) fn is_raw(raw: bool) {
    with(|outlets| outlets.raw = raw && rustix::termios::isatty(rustix::stdio::stderr()));
}

/// Each line ends with a return too.
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

/// Whether all that was printed was taken, or never will be.
pub(crate) fn is_settled() -> bool {
    with(Outlets::is_settled).unwrap_or(true)
}

/// Waits until that is so.
pub(crate) async fn settled() {
    poll_fn(|polling| {
        if is_settled() {
            return Poll::Ready(());
        }
        with(|outlets| {
            if !outlets.waiting.iter().any(|other| other.will_wake(polling.waker())) {
                outlets.waiting.push(polling.waker().clone());
            }
        });
        Poll::Pending
    })
    .await;
}

/// The same, unless a signal says to leave. Whether all of it was taken.
pub(crate) async fn taken() -> bool {
    if with(|outlets| outlets.hurried).unwrap_or(false) {
        let settled = is_settled();
        part();
        return settled && is_whole();
    }
    if is_settled() {
        return is_whole();
    }
    let told = |kind| {
        let caught = Caught::new(kind);
        async move {
            match caught {
                Ok(mut caught) => caught.recv().await,
                Err(_) => std::future::pending().await,
            }
        }
    };
    tokio::select! {
        biased;
        () = settled() => is_whole(),
        () = told(SignalKind::interrupt()) => parted(),
        () = told(SignalKind::terminate()) => parted(),
        () = told(SignalKind::hangup()) => parted(),
        () = told(SignalKind::quit()) => parted(),
    }
}

fn parted() -> bool {
    abandon();
    part();
    false
}

/// How many bytes of stdout were taken so far, at least; none where notes may be among them.
pub(crate) fn taken_of_stdout() -> Option<u64> {
    with(|outlets| outlets.err.is_some().then_some(outlets.taken)).flatten()
}

/// Whether nothing that was printed was refused.
pub(crate) fn is_whole() -> bool {
    with(|outlets| outlets.rows().all(|row| row.is_ok())).unwrap_or(true)
}

/// Why nothing can be written to stdout any more, if that is so.
pub(crate) fn broken() -> Option<io::Error> {
    with(|outlets| outlets.out.as_ref().err().map(again)).flatten()
}

/// Whether that is because the terminal is gone.
pub(crate) fn is_hang_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// Drops what was printed and not taken: this process leaves.
pub(crate) fn abandon() {
    with(|outlets| outlets.rows().flatten().for_each(Outlet::abandon));
}

/// From here on nobody waits for whoever does not take what is printed.
pub(crate) fn hurry() {
    with(|outlets| outlets.hurried = true);
}

/// Writes what is in the row now; whoever takes nothing is not waited for.
pub(crate) fn part() {
    with(Outlets::part);
}
