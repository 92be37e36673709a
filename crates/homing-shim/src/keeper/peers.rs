//! Who talks to the keeper: an engine that wants shims, clients that wait for a daemon.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{self, SocketFlags};
use rustix::process::{Resource, getrlimit};

use super::client::Mode;
use super::connection::Connection;
use super::daemon::Daemon;
use super::service::Keeper;
use crate::clock;
use crate::wire::{FromKeeper, ToKeeper};
use homing_sys::confine::{self, Confinement};
use homing_sys::peer::PeerProcess;

/// Between two looks at a queue that could not be taken from.
const SHORTAGE_MS: i64 = 50;

/// Connections that one process may have at once.
const MAX_PER_PROCESS: usize = 16;
/// Connections at once, where descriptors suffice.
const MAX_PEERS: usize = 256;

/// A connection, in the order in which they were accepted.
pub(super) struct Peer {
    pub(super) connection: Connection,
    pub(super) pid: u32,
    pub(super) role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Has not said.
    Unknown,
    /// The engine of this home.
    Engine,
    /// Waits for a daemon.
    Waiting,
}

/// Connections at once: a quarter of the descriptors, so that shims can be forked whatever connects.
fn max_peers() -> usize {
    let files = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files / 4).ok());
    files.map_or(MAX_PEERS, |files| files.min(MAX_PEERS))
}

fn pid(socket: impl AsFd) -> Option<u32> {
    PeerProcess::of(socket).ok()?.pid()
}

/// The connection that makes room for one more of this process: its own oldest if it has its share, else the oldest of all, where no
/// place is left. One that says nothing goes before a waiting client, which asks again; the daemon's own stays.
fn in_the_way(peers: &[(u32, Role)], pid: u32, daemon: Option<u32>, limit: usize) -> Option<usize> {
    let own = peers.iter().filter(|(held, _)| *held == pid).count() >= MAX_PER_PROCESS;
    if !own && peers.len() < limit {
        return None;
    }
    let rank = |(held, role): (u32, Role)| match role {
        Role::Unknown => Some(0),
        Role::Waiting => Some(1),
        Role::Engine => (Some(held) != daemon).then_some(2),
    };
    let mine = |held: u32| !own || held == pid;
    let ranked = peers.iter().enumerate().filter(|(_, (held, _))| mine(*held));
    ranked.filter_map(|(number, peer)| Some((rank(*peer)?, number))).min().map(|(_, number)| number)
}

impl Keeper {
    pub(super) fn accept(&mut self) {
        let socket = match net::accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR) => return,
            // No descriptor to be had: the connection stays in the queue, and looking at once again would not help.
            Err(_) => return clock::pause(SHORTAGE_MS),
        };
        let Some(pid) =
            confine::is_trusted_peer(&socket, Confinement::beyond).then(|| pid(&socket)).flatten()
        else {
            return;
        };
        let daemon = self.daemon.as_ref().map(|daemon| daemon.pid);
        let held: Vec<_> = self.peers.iter().map(|peer| (peer.pid, peer.role)).collect();
        if let Some(number) = in_the_way(&held, pid, daemon, max_peers()) {
            self.peers.remove(number);
        }
        self.peers.push(Peer { connection: Connection::new(socket), pid, role: Role::Unknown });
    }

    pub(super) fn hear(&mut self, number: usize) {
        let Some(peer) = self.peers.get(number) else { return };
        match peer.connection.receive::<ToKeeper>() {
            Ok(Some(received)) => {
                if let Some(message) = received.message {
                    self.obey(number, message, received.descriptors);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(None) | Err(_) => {
                self.peers.remove(number);
            }
        }
    }

    pub(super) fn obey(&mut self, number: usize, message: ToKeeper, descriptors: Vec<OwnedFd>) {
        let Some(peer) = self.peers.get_mut(number) else { return };
        self.starter = None;
        match message {
            ToKeeper::Engine => {
                peer.role = Role::Engine;
                // An engine waits for its welcome, and one that is not known is not restarted: where either fails
                // the engine is hung up on, and connects again.
                let welcomed = peer.connection.send(&FromKeeper::Welcome(std::process::id()), &[]).is_ok();
                // Made now, of the process that connected: the number that was seen at the accept may be another's by now.
                let process = PeerProcess::of(&peer.connection).ok();
                if !welcomed || !process.is_some_and(|process| self.meet_engine(process)) {
                    self.peers.remove(number);
                }
            }
            ToKeeper::Launch(nonce) => {
                if peer.role != Role::Engine {
                    return;
                }
                let forked = match <[OwnedFd; 2]>::try_from(descriptors) {
                    Ok([socket, folder]) => self.fork_shim(socket, folder),
                    // The kernel drops descriptors for which this process has no room.
                    Err(_) => Err(io::Error::from_raw_os_error(libc::EMFILE)),
                };
                if let Err(error) = forked
                    && let Some(peer) = self.peers.get(number)
                {
                    let code = error.raw_os_error().unwrap_or(libc::EAGAIN);
                    let _ = peer.connection.send(&FromKeeper::LaunchFailed(nonce, code), &[]);
                }
            }
            ToKeeper::Ready => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.ready = true;
                }
                self.answer_waiting(&FromKeeper::Running);
            }
            ToKeeper::CannotStart(reason) => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.complaint = Some(reason);
                }
                // The end of the line says that it was heard: until then the daemon stays, so that its words come before its death.
                self.peers.remove(number);
            }
            ToKeeper::Leaving => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.leaving = true;
                }
            }
            ToKeeper::Start => {
                peer.role = Role::Waiting;
                self.ensure_daemon();
            }
        }
    }

    /// An engine said who it is: our child, or one that was there before us. False if it has ended, or its end cannot be watched.
    pub(super) fn meet_engine(&mut self, process: PeerProcess) -> bool {
        let Some(pid) = process.pid().filter(|_| process.is_alive()) else { return false };
        if self.mode == Mode::Embedded || self.daemon.as_ref().is_some_and(|daemon| daemon.pid == pid) {
            return true;
        }
        let Some(pidfd) = process.into_pidfd() else { return false };
        self.restart_at = None;
        let since = clock::monotonic();
        let pidfd = Some(pidfd);
        self.daemon = Some(Daemon { pid, pidfd, since, ready: true, leaving: false, complaint: None });
        true
    }

    pub(super) fn answer_waiting(&mut self, answer: &FromKeeper) {
        self.peers.retain(|peer| {
            if peer.role == Role::Waiting {
                let _ = peer.connection.send(answer, &[]);
            }
            peer.role != Role::Waiting
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p11_one_process_cannot_take_every_place_at_the_keeper() {
        let hog = vec![(7, Role::Unknown); MAX_PER_PROCESS];
        assert_eq!(in_the_way(&hog[1..], 7, None, 256), None);
        assert_eq!(in_the_way(&hog, 8, None, 256), None, "there is room for another");
        let mixed: Vec<_> = [(1, Role::Engine), (9, Role::Waiting)].into_iter().chain(hog).collect();
        assert_eq!(in_the_way(&mixed, 7, Some(1), 256), Some(2), "its own oldest");
        assert_eq!(in_the_way(&mixed, 8, Some(1), mixed.len()), Some(2), "who has said nothing");
        let busy = [(1, Role::Engine), (9, Role::Waiting), (5, Role::Engine)];
        assert_eq!(in_the_way(&busy, 8, Some(1), 3), Some(1));
        assert_eq!(in_the_way(&busy[..1], 8, Some(1), 1), None, "the daemon's own stays");
        assert_eq!(in_the_way(&busy[..1], 8, Some(2), 1), Some(0));
    }
}
