//! `homing daemon restart`: another daemon in the place of this one, from this program, while tasks run on.
//!
//! It is a stop and a start. A keeper that has no shims leaves with the daemon, so that the next one is of this program too, with this environment; one that
//! has some stays, and starts the daemon from the program that is recorded. Whoever watches over the daemon (`daemon run --service`) must not take that for a
//! stop: a lock is held meanwhile, and waited for there. It goes with this process, whatever becomes of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use tokio::time::timeout;

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;

/// The file that is locked, in the home.
const LOCK: &str = "restart.lock";

/// Replaces it, or starts one where there is none.
pub(crate) async fn run(context: &Context) -> Result<u8, Failure> {
    // Before the stop: from here it could not be started again.
    super::refuse_inside_task(context)?;
    let before = match super::ask(context).await {
        Ok(Some(before)) => Some(before),
        Ok(None) => return super::start(context).await,
        // One that is there and cannot say how it is, since its database is damaged, say, is replaced all the same.
        Err(failure) => match timeout(super::PATIENCE, context.quiet_client().nameless().healthy()).await {
            Ok(Ok(())) => None,
            Ok(Err(_)) | Err(_) => return Err(failure),
        },
    };
    // Without it a service may be told that it was stopped; that is no reason not to restart.
    let _lock = hold(&context.home);
    super::leave(&context.quiet_client(), context).await?;
    let after = super::begin(context).await?;
    if context.json {
        context.console.json(&super::running_now(&after))?;
    } else {
        let new = &after.daemon;
        let version = match before.map(|before| before.daemon.version).filter(|old| *old != new.version) {
            None => format!("version {}", new.version),
            Some(old) => format!("version {} in the place of {old}", new.version),
        };
        let text = format!("restarted, pid {}, {version}; tasks run on", new.pid);
        context.console.line(&homing_model::sanitize::line(&text))?;
    }
    super::tell_of_broken_configuration(context);
    Ok(exit_code::DONE)
}

/// Holds the lock, waiting for whoever has it, until it is dropped.
fn hold(home: &Path) -> io::Result<File> {
    let lock = File::options().write(true).create(true).truncate(false).mode(0o600).open(home.join(LOCK))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// Waits until no restart is under way.
pub(super) async fn over(home: &Path) {
    let home = home.to_owned();
    // Where there is no such file nobody ever restarted it.
    let waited = tokio::task::spawn_blocking(move || {
        File::open(home.join(LOCK)).and_then(|lock| Ok(flock(&lock, FlockOperation::LockShared)?))
    });
    let _ = waited.await;
}
