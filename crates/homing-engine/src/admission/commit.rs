//! The commit of an accepted task: its folder, its row, and its way to the scheduler. Keeps P9, P10 and P12.

use std::io;
use std::sync::Arc;

use homing_model::{Stdin, TaskId};
use homing_store::store::{self, Op};
use homing_store::{NewTask, Record};
use rustix::io::Errno;

use crate::admission::accept::{AcceptedTask, Execution, LaunchData};
use crate::admission::folder;
use crate::engine::Inner;
use crate::error::Error;
use crate::{entropy, scheduler};

/// Why a task was not committed. Nothing is left of it.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// Its folder cannot be made.
    Folder(io::Error),
    /// The ledger cannot be written.
    Ledger(store::Error),
}

impl From<CommitError> for Error {
    fn from(failure: CommitError) -> Self {
        let error = match failure {
            CommitError::Folder(error) => error,
            CommitError::Ledger(error) => return error.into(),
        };
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ if matches!(Errno::from_io_error(&error), Some(Errno::NFILE | Errno::MFILE)) => {
                Self::Limit(error.to_string())
            }
            _ => Self::Folder(error.to_string()),
        }
    }
}

/// Makes the folder under a new id and has `write` commit the row. If that `created` a task, the scheduler has it
/// when this returns; else the folder is gone, and the task can be committed again.
pub(crate) async fn commit<T>(
    inner: &Arc<Inner>,
    task: &mut AcceptedTask,
    write: impl FnOnce(NewTask) -> Op<T>,
    created: impl FnOnce(&T) -> Option<&Record>,
) -> Result<T, CommitError> {
    loop {
        task.row.id = TaskId::from_entropy(entropy::draw());
        let id = task.row.id.clone();
        // Recovery leaves the task alone until the scheduler has it.
        let _coming = inner.live.expect(&id);
        let folder = match &task.execution {
            Execution::External(_) => None,
            Execution::Command(data) => {
                if let Some((name, _)) = &data.input {
                    let path = inner.home.task(&id).join(name);
                    task.row.spec.stdin = Stdin::File(path.into_os_string().into());
                }
                let may_wait = inner.scheduler.may_wait(&task.row);
                match folder::make(inner, &task.row, data, may_wait).await {
                    Ok(folder) => {
                        if may_wait {
                            inner.scheduler.keep_secrets(&task.row, &data.values);
                        }
                        Some(folder)
                    }
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    Err(error) => return Err(CommitError::Folder(error)),
                }
            }
        };
        let written = write(task.row.clone()).await;
        let Some(record) = written.as_ref().ok().and_then(created) else {
            if folder.is_some() {
                let _ = inner.scheduler.take_secrets(&id);
                let _ = inner.home.remove_task(&id);
            }
            return written.map_err(CommitError::Ledger);
        };
        let execution = std::mem::replace(&mut task.execution, Execution::Command(LaunchData::default()));
        scheduler::accepted(inner, record.clone(), execution, folder);
        return written.map_err(CommitError::Ledger);
    }
}
