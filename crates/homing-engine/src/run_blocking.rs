//! Work that may take a while, beside the event loop. Where the system has no thread left, it is done here and now: late is better than never.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::spawn_blocking;

/// Does it on a thread that may block.
///
/// # Errors
/// If it panicked on that thread, or the runtime ends.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let work = Arc::new(Mutex::new(Some(work)));
    let taken = |work: &Mutex<Option<_>>| work.lock().take();
    let shared = Arc::clone(&work);
    // The pool panics where it can make no thread. What was asked of it may still be in its queue then, and finds nothing to do.
    let spawned =
        catch_unwind(AssertUnwindSafe(|| spawn_blocking(move || taken(&shared).map(|work| work()))));
    let done = match spawned {
        Ok(doing) => doing.await.map_err(io::Error::other)?,
        Err(_) => taken(&work).map(|work| work()),
    };
    done.ok_or_else(|| io::Error::other("it was not done"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_done_once_and_a_panic_is_an_error() {
        assert_eq!(run_blocking(|| 7).await.unwrap(), 7);
        assert!(run_blocking(|| [0; 1].iter().position(|_| panic!("by mistake"))).await.is_err());
    }
}
