//! The command's input: written when it is read, answered when it was written, never waited for.
//!
//! How much of a request was written is remembered for a while after it is over. A sender that does not know, since the daemon died before the
//! answer came, sends it again under its number, and what was written is not written twice (P3).

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::wire::{self, FromShim};

/// Requests that wait at once at most; one more is answered with nothing taken.
const MAX_WAITING: usize = 4;
/// Requests that are over and remembered: those of a whole piece that is sent again, and of whoever waits beside it.
const REMEMBERED: usize = wire::MAX_PIECE / wire::MAX_INPUT + MAX_WAITING;
/// End of file, as a terminal is told.
const END_OF_TRANSMISSION: u8 = 4;

#[derive(Debug)]
struct Pending {
    seq: u64,
    data: Vec<u8>,
    /// None before its turn has come.
    written: Option<usize>,
    eof: bool,
}

/// Our end of the input.
#[derive(Debug)]
pub(super) struct Input {
    fd: Option<OwnedFd>,
    terminal: bool,
    waiting: VecDeque<Pending>,
    /// Of those that are over, by their numbers: how much was written, and whether that was all of it.
    over: VecDeque<(u64, usize, bool)>,
}

impl Input {
    /// Around the other end of the command's input, if it has one.
    pub(super) const fn new(fd: Option<OwnedFd>, terminal: bool) -> Self {
        Self { fd, terminal, waiting: VecDeque::new(), over: VecDeque::new() }
    }

    /// The descriptor to watch for room, if something waits for it.
    pub(super) fn waits_for_room(&self) -> Option<BorrowedFd<'_>> {
        if self.waiting.is_empty() { None } else { self.fd.as_ref().map(AsFd::as_fd) }
    }

    /// Takes a request; the answers, if there are any yet.
    pub(super) fn push(&mut self, request: wire::Input) -> Vec<FromShim> {
        // What closed the input is over, and may be asked for again.
        let repeated = self.before(request.seq).is_some_and(|(_, whole)| whole);
        if (self.fd.is_none() && !repeated) || self.waiting.len() >= MAX_WAITING {
            return vec![FromShim::InputTaken(request.seq, 0, self.fd.is_none())];
        }
        let mut data: Vec<u8> = request.data.into();
        if request.eof && self.terminal {
            // Behind an unfinished line the first one only hands that line over.
            if data.last().is_some_and(|last| *last != b'\n') {
                data.push(END_OF_TRANSMISSION);
            }
            data.push(END_OF_TRANSMISSION);
        }
        self.waiting.push_back(Pending { seq: request.seq, data, written: None, eof: request.eof });
        self.pump()
    }

    /// Writes what there is room for.
    pub(super) fn pump(&mut self) -> Vec<FromShim> {
        let mut answers = Vec::new();
        while let Some(pending) = self.waiting.front() {
            let (written, whole) = match pending.written {
                Some(written) => (written, false),
                None => self.before(pending.seq).unwrap_or_default(),
            };
            let Some(pending) = self.waiting.front_mut() else { break };
            pending.written = Some(written);
            let rest = pending.data.get(written..).unwrap_or_default();
            if rest.is_empty() || whole || self.fd.is_none() {
                if rest.is_empty() && pending.eof && !self.terminal {
                    self.fd = None;
                }
                answers.extend(self.finish(0));
                continue;
            }
            let Some(fd) = &self.fd else { break };
            match rustix::io::write(fd, rest) {
                Ok(count) => pending.written = Some(written + count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // Nobody reads any more.
                Err(_) => self.fd = None,
            }
        }
        answers
    }

    /// What was written of a request before, and whether that was all.
    fn before(&self, seq: u64) -> Option<(usize, bool)> {
        self.over.iter().find(|(number, ..)| *number == seq).map(|(_, written, whole)| (*written, *whole))
    }

    /// The numbers of the last requests that were taken whole, at most so many. With the exit record they outlive this process: a request may have
    /// been what ended the command.
    pub(super) fn taken(&self, most: usize) -> Vec<u64> {
        let whole = self.over.iter().rev().filter(|(.., whole)| *whole);
        whole.map(|(number, ..)| *number).take(most).collect()
    }

    /// A request is over: it is remembered, and answered.
    fn finish(&mut self, at: usize) -> Option<FromShim> {
        let Pending { seq, data, written, .. } = self.waiting.remove(at)?;
        let (before, _) = self.before(seq).unwrap_or_default();
        let written = written.unwrap_or(before);
        self.over.retain(|(number, ..)| *number != seq);
        self.over.push_back((seq, written, written >= data.len()));
        if self.over.len() > REMEMBERED {
            self.over.pop_front();
        }
        Some(FromShim::InputTaken(seq, written as u64, self.fd.is_none()))
    }

    /// The sender gave up: what was not taken is forgotten, so that it can be sent again without coming twice.
    pub(super) fn cancel(&mut self, seq: u64) -> Vec<FromShim> {
        let at = self.waiting.iter().position(|pending| pending.seq == seq);
        at.and_then(|at| self.finish(at)).into_iter().collect()
    }

    /// Whoever sent is gone: what was not taken is forgotten, for the same reason.
    pub(super) fn forget(&mut self) {
        while self.finish(0).is_some() {}
    }

    /// The command has ended: what was not read never will be.
    pub(super) fn close(&mut self) -> Vec<FromShim> {
        self.fd = None;
        self.pump()
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    fn request(seq: u64, data: &[u8], eof: bool) -> wire::Input {
        wire::Input { seq, data: data.to_vec().into(), eof }
    }

    fn read(fd: &OwnedFd) -> Vec<u8> {
        let mut buffer = vec![0; 1 << 20];
        let count = rustix::io::read(fd, &mut buffer[..]).unwrap_or(0);
        buffer.truncate(count);
        buffer
    }

    #[test]
    fn p3_a_request_that_is_sent_again_is_not_written_again() {
        let (theirs, ours) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = Input::new(Some(ours), false);
        assert_eq!(input.push(request(1, b"one", false)), [FromShim::InputTaken(1, 3, false)]);
        input.forget();
        assert_eq!(input.push(request(1, b"one", false)), [FromShim::InputTaken(1, 3, false)]);
        assert_eq!(input.push(request(2, b"two", true)), [FromShim::InputTaken(2, 3, true)]);
        assert_eq!(
            input.push(request(2, b"two", true)),
            [FromShim::InputTaken(2, 3, true)],
            "it closed the input"
        );
        assert_eq!(input.push(request(3, b"x", false)), [FromShim::InputTaken(3, 0, true)]);
        assert_eq!(read(&theirs), b"onetwo");
    }

    #[test]
    fn p3_a_request_whose_sender_went_in_its_middle_goes_on_where_it_was() {
        let (theirs, ours) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = Input::new(Some(ours), false);
        let data: Vec<u8> = (0..300_000u32).map(|number| number.to_le_bytes()[0]).collect();
        assert_eq!(input.push(request(7, &data, false)), [], "more than a pipe takes");
        input.forget();
        let mut seen = read(&theirs);
        assert!(!seen.is_empty() && seen.len() < data.len());
        // Twice at once, as where a sender gives up on a daemon that has not noticed.
        let mut answers = input.push(request(7, &data, false));
        answers.extend(input.push(request(7, &data, false)));
        while answers.len() < 2 {
            seen.extend(read(&theirs));
            answers.extend(input.pump());
        }
        seen.extend(read(&theirs));
        assert_eq!(
            answers,
            [FromShim::InputTaken(7, 300_000, false), FromShim::InputTaken(7, 300_000, false)]
        );
        assert_eq!(seen, data);
    }

    #[test]
    fn what_was_taken_whole_is_known_by_its_number() {
        let (_theirs, ours) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = Input::new(Some(ours), false);
        for number in 0..4 {
            assert_eq!(input.push(request(number, b"x", false)).len(), 1);
        }
        assert_eq!(input.push(request(9, &vec![0; 300_000], false)), []);
        input.forget();
        assert_eq!(input.taken(3), [3, 2, 1], "and not what was taken in part");
    }

    #[test]
    fn what_was_given_up_says_how_much_was_taken() {
        let (theirs, ours) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = Input::new(Some(ours), false);
        let data = vec![b'x'; 300_000];
        assert_eq!(input.push(request(7, &data, false)), []);
        let taken = read(&theirs).len() as u64;
        assert_eq!(input.cancel(7), [FromShim::InputTaken(7, taken, false)]);
        assert_eq!(input.cancel(7), []);
    }
}
