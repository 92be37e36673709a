//! Which process calls on the listener, and whether it may. Keeps P11.
//!
//! A token proves that somebody could read a file, and a program in a sandbox that shares the
//! network can do that as well. So a connection from this machine is held to the rules of the
//! socket: the processes that hold its other end are found by the socket's inode, all of them must
//! be no more confined than the daemon, and what they may do follows from the tasks that they run
//! in. `[confined] allow` serves the confined and other users. A process of our own user that cannot
//! be found (in another pid namespace, or one that hides its descriptors) is refused whatever is
//! allowed, since it may be in a task. So is one that has closed its end before it was looked at.
//!
//! A browser is often confined by its package, or by itself. The process that spent a code is served
//! all the same, with the cookie that it got ([`super::GivenCookies`]). One that comes from another
//! machine (`dangerously_bind`) has no process here, and is not looked for.

use std::io;
use std::net::SocketAddr;

use homing_api::{Code, Problem};
use homing_engine::{Ancestry, Engine};
use homing_sys::confine::Confinement;
use homing_sys::process::{self, Process, ProcessId};

use super::neighbour::{Neighbour, find, holders, holds, may_be_elsewhere};
use crate::net::connection::{is_shortage, unplaced_caller};
use crate::net::connection_limits::Holder;

/// The other end of a connection to the listener.
pub(crate) struct Caller<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) own: &'a Confinement,
    /// An address of ours, and one of theirs.
    pub(crate) ends: (SocketAddr, SocketAddr),
    /// The process that may call though it is confined: its cookie was given to it for a code.
    pub(crate) vouched: Option<ProcessId>,
}

/// The one process that holds the other end of a connection, to which a cookie is given.
pub(crate) fn receiver((ours, theirs): (SocketAddr, SocketAddr)) -> Option<ProcessId> {
    let socket = find(ours, theirs).ok()?.filter(|socket| socket.is_kin())?;
    match holders(socket.inode).ok()?.as_slice() {
        [process] => Some(process.id()),
        _ => None,
    }
}

impl Caller<'_> {
    /// The tasks that it runs in, if it may call, and whom its connection counts for. Reads all of
    /// `/proc`: not for the event loop.
    pub(crate) fn judge(&self) -> Result<(Ancestry, Holder), Box<Problem>> {
        let (ours, theirs) = self.ends;
        let allowed = self.engine.config().confined.allow;
        let own = rustix::process::geteuid();
        let Some(socket) = find(ours, theirs).map_err(|error| short(&error))? else {
            let stranger = (Ancestry::default(), Holder::Stranger);
            return if may_be_elsewhere(ours, theirs) { Ok(stranger) } else { Err(closed()) };
        };
        // Root needs none of our rights.
        let free = allowed || (socket.uid == 0 && !own.is_root());
        if !free && socket.uid != own.as_raw() {
            let detail = format!("the connection comes from a program of user {}", socket.uid);
            return Err(Box::new(Problem::new(Code::ForeignUser, detail)));
        }
        let (ancestry, process) = self.ancestry(socket, free)?;
        let holder = match (ancestry.outermost(), process) {
            _ if !socket.is_kin() => Holder::Stranger,
            (Some(task), _) => Holder::Task(task.clone()),
            (None, Some(process)) => Holder::Process(process),
            (None, None) => Holder::Unseen,
        };
        Ok((ancestry, holder))
    }

    /// Of all processes that hold the socket; none may be confined unless it is `free` to.
    fn ancestry(&self, socket: Neighbour, free: bool) -> Result<(Ancestry, Option<ProcessId>), Box<Problem>> {
        let inode = socket.inode;
        let found = holders(inode).map_err(|error| short(&error))?;
        let mut all = Vec::new();
        for process in &found {
            all.extend(self.one(process, inode, free)?.map(|ancestry| (ancestry, Some(process.id()))));
        }
        // Where one of them runs in a task, that is the limit of all.
        all.sort_by_key(|(ancestry, _)| ancestry.outermost().is_none());
        match all.into_iter().next() {
            Some(known) => Ok(known),
            None if free && !socket.is_kin() => Ok((Ancestry::default(), None)),
            None => Err(unseen()),
        }
    }

    /// One of them; none if it does not hold the socket any more.
    fn one(&self, process: &Process, inode: u32, free: bool) -> Result<Option<Ancestry>, Box<Problem>> {
        let pid = process.pid;
        let free = free || self.vouched == Some(process.id());
        let confinement = (!free).then(|| Confinement::of(pid)).transpose();
        let ancestry = self.engine.ancestry(pid);
        // What was read is about this process only if that has its number still.
        let same = process::stat(pid).is_some_and(|now| now.id() == process.id());
        if !same || !holds(pid, inode).map_err(|error| short(&error))? {
            return Ok(None);
        }
        let confined = |why: String| {
            Box::new(Problem::new(Code::Confined, format!("the caller (pid {pid}) is refused: {why}")))
        };
        match confinement {
            Ok(None) => {}
            Ok(Some(theirs)) => {
                if let Some(reason) = theirs.beyond(self.own) {
                    return Err(confined(reason.to_string()));
                }
            }
            Err(error) if is_shortage(&error) => return Err(short(&error)),
            Err(error) => return Err(confined(format!("whether it is confined cannot be seen: {error}"))),
        }
        ancestry.map(Some).map_err(|unplaced| unplaced_caller(pid, unplaced))
    }
}

fn short(error: &io::Error) -> Box<Problem> {
    Box::new(Problem::new(Code::SystemLimit, format!("which process calls cannot be seen now: {error}")))
}

/// Nobody is left to be looked at, and nobody reads the answer.
fn closed() -> Box<Problem> {
    Box::new(Problem::new(Code::Forbidden, "the caller has closed its end of the connection"))
}

fn unseen() -> Box<Problem> {
    let detail = "the caller is refused: its process cannot be seen; it is in another pid namespace, or hides its descriptors";
    Box::new(Problem::new(Code::Confined, detail))
}
