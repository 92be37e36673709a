//! Shims: forked when they are asked for, and what they leave behind when they are killed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::Pid;

use super::service::Keeper;
use crate::shim;
use homing_sys::{process, sys};

impl Keeper {
    pub(super) fn fork_shim(&mut self, socket: OwnedFd, folder: OwnedFd) -> io::Result<()> {
        match sys::fork()? {
            sys::Fork::Parent(pid) => {
                self.shims.insert(pid);
                Ok(())
            }
            sys::Fork::Child => {
                sys::close_all_but(socket.as_fd(), folder.as_fd());
                let _ = rustix::process::setsid();
                let _ = rustix::process::set_child_subreaper(Pid::from_raw(1));
                let _ = rustix::thread::set_name(c"homing-shim");
                shim::run(socket, folder, &self.boot_id);
                sys::exit_now(0)
            }
        }
    }

    pub(super) fn reap(&mut self) {
        let mut drain = [0; 128];
        let _ = rustix::io::read(&self.signals, &mut drain);
        while let sys::Wait::Ended(reaped) = sys::wait() {
            if self.daemon.as_ref().is_some_and(|daemon| daemon.pid == reaped.pid && daemon.pidfd.is_none()) {
                self.daemon_died();
            } else if self.shims.remove(&reaped.pid) {
                self.orphans |= reaped.end != sys::End::Code(0);
            } else {
                // An orphan of a killed shim, whose own children are ours now.
                self.orphans = true;
            }
        }
    }

    /// Ends every child that is neither shim nor daemon: what a killed shim left behind. Their ends come back through `reap`.
    pub(super) fn end_orphans(&mut self) {
        self.orphans = false;
        let me = std::process::id();
        let daemon = self.daemon.as_ref().map(|daemon| daemon.pid);
        for child in process::all().into_iter().filter(|child| child.parent == me) {
            if !self.shims.contains(&child.pid) && Some(child.pid) != daemon {
                process::signal(&child, libc::SIGKILL);
            }
        }
    }
}
