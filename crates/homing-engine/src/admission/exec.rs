//! Running in the foreground, for as long as the caller wants to wait.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use homing_model::{Spec, Task};

use crate::admission::submit::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::query::output::{OutputPart, OutputQuery};

/// Read at once.
const CHUNK: usize = 1 << 20;
/// One look at an output that does not grow takes this long at most; the end is seen at once all the same.
const LOOK: Duration = Duration::from_secs(60);

/// How a foreground run went. A timeout is an outcome, not an error.
#[derive(Debug, Clone)]
pub enum ExecOutcome {
    /// It ended.
    Completed(Task),
    /// It goes on in the background.
    Backgrounded {
        /// The task as it was then.
        task: Task,
        /// What it had printed, up to the last mebibyte of it.
        output_so_far: Vec<u8>,
        /// Where to read on.
        next_offset: u64,
    },
}

type OnOutput = Box<dyn FnMut(&[u8]) + Send>;

/// A foreground run to be.
#[must_use]
pub struct Exec {
    engine: Engine,
    spec: Spec,
    on_output: Option<OnOutput>,
    background_after: Option<Duration>,
}

impl Engine {
    /// Runs a command and waits for it.
    pub fn exec(&self, spec: Spec) -> Exec {
        Exec { engine: self.clone(), spec, on_output: None, background_after: None }
    }
}

impl Exec {
    /// Called with output as it comes.
    pub fn on_output(mut self, print: impl FnMut(&[u8]) + Send + 'static) -> Self {
        self.on_output = Some(Box::new(print));
        self
    }

    /// After this long the task goes on in the background.
    pub fn background_after(mut self, wait: Duration) -> Self {
        self.background_after = Some(wait);
        self
    }

    async fn run(mut self) -> Result<ExecOutcome, Error> {
        let task = self.engine.submit(self.spec, Caller::default(), None).await?.task;
        let until = self.background_after.map(|wait| tokio::time::Instant::now() + wait);
        let mut so_far = Vec::new();
        let mut next = 0;
        loop {
            let wait =
                until.map_or(LOOK, |at| at.saturating_duration_since(tokio::time::Instant::now()).min(LOOK));
            let query =
                OutputQuery { offset: Some(next), limit: CHUNK, wait: Some(wait), ..OutputQuery::default() };
            let OutputPart { bytes, next: after, complete, .. } =
                self.engine.read_output(&task.id, query).await?;
            next = after;
            if let Some(print) = &mut self.on_output
                && !bytes.is_empty()
            {
                print(&bytes);
            }
            so_far.extend_from_slice(&bytes);
            so_far.drain(..so_far.len().saturating_sub(CHUNK));
            let late = until.is_some_and(|at| tokio::time::Instant::now() >= at);
            if !complete && !late {
                continue;
            }
            let task = self.engine.task(&task.id).await?;
            if complete {
                return Ok(ExecOutcome::Completed(task));
            }
            // One that has ended does not go on: only the rest of its output is still to be read.
            if !task.status.is_terminal() {
                return Ok(ExecOutcome::Backgrounded { task, output_so_far: so_far, next_offset: next });
            }
        }
    }
}

impl IntoFuture for Exec {
    type Output = Result<ExecOutcome, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
