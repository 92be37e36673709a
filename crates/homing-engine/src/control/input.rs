//! Sending input to a task, without ever waiting on it for ever.

use std::time::Duration;

use homing_model::{Kind, Stdin, TaskId};
use homing_shim::record;
use homing_shim::wire::MAX_INPUT;
use tokio::sync::{mpsc, oneshot};

use crate::engine::Engine;
use crate::entropy;
use crate::error::Error;
use crate::query::wait;
use crate::supervisor::live::Command;

/// A task that takes nothing for this long is not reading.
const PATIENCE: Duration = Duration::from_secs(10);

impl Engine {
    /// Writes to a task's input, in order, and closes it afterwards if asked. Answers how many bytes it took; where these are not all,
    /// it stopped reading, and the rest was not kept: it may be sent again. Dropping the future takes back what was not taken yet: nobody
    /// else waits behind the input of one who has gone.
    ///
    /// # Errors
    /// If it takes no input, has closed it, or reads nothing at all.
    pub async fn input(&self, id: &TaskId, data: Vec<u8>, eof: bool) -> Result<u64, Error> {
        self.input_piece(id, data, eof, entropy::draw()).await
    }

    /// The same for a piece with a number that nobody else has: sent again with it, because nobody answered, what the task took of it before
    /// does not come twice. The answer counts that too.
    ///
    /// # Errors
    /// As [`input`](Self::input).
    pub async fn input_piece(&self, id: &TaskId, data: Vec<u8>, eof: bool, piece: u64) -> Result<u64, Error> {
        match self.feed(id, &data, eof, piece).await {
            // It may have been this very piece that let the task end, and the answer that got lost.
            Err(Error::Ended(_)) if self.was_taken(id, last_part(&data, piece)).await => {
                Ok(data.len() as u64)
            }
            fed => fed,
        }
    }

    /// Whether a task that has ended had taken this part, and so all before it, by its exit record.
    async fn was_taken(&self, id: &TaskId, part: u64) -> bool {
        let Ok(record) = self.inner.record(id).await else { return false };
        let Ok(folder) = self.inner.home.open_attempt(&record.attempt()) else { return false };
        let found = record::read(folder).ok().flatten();
        found.and_then(|found| found.inputs).is_some_and(|inputs| inputs.contains(&part))
    }

    async fn feed(&self, id: &TaskId, data: &[u8], eof: bool, piece: u64) -> Result<u64, Error> {
        let record = self.inner.record(id).await?;
        if record.status.is_terminal() {
            return Err(Error::Ended(id.clone()));
        }
        if record.kind == Kind::External {
            return Err(Error::External { task: id.clone(), what: "it takes no input" });
        }
        if !record.spec.pty && record.spec.stdin != Stdin::Pipe {
            return Err(Error::NoInput(id.clone()));
        }
        let Some(commands) = self.inner.live.commands(id) else {
            return Err(wait::unheard(&self.inner, id).await);
        };
        let mut parts: Vec<&[u8]> = data.chunks(MAX_INPUT).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        let last = parts.len() - 1;
        let mut written = 0;
        for (number, part) in parts.into_iter().enumerate() {
            let seq = piece.wrapping_add(number as u64);
            let Some(taken) = send(&commands, seq, part, eof && number == last).await else {
                return Err(wait::unheard(&self.inner, id).await);
            };
            written += taken.bytes;
            if taken.bytes == part.len() as u64 {
                continue;
            }
            return match (taken.closed, written) {
                (true, _) => Err(Error::NoInput(id.clone())),
                (false, 0) => Err(Error::InputNotRead(id.clone())),
                (false, written) => Ok(written),
            };
        }
        Ok(written)
    }
}

/// The number of a piece's last part.
fn last_part(data: &[u8], piece: u64) -> u64 {
    piece.wrapping_add(data.chunks(MAX_INPUT).count().saturating_sub(1) as u64)
}

/// A request that the shim has, and whose sender may go away.
struct Pending<'a> {
    commands: &'a mpsc::Sender<Command>,
    seq: Option<u64>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let Some(seq) = self.seq else { return };
        // What is sent next comes behind this. A full queue means a shim that does not hear at all.
        let _ = self.commands.try_send(Command::CancelInput(seq));
    }
}

struct Taken {
    bytes: u64,
    closed: bool,
}

/// Sends one part and waits until it was taken, or until the task has shown that it does not read. None if its shim is gone.
async fn send(commands: &mpsc::Sender<Command>, seq: u64, part: &[u8], eof: bool) -> Option<Taken> {
    let (taken, mut answer) = oneshot::channel();
    commands.send(Command::Input { seq, data: part.to_vec(), eof, taken }).await.ok()?;
    let mut pending = Pending { commands, seq: Some(seq) };
    let (bytes, closed) = match tokio::time::timeout(PATIENCE, &mut answer).await {
        Ok(answered) => answered.ok()?,
        Err(_) => {
            // The shim answers the same request with what was taken until now, and forgets the rest.
            commands.send(Command::CancelInput(seq)).await.ok()?;
            tokio::time::timeout(PATIENCE, answer).await.ok()?.ok()?
        }
    };
    pending.seq = None;
    Some(Taken { bytes: bytes.min(part.len() as u64), closed })
}
