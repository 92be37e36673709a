//! Whoever interrupts a soak finds nothing left of it: neither a process nor a socket nor a folder.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use homing_testkit::Home;
use tokio::signal::unix::{SignalKind, signal};

/// Clears up at the first signal and ends this process. The thread ends with it, or never.
#[expect(
    clippy::exit,
    reason = "the threads of a soak are in the middle of anything; what they would leave is cleared first"
)]
pub(crate) fn watch(home: Arc<Home>, over: Arc<AtomicBool>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _enter = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let wait = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        over.store(true, Ordering::Relaxed);
        home.clear();
        eprintln!("interrupted");
        std::process::exit(130);
    };
    std::thread::Builder::new().name("interrupt".to_owned()).spawn(wait).context("a thread")?;
    Ok(())
}
