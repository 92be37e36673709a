//! One watcher: sleeps until there is news or a time has come, looks, tells.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use homing_model::watch::{self, Pattern, State};
use homing_model::{TaskId, Timestamp};
use homing_shim::wire::Stillness;
use homing_store::Record;
use tokio::sync::{self, oneshot};
use tokio::task::JoinHandle;

use super::scan::Scan;
use crate::engine::Inner;
use crate::query::output_notifier::News;
use crate::run_blocking;

/// Outputs that are judged at once, of all tasks.
pub(crate) const AT_ONCE: usize = 4;
/// Between two looks at an output that grows: a task that prints without end costs no more than this.
const BREATH: Duration = Duration::from_millis(20);
/// Between two pieces of what is there already.
const BETWEEN: Duration = Duration::from_millis(1);
/// Before another look at an output that could not be read.
const UNREADABLE_MS: i64 = 5_000;
/// So much is judged again at most because nothing was told of it.
const REPEATED: u64 = 32 << 20;

/// The attendant's end of a watcher. Dropping it ends the watcher.
#[derive(Debug)]
pub(crate) struct Handle {
    end: oneshot::Sender<u64>,
    done: JoinHandle<Option<u64>>,
    task: TaskId,
}

impl Handle {
    /// Judges the output to its end, and answers how many matches were not told. None if the engine ends first.
    pub(crate) async fn conclude(self, output_bytes: u64) -> Option<Option<u64>> {
        let _ = self.end.send(output_bytes);
        match self.done.await {
            Ok(waiting) => waiting.map(|count| (count > 0).then_some(count)),
            Err(error) => {
                tracing::error!(task = %self.task, %error, "a watch broke off; the task ends all the same");
                Some(None)
            }
        }
    }
}

/// One of them at work.
pub(super) struct Watcher {
    pub(super) inner: Arc<Inner>,
    pub(super) record: Record,
    pub(super) pid: Option<u32>,
    pub(super) started_at: Timestamp,
    patterns: Arc<[Pattern]>,
    pub(super) state: State,
    /// Where the ledger says we are.
    pub(super) kept_to: u64,
    /// The ledger was in trouble: nothing is told before.
    pub(super) retry_at: Option<Timestamp>,
    /// The ledger takes nothing any more.
    pub(super) closed: bool,
    /// The task has ended, or is somebody else's.
    pub(super) over: bool,
    /// When a heartbeat was last given or passed over.
    pub(super) beat_at: Timestamp,
    /// Output up to here was looked at.
    pub(super) seen: u64,
    /// Whether the tree stands still, and since when, or since when not.
    pub(super) stillness: Stillness,
}

/// Begins to watch a task, from where the ledger says that it was watched to.
pub(crate) fn begin(inner: &Arc<Inner>, record: &Record, pid: Option<u32>, started_at: Timestamp) -> Handle {
    let mut state = record.watch.clone().unwrap_or_default();
    // They were checked when the task was accepted; a later release may know them no more.
    let patterns = watch::patterns(&record.spec.watch).unwrap_or_else(|error| {
        tracing::error!(task = %record.id, %error, "what is watched for cannot be understood");
        Vec::new()
    });
    state.expect(patterns.len());
    let watcher = Watcher {
        inner: Arc::clone(inner),
        record: record.clone(),
        pid,
        started_at,
        patterns: patterns.into(),
        kept_to: state.scanned,
        retry_at: None,
        closed: false,
        over: false,
        beat_at: state.beat_at.unwrap_or(started_at),
        seen: 0,
        stillness: Stillness::default(),
        state,
    };
    let (end, ending) = oneshot::channel();
    // Ends with its handle, and by itself on shutdown; what it does not finish is done again by the next.
    let done = tokio::spawn(watcher.run(ending));
    Handle { end, done, task: record.id.clone() }
}

impl Watcher {
    async fn run(mut self, mut ending: oneshot::Receiver<u64>) -> Option<u64> {
        let mut news = News::new(&self.inner, &self.record.id);
        let shutdown = self.inner.shutdown.clone();
        let mut still = self.inner.live.stillness(&self.record.id);
        let mut readable = true;
        let mut breath = Duration::ZERO;
        loop {
            let looked = self.look(None).await;
            if let Err(error) = &looked
                && readable
            {
                tracing::warn!(task = %self.record.id, %error, "an output cannot be watched now");
            }
            readable = looked.is_ok();
            let more = looked.unwrap_or(false);
            if let Some(still) = &mut still {
                self.stillness = *still.borrow_and_update();
            }
            let waits = self.alarms().await;
            if self.over {
                return (&mut ending).await.ok().map(|_| 0);
            }
            let now = self.inner.now();
            let held =
                self.state.due(now).map(|due| self.held_until(now).map_or(due, |until| due.max(until)));
            let again = (!readable).then(|| now.plus_millis(UNREADABLE_MS));
            let wake = waits.at.into_iter().chain(held).chain(again).min();
            let listens = self.state.watches() || waits.output;
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return None,
                until = &mut ending => return self.conclude(until.ok()?).await,
                () = tokio::time::sleep(BETWEEN), if more => {}
                () = news.beyond(&self.inner, self.seen, breath), if listens && !more => breath = BREATH,
                () = changed(&mut still) => {}
                () = until(wake, now), if !more => {}
            }
        }
    }

    /// Tells what may be told, and judges one piece; true if there is more.
    async fn look(&mut self, until: Option<u64>) -> io::Result<bool> {
        self.tell_matches().await;
        if !self.state.watches() {
            return Ok(false);
        }
        let turn = self.inner.scans.acquire().await.map_err(io::Error::other)?;
        let now = self.inner.now();
        let scan = Scan {
            folder: self.folder()?,
            patterns: Arc::clone(&self.patterns),
            masks: self.record.masks.clone(),
            state: self.state.clone(),
            hold: self.held_until(now).is_some(),
            until,
            now,
        };
        let scanned = run_blocking(move || scan.run()).await??;
        drop(turn);
        self.state = scanned.state;
        self.seen = self.seen.max(scanned.seen);
        self.tell_matches().await;
        if self.state.scanned.saturating_sub(self.kept_to) > REPEATED {
            let now = self.inner.now();
            self.keep(None, now).await;
        }
        Ok(scanned.more)
    }

    /// Judges the rest of an output that is this long; answers how many matches are left untold.
    async fn conclude(mut self, until: u64) -> Option<u64> {
        loop {
            match self.look(Some(until)).await {
                _ if self.closed => return None,
                _ if self.over => break,
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(task = %self.record.id, %error, "the rest of an output could not be judged");
                    break;
                }
            }
        }
        Some(self.state.waiting())
    }
}

/// Waits until the tree stands still, or goes on.
async fn changed(still: &mut Option<sync::watch::Receiver<Stillness>>) {
    if let Some(news) = still
        && news.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Waits for a time; without one, for ever.
async fn until(at: Option<Timestamp>, now: Timestamp) {
    match at {
        Some(at) => tokio::time::sleep(Duration::from_millis(at.millis_since(now))).await,
        None => std::future::pending().await,
    }
}
