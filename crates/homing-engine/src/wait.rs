//! Waiting for ends: one, all, or any. Nothing polls.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use homing_model::TaskId;
use homing_model::api::WaitAnswer;
use homing_store::Record;
use tokio::sync::watch;

use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::view;

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

impl Engine {
    /// Waits until all (or any) of these tasks have ended, or the time is up; that is no error.
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
        // Subscribed before the ledger is asked, so that no end falls in between.
        let mut ends: Vec<_> = ids.iter().map(|id| inner.ends.subscribe(id)).collect();
        let mut records = Vec::with_capacity(ids.len());
        for (id, found) in ids.iter().zip(inner.store.get_many(ids.to_vec()).await?) {
            match found {
                Some(record) => records.push(record),
                None => return Err(inner.absent(id).await),
            }
        }
        let first = match timeout {
            Some(timeout) => {
                tokio::time::timeout(timeout, settle(&mut records, &mut ends, mode)).await.unwrap_or(None)
            }
            None => settle(&mut records, &mut ends, mode).await,
        };
        let over = |record: &Record| record.status.is_terminal();
        let done = match mode {
            WaitMode::All => records.iter().all(over),
            WaitMode::Any => records.is_empty() || records.iter().any(over),
        };
        if !done {
            // What is told of those that go on is how they are now, not how they were when the wait began.
            for (record, now) in records.iter_mut().zip(inner.store.get_many(ids.to_vec()).await?) {
                *record = now.filter(|now| !now.status.is_terminal()).unwrap_or_else(|| record.clone());
            }
        }
        let first = first.or_else(|| first_ended(&records));
        let items = records.into_iter().map(|record| view::task(inner, record)).collect();
        Ok(WaitAnswer { done, items, first: first.filter(|_| mode == WaitMode::Any) })
    }
}

fn first_ended(records: &[Record]) -> Option<TaskId> {
    let ended = records.iter().filter(|record| record.status.is_terminal());
    ended.min_by_key(|record| record.ended_at).map(|record| record.id.clone())
}

/// Waits, replacing records as they end. Answers which ended first, if one did while waiting.
async fn settle(
    records: &mut [Record],
    ends: &mut [watch::Receiver<Option<Record>>],
    mode: WaitMode,
) -> Option<TaskId> {
    let mut first = None;
    loop {
        let open = records.iter().filter(|record| !record.status.is_terminal()).count();
        if open == 0 || (mode == WaitMode::Any && open < records.len()) {
            return first;
        }
        let ended = any_end(records, ends).await;
        if first.is_none() {
            first = Some(ended);
        }
    }
}

/// The next end among the open ones.
async fn any_end(records: &mut [Record], ends: &mut [watch::Receiver<Option<Record>>]) -> TaskId {
    let mut waiting: Vec<_> = records
        .iter_mut()
        .zip(ends.iter_mut())
        .filter(|(record, _)| !record.status.is_terminal())
        .map(|(record, end)| {
            Box::pin(async move {
                match next_end(end).await {
                    Some(ended) => *record = ended,
                    // The sender goes only with the engine; whoever asked is about to go too.
                    None => std::future::pending::<()>().await,
                }
                record.id.clone()
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
