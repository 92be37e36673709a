//! The terminal of a task: whether it can be attached to, its size, and the sizes that it had.

use std::time::Duration;

use homing_model::{Kind, TaskId, TerminalSize};
use homing_shim::output::{self, SizeMark};
use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::error::Error;
use crate::query::wait;
use crate::supervisor::live::Command;

/// A shim answers at once; one of an earlier release, or one that stands still, not at all.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a size may be, in columns and in rows.
pub const LARGEST_SIZE: (u16, u16) = (TerminalSize::LARGEST.cols, TerminalSize::LARGEST.rows);

/// The size of a terminal, as its shim knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

impl Engine {
    /// Whether somebody can attach to a task: it is live, and has a terminal.
    ///
    /// # Errors
    /// If not: the reason.
    pub async fn has_terminal(&self, id: &TaskId) -> Result<(), Error> {
        let record = self.inner.record(id).await?;
        if record.kind == Kind::External {
            return Err(Error::External { task: id.clone(), what: "there is no terminal to attach to" });
        }
        if !record.spec.pty {
            return Err(Error::NoTerminal(id.clone()));
        }
        if record.status.is_terminal() {
            return Err(Error::Ended(id.clone()));
        }
        Ok(())
    }

    /// Gives a task's terminal a size, which its programs hear of by SIGWINCH. Answers with the size that it has then; none if its shim, of
    /// an earlier release, cannot change it.
    ///
    /// # Errors
    /// If there is no terminal, or the size makes no sense.
    pub async fn resize(&self, id: &TaskId, size: Size) -> Result<Option<Size>, Error> {
        let (most_cols, most_rows) = LARGEST_SIZE;
        if !(1..=most_cols).contains(&size.cols) || !(1..=most_rows).contains(&size.rows) {
            return Err(Error::BadParameter(format!(
                "a terminal has 1 to {most_cols} columns and 1 to {most_rows} rows, not {} and {}",
                size.cols, size.rows
            )));
        }
        self.has_terminal(id).await?;
        let (answer, resized) = oneshot::channel();
        match self.inner.live.commands(id) {
            Some(commands) => drop(commands.send(Command::Resize(size, answer)).await),
            None => drop(answer),
        }
        match tokio::time::timeout(PATIENCE, resized).await {
            Ok(Ok(Some(size))) => Ok(Some(size)),
            Ok(Ok(None)) => Err(Error::Ended(id.clone())),
            Ok(Err(_)) => Err(wait::unheard(&self.inner, id).await),
            Err(_) => Ok(None),
        }
    }

    /// The sizes that a task's terminal had, each with the byte of the output from which on. Whoever read output before this has all that
    /// concern it.
    ///
    /// # Errors
    /// If there is no such task, or its files are gone.
    pub async fn sizes(&self, id: &TaskId) -> Result<Vec<SizeMark>, Error> {
        let record = self.inner.record(id).await?;
        let folder = crate::query::output::open(&self.inner, &record)?;
        output::read_sizes(folder).map_err(|error| crate::query::output::unreadable(id, &error))
    }
}
