//! The command's input: written when it is read, answered when it was written, never waited for.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::wire::{self, FromShim};

/// Requests that wait at once at most; one more is answered with nothing taken.
const MAX_WAITING: usize = 4;
/// End of file, as a terminal is told.
const END_OF_TRANSMISSION: u8 = 4;

#[derive(Debug)]
struct Pending {
    seq: u64,
    data: Vec<u8>,
    written: usize,
    eof: bool,
}

/// Our end of the input.
#[derive(Debug)]
pub(super) struct Input {
    fd: Option<OwnedFd>,
    terminal: bool,
    waiting: VecDeque<Pending>,
}

impl Input {
    /// Around the other end of the command's input, if it has one.
    pub(super) const fn new(fd: Option<OwnedFd>, terminal: bool) -> Self {
        Self { fd, terminal, waiting: VecDeque::new() }
    }

    /// The descriptor to watch for room, if something waits for it.
    pub(super) fn waits_for_room(&self) -> Option<BorrowedFd<'_>> {
        if self.waiting.is_empty() { None } else { self.fd.as_ref().map(AsFd::as_fd) }
    }

    /// Takes a request; the answers, if there are any yet.
    pub(super) fn push(&mut self, request: wire::Input) -> Vec<FromShim> {
        if self.fd.is_none() || self.waiting.len() >= MAX_WAITING {
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
        self.waiting.push_back(Pending { seq: request.seq, data, written: 0, eof: request.eof });
        self.pump()
    }

    /// Writes what there is room for.
    pub(super) fn pump(&mut self) -> Vec<FromShim> {
        let mut answers = Vec::new();
        while let Some(pending) = self.waiting.front_mut() {
            let Some(fd) = &self.fd else {
                answers.push(FromShim::InputTaken(pending.seq, pending.written as u64, true));
                self.waiting.pop_front();
                continue;
            };
            let rest = pending.data.get(pending.written..).unwrap_or_default();
            if rest.is_empty() {
                if pending.eof && !self.terminal {
                    self.fd = None;
                }
                answers.push(FromShim::InputTaken(pending.seq, pending.written as u64, self.fd.is_none()));
                self.waiting.pop_front();
                continue;
            }
            match rustix::io::write(fd, rest) {
                Ok(count) => pending.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // Nobody reads any more.
                Err(_) => self.fd = None,
            }
        }
        answers
    }

    /// The sender gave up: what was not taken is forgotten, so that it can be sent again without coming twice.
    pub(super) fn cancel(&mut self, seq: u64) -> Vec<FromShim> {
        let closed = self.fd.is_none();
        let Some(at) = self.waiting.iter().position(|pending| pending.seq == seq) else { return Vec::new() };
        let given_up = self.waiting.remove(at);
        given_up
            .map(|pending| FromShim::InputTaken(seq, pending.written as u64, closed))
            .into_iter()
            .collect()
    }

    /// Whoever sent is gone: what was not taken is forgotten, for the same reason.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
    }

    /// The command has ended: what was not read never will be.
    pub(super) fn close(&mut self) -> Vec<FromShim> {
        self.fd = None;
        self.pump()
    }
}
