//! Whether anybody still reads what is printed.
//!
//! `homing output -f web | grep -m1 ready` has its line, and `grep` leaves. A server that is ready may print nothing for hours: whoever follows it
//! would learn only from its next write that nobody listens, and hold up the shell until then.

use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::Notify;

use crate::cli::failure::Failure;

/// Whoever reads standard output.
pub(crate) struct Audience {
    left: Arc<Notify>,
}

impl Audience {
    /// Looks after it from now on, in a thread that ends with the process.
    pub(crate) fn new() -> Self {
        let left = Arc::new(Notify::new());
        let tell = Arc::clone(&left);
        // Without the thread, the next write finds out.
        let _ = std::thread::Builder::new().name("audience".to_owned()).spawn(move || {
            if leaves() {
                tell.notify_one();
            }
        });
        Self { left }
    }

    /// What is waited for, or the end of the audience, whichever comes first.
    pub(crate) async fn while_there<T, E: Into<Failure>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = work => done.map_err(Into::into),
            () = self.left.notified() => Err(Failure::ClosedOutput),
        }
    }
}

/// Waits until the other end of standard output is closed. A file has none, and that is waited for in vain.
fn leaves() -> bool {
    loop {
        let stdout = std::io::stdout();
        // No event is asked for: errors are told in any case.
        match poll(&mut [PollFd::new(&stdout, PollFlags::empty())], None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
            Ok(found) => return found > 0,
        }
    }
}
