//! What the standard library does before `main`, where a program begins without it: what homing depends on.

use std::os::fd::IntoRawFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::stdio::{stderr, stdin, stdout};

use crate::sys;

/// None of the three standard descriptors is closed any more, and a write that nobody reads is an error, not a signal.
pub fn begin() {
    fill_standard_descriptors();
    sys::ignore_broken_pipes();
}

/// Whatever is opened next takes the place of a descriptor that is closed, and would be printed to.
fn fill_standard_descriptors() {
    let (input, output, errors) = (stdin(), stdout(), stderr());
    let mut three = [&input, &output, &errors].map(|fd| PollFd::new(fd, PollFlags::empty()));
    if poll(&mut three, Some(&Timespec::default())).is_err() {
        return;
    }
    let closed = three.iter().filter(|fd| fd.revents().contains(PollFlags::NVAL)).count();
    for _ in 0..closed {
        // The lowest that is free, which is one of the three. It stays open: nobody owns it.
        let _ = open("/dev/null", OFlags::RDWR, Mode::empty()).map(IntoRawFd::into_raw_fd);
    }
}
