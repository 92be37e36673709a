//! Taking the command's output as it comes. Keeps P7.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::pty::OpenptFlags;

use super::ending::Phase;
use super::service::Service;
use crate::clock;
use crate::output::{self, Stream, Taken};
use crate::wire::FromShim;
use homing_sys::sys;

/// Reads before the loop looks at its other business.
const TURNS: usize = 16;
/// Read at once from a command that prints now and then.
const SMALL: usize = 8 * 1024;
/// Read at once from one that prints without end: large writes are what files are fast at (a splice hands over single pages, and took
/// half as long again).
const LARGE: usize = 256 * 1024;
/// A round of this much earns the large buffer, one of less gives it back; two such reads earn the pipe more room.
const BUSY: u64 = 60 * 1024;
/// What is taken at most of a source that does not say how much it holds (of a terminal, part is still on its way to us).
const REST: u64 = 1 << 20;
/// How long the large buffer outlives the last output.
pub(super) const REST_MS: i64 = 50;

/// One pipe or terminal.
pub(super) struct Source {
    pub(super) fd: OwnedFd,
    stream: Stream,
    busy: u8,
    /// The terminal's other end, kept open while the command lives and nobody else has it: it may open `/dev/tty` again.
    kept: Option<OwnedFd>,
}

impl Source {
    /// A descriptor to read from.
    pub(super) const fn new(fd: OwnedFd, stream: Stream) -> Self {
        Self { fd, stream, busy: 0, kept: None }
    }

    /// Whether it is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.stream == Stream::Pty
    }

    /// Keeps a terminal that nobody has open; false if it cannot be kept.
    fn keep(&mut self) -> bool {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        self.kept = rustix::pty::ioctl_tiocgptpeer(&self.fd, flags).ok();
        self.kept.is_some()
    }

    /// The command is gone: whoever has the terminal open now is the last.
    pub(super) fn let_go(&mut self) {
        self.kept = None;
    }

    /// Gives the pipe more room once its writer has shown that it needs it.
    fn judge(&mut self, count: u64) {
        if count >= BUSY && self.busy < 2 {
            self.busy += 1;
            if self.busy == 2 {
                let _ = output::widen(self.fd.as_fd());
            }
        }
    }
}

impl Service {
    pub(super) fn take_output(&mut self, ready: [PollFlags; 2]) {
        let now = self.wall.now();
        let before = self.output.total();
        let mut small = [0; SMALL];
        let lives = self.pid.is_some() && self.ended.is_none();
        let (output, large) = (&mut self.output, &mut self.buffer);
        let mut ready = ready.into_iter();
        self.sources.retain_mut(|source| {
            if ready.next().is_none_or(|flags| flags.is_empty()) {
                return true;
            }
            for _ in 0..TURNS {
                let buffer = large.as_deref_mut().unwrap_or(&mut small);
                match output.take(source.fd.as_fd(), source.stream, buffer, now) {
                    Taken::Bytes(count) => source.judge(count),
                    Taken::Nothing => return true,
                    Taken::HangUp => return lives && source.keep(),
                    Taken::End => return false,
                }
            }
            true
        });
        let taken = self.output.total() - before;
        if taken >= BUSY {
            self.buffer.get_or_insert_with(|| vec![0; LARGE].into_boxed_slice());
        } else if self.buffer.take().is_some() {
            sys::trim_memory();
        }
        if taken > 0 {
            if let Phase::Draining { last_output, .. } = &mut self.phase {
                *last_output = clock::monotonic();
            }
            if let Some(pause) = &mut self.pause {
                pause.stir();
            }
            self.tell_growth();
        }
    }

    /// Takes what is still to be read once the tree is gone: nobody of it can add to that. A stranger who was handed a pipe may go on
    /// writing for ever, so no more is taken than the pipe can hold.
    pub(super) fn take_rest(&mut self) {
        let now = self.wall.now();
        let before = self.output.total();
        let mut buffer = [0; SMALL];
        for source in &self.sources {
            let held = rustix::io::ioctl_fionread(&source.fd).unwrap_or(0).max(REST);
            let mut taken = 0;
            while taken < held {
                match self.output.take(source.fd.as_fd(), source.stream, &mut buffer, now) {
                    Taken::Bytes(count) => taken += count,
                    Taken::Nothing | Taken::HangUp | Taken::End => break,
                }
            }
        }
        if self.output.total() > before {
            self.tell_growth();
        }
    }

    pub(super) fn tell_growth(&mut self) {
        if self.watch.is_some_and(|seen| self.output.total() > seen) {
            self.watch = None;
            self.tell(&FromShim::Output(self.output.total(), self.output.dropped()));
        }
    }
}
