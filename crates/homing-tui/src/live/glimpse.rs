//! The last lines of the tasks in sight.
//!
//! For each a question stands until the task prints; then there is a pause, longer the more of them there are, so that all together cost the same whether ten tasks print or a
//! hundred. What a task prints after a silence is shown at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use homing_client::{Client, Error, OutputQuery};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::news::{News, Out, Over};
use crate::message::Message;
use crate::output::last_line;
use crate::panel::Glimpse;

/// What is read of an output for its last line.
const TAIL: u64 = 1_024;

/// The most that is read of what is new.
const FRESH: u64 = 4_096;

/// How long a question stands.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause for each task in sight.
const EACH: Duration = Duration::from_millis(50);

/// Within which the pause is.
const PAUSES: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(3));

/// Those that look.
#[derive(Debug)]
pub(super) struct Glimpses {
    client: Client,
    out: Out,
    looking: HashMap<String, Look>,
    live: Arc<AtomicU32>,
}

#[derive(Debug)]
struct Look {
    worker: JoinHandle<()>,
    changed: Arc<Notify>,
}

impl Drop for Look {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

impl Glimpses {
    pub(super) fn new(client: Client, out: Out) -> Self {
        Self { client, out, looking: HashMap::new(), live: Arc::default() }
    }

    /// Looks at these, and at no others.
    pub(super) fn look_at(&mut self, wanted: &[Glimpse]) {
        self.looking.retain(|task, _| wanted.iter().any(|one| one.task == *task));
        let live = wanted.iter().filter(|one| one.live).count();
        self.live.store(u32::try_from(live).unwrap_or(u32::MAX), Ordering::Relaxed);
        for one in wanted {
            if !self.looking.contains_key(&one.task) {
                let changed = Arc::new(Notify::new());
                let look = look(
                    self.client.clone(),
                    one.task.clone(),
                    Arc::clone(&changed),
                    Arc::clone(&self.live),
                    self.out.clone(),
                );
                // It ends with the output, or is aborted when the task is out of sight.
                let worker = tokio::spawn(look);
                self.looking.insert(one.task.clone(), Look { worker, changed });
            }
        }
    }

    /// A task changed: one that had not begun has output from now on.
    pub(super) fn changed(&self, task: &str) {
        if let Some(look) = self.looking.get(task) {
            look.changed.notify_one();
        }
    }
}

async fn look(client: Client, task: String, changed: Arc<Notify>, live: Arc<AtomicU32>, out: Out) {
    let mut next = None;
    let mut told: Option<Instant> = None;
    loop {
        let seen = tokio::select! {
            seen = see(&client, &task, next) => seen,
            () = changed.notified(), if next.is_some() => continue,
        };
        let pause = (EACH * live.load(Ordering::Relaxed)).clamp(PAUSES.0, PAUSES.1);
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) if error.is_disconnect() => {
                sleep(pause).await;
                continue;
            }
            // Its output is gone: there is no last line.
            Err(_) => return,
        };
        next = Some(seen.end);
        if !seen.line.is_empty() {
            let now = Instant::now();
            let was_silent = told.is_none_or(|told| now - told > 2 * pause);
            told = Some(now);
            if tell(&out, &task, seen.line, was_silent || seen.complete).await.is_err() {
                return;
            }
        }
        if seen.complete {
            return;
        }
        if told.is_some() {
            sleep(pause).await;
        }
    }
}

async fn tell(out: &Out, task: &str, line: String, urgent: bool) -> Result<(), Over> {
    let message = Message::LastLine { task: task.to_owned(), line };
    out.send(if urgent { News::Now(message) } else { News::Soon(message) }).await
}

struct Seen {
    line: String,
    end: u64,
    complete: bool,
}

/// The last line once there is something at an offset.
async fn see(client: &Client, task: &str, next: Option<u64>) -> Result<Seen, Error> {
    if let Some(offset) = next {
        let query = OutputQuery {
            offset: Some(offset),
            limit: Some(FRESH),
            wait: Some(PATIENCE),
            ..OutputQuery::default()
        };
        let chunk = client.output(task, &query).await?;
        let line = last_line(&chunk.bytes);
        // Much was printed, or a line that began before: the end says it.
        let whole = (chunk.bytes.len() as u64) < FRESH && (chunk.bytes.contains(&b'\n') || line.is_empty());
        if whole {
            return Ok(Seen { line, end: chunk.end, complete: chunk.complete });
        }
    }
    let query = OutputQuery { tail: Some(TAIL), ..OutputQuery::default() };
    let chunk = client.output(task, &query).await?;
    Ok(Seen { line: last_line(&chunk.bytes), end: chunk.end, complete: chunk.complete })
}
