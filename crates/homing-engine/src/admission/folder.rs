//! The folder of a task that is about to be committed.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use homing_shim::folder::ENVIRONMENT;
use homing_store::NewTask;
use rustix::fs::{Mode, OFlags};

use crate::admission::accept::LaunchData;
use crate::engine::Inner;
use crate::run_blocking;
use crate::supervisor::launch;

/// Makes the folder, with the environment and the input of the command. After an error nothing is left of it.
pub(super) async fn make(
    inner: &Arc<Inner>,
    row: &NewTask,
    data: &LaunchData,
    durable: bool,
) -> io::Result<OwnedFd> {
    let folder = inner.home.make_task(&row.id)?;
    let mut written = write(&folder, row, data);
    if written.is_ok() && durable {
        written = sync(inner, &folder, data).await;
    }
    if let Err(error) = written {
        let _ = inner.home.remove_task(&row.id);
        return Err(error);
    }
    Ok(folder)
}

fn write(folder: &OwnedFd, row: &NewTask, data: &LaunchData) -> io::Result<()> {
    let written = data.values.iter().filter(|(name, _)| !launch::is_secret(row, name));
    launch::write_environment(folder, written)?;
    let Some((name, contents)) = &data.input else { return Ok(()) };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(folder, *name, flags, Mode::RUSR | Mode::WUSR)?;
    std::fs::File::from(file).write_all(contents.as_bytes())
}

/// Syncs the files, then the folders that name them.
async fn sync(inner: &Arc<Inner>, folder: &OwnedFd, data: &LaunchData) -> io::Result<()> {
    let names = [Some(ENVIRONMENT), data.input.as_ref().map(|(name, _)| *name)];
    let (inner, folder) = (Arc::clone(inner), folder.try_clone()?);
    let sync = move || {
        for name in names.into_iter().flatten() {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            rustix::fs::fsync(rustix::fs::openat(&folder, name, flags, Mode::empty())?)?;
        }
        rustix::fs::fsync(folder.as_fd())?;
        inner.home.sync_tasks()
    };
    run_blocking(sync).await?
}
