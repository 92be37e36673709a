//! Passing this process's stdin on to a task.

use std::future::{Future, pending};
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use homing_api::{Code, Problem};
use homing_client::{Client, Error, piece_number};
use homing_model::TaskId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::stdio;
use rustix::termios::{isatty, tcgetpgrp};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::commands::attach::Detach;

/// The most that is sent at once.
const PIECE: usize = 256 * 1024;
/// Typed and not yet sent, at most; then no more is read.
const TYPED_AHEAD: usize = 64 * 1024;
/// For what was typed just before somebody left.
const PARTING: Duration = Duration::from_secs(1);

/// Between two tries, at first and at most.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A piece on its way.
type Sending<'a> = Pin<Box<dyn Future<Output = Result<Sent, Error>> + 'a>>;

/// Whether this is what a shell makes of `|` and `<`: something that has an end.
pub(crate) fn is_piped(fd: BorrowedFd<'_>) -> bool {
    let kind = rustix::fs::fstat(fd).map(|found| FileType::from_raw_mode(found.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile))
}

/// How long nobody looks whether this process is in the foreground again.
const AWAY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Reads stdin once there is something. Whoever has it too may have set it so that a read does not wait: then it is waited for here. A terminal is
/// only read in the foreground: in the background the kernel would stop this process, which then hears no signal.
pub(crate) fn read(buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        if isatty(stdio::stdin()) {
            wait();
        }
        match rustix::io::read(stdio::stdin(), &mut *buffer) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(),
            found => return Ok(found?),
        }
    }
}

fn wait() {
    loop {
        let _ = poll(&mut [PollFd::from_borrowed_fd(stdio::stdin(), PollFlags::IN)], None);
        if !tcgetpgrp(stdio::stdin()).is_ok_and(|foreground| foreground != getpgrp()) {
            return;
        }
        let _ = poll(&mut [], Some(&AWAY));
    }
}

/// Reads stdin on a thread of its own, because a terminal or a pipe cannot be asked not to block. The thread ends with the
/// process or with its last reader; a read error is the last that it tells.
fn reader() -> mpsc::Receiver<io::Result<Bytes>> {
    let (tx, rx) = mpsc::channel(2);
    let failed = tx.clone();
    let reading = move || {
        let mut buffer = vec![0; PIECE];
        loop {
            let piece = match read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => Ok(Bytes::copy_from_slice(&buffer[..count])),
                Err(error) => Err(error),
            };
            let last = piece.is_err();
            if tx.blocking_send(piece).is_err() || last {
                return;
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("stdin".to_owned()).spawn(reading) {
        let _ = failed.try_send(Err(error));
    }
    rx
}

/// That there is more, perhaps, and nobody can have it.
fn unread(error: &io::Error) -> Problem {
    let text = format!("standard input cannot be read: {error}; the task gets no more of it");
    let mut problem = Problem::new(Code::StorageFailed, text);
    problem.advice = "Look at where the input comes from.".to_owned();
    problem
}

/// What became of an input.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Bytes that the task took.
    pub(crate) written: u64,
    /// Why it took no more, if there was more.
    pub(crate) refused: Option<Error>,
}

/// How somebody who passes input on is told what is the matter with it, while it goes on.
pub(crate) type Tell<'a> = &'a dyn Fn(&Problem);

/// How typing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typing {
    /// Nobody types any more.
    Over,
    /// By the keys that detach.
    Detached,
}

/// Sends what is typed until nobody types any more, or the keys that detach are among it. What was under way when the daemon went is not
/// sent twice; what is typed afterwards goes to the next one. A program that does not read, a shim or a daemon that stands still, holds up what
/// was typed, and not the keys that detach; those are heard also where nothing else can be sent any more.
pub(crate) async fn keys(
    client: &Client,
    task: &TaskId,
    detach: &mut Detach,
    tell: Tell<'_>,
) -> Result<Typing, Error> {
    let line = Line::new(client, task, Some(tell));
    let mut pieces = reader();
    let mut waiting = Vec::new();
    let mut sending: Option<Sending<'_>> = None;
    let mut refused = false;
    loop {
        if refused {
            waiting.clear();
        }
        if sending.is_none() && !waiting.is_empty() {
            sending = Some(Box::pin(line.send(Bytes::from(std::mem::take(&mut waiting)))));
        }
        let sent = async {
            match &mut sending {
                Some(sending) => sending.await,
                None => pending().await,
            }
        };
        let detached = tokio::select! {
            biased;
            piece = pieces.recv(), if waiting.len() < TYPED_AHEAD => match piece {
                Some(Err(error)) => return Err(Error::Problem(Box::new(unread(&error)))),
                Some(Ok(piece)) => {
                    let (typed, detached) = detach.typed(&piece);
                    waiting.extend_from_slice(&typed);
                    detached.then_some(Typing::Detached)
                }
                None => Some(Typing::Over),
            },
            sent = sent => {
                sending = None;
                match sent {
                    Ok(sent) => refused |= sent.refused.is_some(),
                    Err(error) if error.is_disconnect() => {}
                    Err(error) => {
                        refused = true;
                        tell(&error.into_problem());
                    }
                }
                None
            }
        };
        if let Some(how) = detached {
            // What came before is the task's.
            let rest = async {
                if let Some(sending) = sending {
                    let _ = sending.await;
                }
                let _ = line.send(Bytes::from(waiting)).await;
            };
            let _ = timeout(PARTING, rest).await;
            return Ok(how);
        }
    }
}

/// Sends stdin to the task until it ends, then closes the task's input if `close`. A task that no longer reads has had enough;
/// whether that matters is for the caller to say.
pub(crate) async fn stdin(client: &Client, task: &TaskId, close: bool) -> Result<Sent, Error> {
    let (sent, unread) = pass(&Line::new(client, task, None), close).await?;
    unread.map_or(Ok(sent), |problem| Err(Error::Problem(Box::new(problem))))
}

/// The same for somebody who stays, and closes it: told what is the matter at once, since the task may end by it. Whether all of stdin could be read.
pub(crate) async fn whole(client: &Client, task: &TaskId, tell: Tell<'_>) -> Result<bool, Error> {
    let (_, unread) = pass(&Line::new(client, task, Some(tell)), true).await?;
    Ok(unread.is_none())
}

/// Where stdin cannot be read the task's input is closed all the same: nobody waits for the rest.
async fn pass(line: &Line<'_>, close: bool) -> Result<(Sent, Option<Problem>), Error> {
    let mut pieces = reader();
    let (mut written, mut broken) = (0, None);
    while let Some(piece) = pieces.recv().await {
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => {
                let problem = broken.insert(unread(&error));
                if let Some(tell) = line.tell {
                    tell(problem);
                }
                break;
            }
        };
        let sent = line.send(piece).await?;
        written += sent.written;
        if sent.refused.is_some() {
            return Ok((Sent { written, ..sent }, broken));
        }
    }
    let mut refused = None;
    if close {
        match line.close().await {
            // It took everything and went its way: there is nothing left to close.
            Err(error) if had_enough(&error) => refused = Some(error).filter(|_| written == 0),
            result => result?,
        }
    }
    Ok((Sent { written, refused }, broken))
}

/// The way to a task's input.
struct Line<'a> {
    client: &'a Client,
    task: &'a TaskId,
    /// Who is told that its shim is not heard, and waits until it is; without one that is an error.
    tell: Option<Tell<'a>>,
}

impl<'a> Line<'a> {
    const fn new(client: &'a Client, task: &'a TaskId, tell: Option<Tell<'a>>) -> Self {
        Self { client, task, tell }
    }

    /// Sends one piece, however slowly the task reads.
    async fn send(&self, mut piece: Bytes) -> Result<Sent, Error> {
        let mut sent = 0;
        let mut pause = PAUSE;
        while !piece.is_empty() {
            let written = match self.settled(piece.clone(), false).await {
                Ok(written) => written,
                Err(error) if error.code() == Some(Code::InputNotRead) => 0,
                Err(error) if had_enough(&error) => {
                    return Ok(Sent { written: sent, refused: Some(error) });
                }
                Err(error) => return Err(error),
            };
            sent += written;
            let taken = usize::try_from(written).unwrap_or(usize::MAX).min(piece.len());
            drop(piece.split_to(taken));
            if taken == 0 {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            } else {
                pause = PAUSE;
            }
        }
        Ok(Sent { written: sent, refused: None })
    }

    /// Closes it.
    async fn close(&self) -> Result<(), Error> {
        self.settled(Bytes::new(), true).await.map(drop)
    }

    /// Sends a piece until it is known what became of it. One that a shim fell silent over is sent again, all of it, by its number until all of it was taken: what the shim
    /// answers first may be about the time before it fell silent.
    async fn settled(&self, piece: Bytes, eof: bool) -> Result<u64, Error> {
        let number = piece_number();
        let (mut pause, mut in_doubt) = (PAUSE, false);
        loop {
            let answer = self.client.input_piece(self.task.as_str(), piece.clone(), eof, number).await;
            match (answer, self.tell) {
                (Err(error), Some(tell)) if is_silent(&error) => {
                    if !std::mem::replace(&mut in_doubt, true) {
                        tell(&waits(error));
                    }
                }
                (Err(error), _) if in_doubt && error.code() == Some(Code::InputNotRead) => {}
                (Ok(answer), _) if in_doubt && answer.written < piece.len() as u64 => {}
                (answer, _) => return answer.map(|answer| answer.written),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn is_silent(error: &Error) -> bool {
    error.code() == Some(Code::SilentSupervisor)
}

/// That the input waits for a shim that is not heard.
fn waits(error: Error) -> Problem {
    let mut problem = error.into_problem();
    problem.detail.push_str("; the input waits until it does");
    problem
}

fn had_enough(error: &Error) -> bool {
    matches!(error.code(), Some(Code::TaskEnded | Code::NoInput))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use homing_client::fake::{Fake, Reply};

    use super::*;

    #[tokio::test]
    async fn a_slow_reader_gets_every_byte_once() {
        let home = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        let fake = Fake::serve(home.path(), move |request| match count.fetch_add(1, Ordering::Relaxed) % 3 {
            0 => Reply::problem(&Problem::new(Code::InputNotRead, "not read")),
            1 => Reply::json(200, format!("{{\"written\":{}}}", request.body.len().min(3))),
            _ => Reply::json(200, "{\"written\":0}"),
        });
        let (client, task) = (Client::new(home.path(), "u"), TaskId::from_entropy(1));
        let sent = Line::new(&client, &task, None).send(Bytes::from_static(b"abcdefgh")).await.unwrap();
        assert!(sent.written == 8 && sent.refused.is_none(), "{sent:?}");
        let taken: Vec<u8> = fake
            .requests()
            .iter()
            .enumerate()
            .filter(|(index, _)| index % 3 == 1)
            .flat_map(|(_, request)| request.body[..request.body.len().min(3)].to_vec())
            .collect();
        assert_eq!(taken, b"abcdefgh");
    }

    #[tokio::test]
    async fn a_task_that_ended_has_had_enough() {
        let home = tempfile::tempdir().unwrap();
        let _fake = Fake::serve(home.path(), |_| Reply::problem(&Problem::new(Code::TaskEnded, "over")));
        let (client, task) = (Client::new(home.path(), "u"), TaskId::from_entropy(1));
        let sent = Line::new(&client, &task, None).send(Bytes::from_static(b"abc")).await.unwrap();
        assert_eq!((sent.written, sent.refused.and_then(|error| error.code())), (0, Some(Code::TaskEnded)));
    }

    #[tokio::test]
    async fn a_piece_that_a_shim_fell_silent_over_is_sent_again_by_its_number_until_all_was_taken() {
        let home = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        // Silence twice, then what was taken before it, then all; the end is answered in the same way.
        let fake = Fake::serve(home.path(), move |request| match count.fetch_add(1, Ordering::Relaxed) {
            0 | 1 | 5 => Reply::problem(&Problem::new(Code::SilentSupervisor, "silent")),
            2 => Reply::problem(&Problem::new(Code::InputNotRead, "not read")),
            3 => Reply::json(200, "{\"written\":1}"),
            _ => Reply::json(200, format!("{{\"written\":{}}}", request.body.len())),
        });
        let (client, task) = (Client::new(home.path(), "u"), TaskId::from_entropy(1));
        let told = std::cell::RefCell::new(Vec::new());
        let tell = |problem: &Problem| told.borrow_mut().push(problem.detail.clone());
        let line = Line::new(&client, &task, Some(&tell));
        assert_eq!(line.send(Bytes::from_static(b"abc")).await.unwrap().written, 3);
        line.close().await.unwrap();
        let sent: Vec<_> =
            fake.requests().iter().map(|request| (request.target.clone(), request.body.to_vec())).collect();
        let number = |index: usize| sent[index].0.rsplit("piece=").next().unwrap().to_owned();
        assert_eq!(sent.len(), 7, "{sent:?}");
        assert!(
            sent[..5].iter().all(|(_, body)| body == b"abc") && (1..5).all(|at| number(at) == number(0)),
            "{sent:?}"
        );
        assert!(
            sent[5..].iter().all(|(target, body)| body.is_empty() && target.contains("eof=true")),
            "{sent:?}"
        );
        assert!(number(5) == number(6) && number(5) != number(0), "{sent:?}");
        let told = told.into_inner();
        assert!(told.len() == 2 && told.iter().all(|told| told.contains("waits")), "{told:?}");
    }
}
