//! Sending input to a task, without ever waiting on it for ever.

use std::time::Duration;

use homing_model::{Stdin, TaskId};
use homing_shim::wire::MAX_INPUT;
use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::error::Error;
use crate::live::Command;

/// A task that takes nothing for this long is not reading.
const PATIENCE: Duration = Duration::from_secs(10);

impl Engine {
    /// Writes to a task's input, in order, and closes it afterwards if asked. Answers how many bytes it took: all of them.
    ///
    /// # Errors
    /// If it takes no input, has closed it, or does not read.
    pub async fn input(&self, id: &TaskId, data: Vec<u8>, eof: bool) -> Result<u64, Error> {
        let record = self.inner.record(id).await?;
        if record.status.is_terminal() {
            return Err(Error::Ended(id.clone()));
        }
        if !record.spec.pty && record.spec.stdin != Stdin::Pipe {
            return Err(Error::NoInput(id.clone()));
        }
        let commands = self.inner.live.commands(id).ok_or_else(|| Error::Ended(id.clone()))?;
        let total = data.len() as u64;
        let mut written = 0;
        let mut parts: Vec<&[u8]> = data.chunks(MAX_INPUT).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        let last = parts.len() - 1;
        for (number, part) in parts.into_iter().enumerate() {
            let (taken, answer) = oneshot::channel();
            let command = Command::Input { data: part.to_vec(), eof: eof && number == last, taken };
            if commands.send(command).await.is_err() {
                return Err(Error::Ended(id.clone()));
            }
            let unread = || Error::InputNotRead { task: id.clone(), written, rest: total - written };
            match tokio::time::timeout(PATIENCE, answer).await {
                Ok(Ok((count, closed))) => {
                    written += count.min(part.len() as u64);
                    if closed && (count as usize) < part.len() {
                        return Err(Error::NoInput(id.clone()));
                    }
                    if (count as usize) < part.len() {
                        return Err(Error::InputNotRead { task: id.clone(), written, rest: total - written });
                    }
                }
                Ok(Err(_)) => return Err(Error::Ended(id.clone())),
                Err(_) => return Err(unread()),
            }
        }
        Ok(written)
    }
}
