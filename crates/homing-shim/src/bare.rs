//! What the standard library does before `main`, where a program begins without it: what homing depends on.

use std::os::fd::{BorrowedFd, IntoRawFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, fcntl_getfd};
use rustix::stdio::{stderr, stdin, stdout};

use crate::sys;

/// None of the three standard descriptors is closed any more, and a write that nobody reads is an error, not a signal.
pub fn begin() {
    for standard in [stdin(), stdout(), stderr()] {
        fill(standard);
    }
    sys::ignore_broken_pipes();
}

/// Whatever is opened next takes the place of a descriptor that is closed, and would be printed to.
fn fill(descriptor: BorrowedFd<'_>) {
    if fcntl_getfd(descriptor) != Err(Errno::BADF) {
        return;
    }
    // The lowest that is free is this one. It stays open: nobody owns it.
    match open("/dev/null", OFlags::RDWR, Mode::empty()) {
        Ok(null) => drop(null.into_raw_fd()),
        Err(_) => std::process::abort(),
    }
}
