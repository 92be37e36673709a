//! Taking the command's output as it comes. Keeps P7.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::PollFlags;

use super::ending::Phase;
use super::service::Service;
use crate::clock;
use crate::output::{self, Stream, Taken};
use crate::wire::FromShim;

/// Moves of output before the loop looks at its other business.
const TURNS: usize = 16;
/// A move of at least this much, twice, earns a pipe more room.
const BUSY: u64 = 60 * 1024;

/// One pipe or terminal.
pub(super) struct Source {
    pub(super) fd: OwnedFd,
    stream: Stream,
    busy: u8,
}

impl Source {
    /// A descriptor to read from.
    pub(super) const fn new(fd: OwnedFd, stream: Stream) -> Self {
        Self { fd, stream, busy: 0 }
    }
}

impl Service {
    pub(super) fn take_output(&mut self, ready: [PollFlags; 2]) {
        let now = self.wall.now();
        let mut any = false;
        let mut number = 0;
        let output = &mut self.output;
        self.sources.retain_mut(|source| {
            let ready = ready.get(number).copied().unwrap_or(PollFlags::empty());
            number += 1;
            if ready.is_empty() {
                return true;
            }
            for _ in 0..TURNS {
                let taken = match source.stream {
                    Stream::Pty => output.take_terminal(source.fd.as_fd(), now),
                    Stream::Stdout | Stream::Stderr | Stream::Mixed => {
                        output.take_pipe(source.fd.as_fd(), source.stream, now)
                    }
                };
                match taken {
                    Taken::Bytes(count) => {
                        any = true;
                        if count >= BUSY && source.busy < 2 {
                            source.busy += 1;
                            if source.busy == 2 {
                                let _ = output::widen(source.fd.as_fd());
                            }
                        }
                    }
                    Taken::Nothing => return true,
                    Taken::End => return false,
                }
            }
            true
        });
        if any {
            if let Phase::Draining { last_output, .. } = &mut self.phase {
                *last_output = clock::monotonic();
            }
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
