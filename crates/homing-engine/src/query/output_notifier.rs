//! News of an output that grows: the shim gives some once each time that it is asked.

use std::time::Duration;

use homing_model::TaskId;
use tokio::sync::watch;

use crate::engine::Inner;
use crate::supervisor::live::Command;

/// Who waits for news of one task's output.
#[derive(Debug)]
pub(crate) struct News {
    task: TaskId,
    growth: Option<watch::Receiver<u64>>,
    /// How much the shim last said that there is; it counts what a full disk did not keep, too.
    heard: u64,
}

impl News {
    /// Of this task; none ever comes if it is not attended.
    pub(crate) fn new(inner: &Inner, task: &TaskId) -> Self {
        Self { task: task.clone(), growth: inner.live.growth(task), heard: 0 }
    }

    /// Waits, after a breath, until there is more than was seen.
    pub(crate) async fn beyond(&mut self, inner: &Inner, seen: u64, breath: Duration) {
        let (Some(growth), Some(commands)) = (&mut self.growth, inner.live.commands(&self.task)) else {
            return std::future::pending().await;
        };
        if !breath.is_zero() {
            tokio::time::sleep(breath).await;
        }
        let told = *growth.borrow_and_update();
        if told > seen.max(self.heard) {
            self.heard = told;
            return;
        }
        let _ = commands.send(Command::Watch(seen.max(self.heard))).await;
        if growth.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.heard = self.heard.max(*growth.borrow());
    }
}
