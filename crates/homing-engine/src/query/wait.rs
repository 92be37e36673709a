//! Waiting for ends: one, all, or any. Nothing polls.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use homing_api::WaitAnswer;
use homing_model::{Status, Task, TaskId};
use homing_store::Record;
use tokio::sync::watch;

use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::query::view;

/// Between the end that a shim saw and its place in the ledger.
const RECORDED: Duration = Duration::from_secs(2);

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// Until the last has ended.
    All,
    /// Until one has ended.
    Any,
}

/// What an answer about several tasks may hold, in bytes; of the tasks beyond that only an outline is in it.
const ANSWER_BYTES: usize = 2 << 20;

/// What a wait keeps of a task while it lasts. Its record, whose texts may be long, is read again for the answer.
struct Awaited {
    id: TaskId,
    ended: bool,
    /// Dropped with the end: it holds a whole record then.
    end: Option<watch::Receiver<Option<Record>>>,
}

impl Engine {
    /// Waits until all (or any) of these tasks have ended, or the time is up; that is no error. Of one task the answer has everything, of
    /// several summaries, which are outlines once the answer holds some MiB.
    ///
    /// # Errors
    /// If one of them does not exist.
    pub async fn wait(
        &self,
        ids: &[TaskId],
        mode: WaitMode,
        timeout: Option<Duration>,
    ) -> Result<WaitAnswer, Error> {
        let inner = &self.inner;
        let mut tasks = Vec::with_capacity(ids.len());
        for id in ids {
            // Subscribed before the ledger is asked, so that no end falls in between.
            let end = inner.ends.subscribe(id);
            let Some(record) = inner.store.get(id.clone()).await? else { return Err(inner.absent(id).await) };
            let ended = record.status.is_terminal();
            tasks.push(Awaited { id: id.clone(), ended, end: (!ended).then_some(end) });
        }
        let first = match timeout {
            Some(timeout) => tokio::time::timeout(timeout, settle(&mut tasks, mode)).await.unwrap_or(None),
            None => settle(&mut tasks, mode).await,
        };
        drop(tasks);
        let items = self.shown(ids).await?;
        let over = |task: &Task| task.status.is_terminal();
        let done = match mode {
            WaitMode::All => items.iter().all(over),
            WaitMode::Any => items.is_empty() || items.iter().any(over),
        };
        let first = first.or_else(|| first_ended(&items));
        Ok(WaitAnswer { done, items, first: first.filter(|_| mode == WaitMode::Any) })
    }

    /// The tasks as they are now. One record at a time, since each may be as large as a submit.
    async fn shown(&self, ids: &[TaskId]) -> Result<Vec<Task>, Error> {
        let (mut items, mut room) = (Vec::with_capacity(ids.len()), ANSWER_BYTES);
        for id in ids {
            let task = view::task(&self.inner, self.inner.record(id).await?);
            if ids.len() == 1 {
                return Ok(vec![task]);
            }
            let task = task.brief_summary();
            let bytes = serde_json::to_vec(&task).map_or(0, |text| text.len());
            items.push(if bytes <= room { task } else { task.outline() });
            room = room.saturating_sub(bytes);
        }
        Ok(items)
    }
}

fn first_ended(tasks: &[Task]) -> Option<TaskId> {
    let ended = tasks.iter().filter(|task| task.status.is_terminal());
    ended.min_by_key(|task| task.ended_at).map(|task| task.id.clone())
}

/// Waits. Answers which ended first, if one did while waiting.
async fn settle(tasks: &mut [Awaited], mode: WaitMode) -> Option<TaskId> {
    let mut first = None;
    loop {
        let open = tasks.iter().filter(|task| !task.ended).count();
        if open == 0 || (mode == WaitMode::Any && open < tasks.len()) {
            return first;
        }
        let ended = any_end(tasks).await;
        if first.is_none() {
            first = Some(ended);
        }
    }
}

/// The next end among the open ones.
async fn any_end(tasks: &mut [Awaited]) -> TaskId {
    let mut waiting: Vec<_> = tasks
        .iter_mut()
        .filter(|task| !task.ended)
        .map(|task| {
            Box::pin(async move {
                let heard = match &mut task.end {
                    Some(end) => end.wait_for(Option::is_some).await.is_ok(),
                    None => false,
                };
                if !heard {
                    // The sender goes only with the engine; whoever asked is about to go too.
                    std::future::pending::<()>().await;
                }
                (task.ended, task.end) = (true, None);
                task.id.clone()
            })
        })
        .collect();
    let mut next = pin!(poll_fn(|context| {
        for future in &mut waiting {
            if let Poll::Ready(id) = future.as_mut().poll(context) {
                return Poll::Ready(id);
            }
        }
        Poll::Pending
    }));
    next.as_mut().await
}

/// The end that a subscription tells of; none if the engine goes first.
pub(crate) async fn next_end(end: &mut watch::Receiver<Option<Record>>) -> Option<Record> {
    end.wait_for(Option::is_some).await.ok()?.clone()
}

/// Why a task's shim was not heard: it has ended, which is recorded in a moment; or it lives and does not answer now.
pub(crate) async fn unheard(inner: &Inner, id: &TaskId) -> Error {
    if matches!(inner.record(id).await, Ok(record) if record.status == Status::Queued) {
        return Error::NotStarted(id.clone());
    }
    match tokio::time::timeout(RECORDED, ended(inner, id)).await {
        Ok(Ok(_)) => Error::Ended(id.clone()),
        Ok(Err(error)) => error,
        Err(_) => Error::Silent(id.clone()),
    }
}

/// Waits for one end.
pub(crate) async fn ended(inner: &Inner, id: &TaskId) -> Result<Record, Error> {
    let mut end = inner.ends.subscribe(id);
    let record = inner.record(id).await?;
    if record.status.is_terminal() {
        return Ok(record);
    }
    next_end(&mut end).await.ok_or(Error::Closed)
}
