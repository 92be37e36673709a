//! The last lines of the tasks in sight.
//!
//! For each a question stands until the task prints; then there is a pause, short after a silence, and longer each time while the task goes on printing, up to one that grows with their number: so
//! all together cost the same whether ten tasks print or a hundred, and what a task prints now and then is shown at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use homing_client::{Client, Error, OutputQuery};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::news::{News, Out, Over, spawn};
use crate::message::Message;
use crate::output::last_line;
use crate::panel::Glimpse;

/// What is read of an output for its last line.
const TAIL: u64 = 1_024;

/// The most that is read of what is new.
const FRESH: u64 = 4_096;

/// How long a question stands.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause after a silence.
const SHORT: Duration = Duration::from_millis(40);

/// The longest pause, for each task in sight.
const EACH: Duration = Duration::from_millis(50);

/// Within which the longest pause is.
const LONG: (Duration, Duration) = (Duration::from_millis(400), Duration::from_secs(3));

/// How long the pause is after an answer for which nobody had to wait, or had to: the one before doubled, or the short one.
fn pause(before: Duration, waited: Duration, in_sight: u32) -> Duration {
    let long = (EACH * in_sight).clamp(LONG.0, LONG.1);
    if waited > long { SHORT } else { (before * 2).clamp(SHORT, long) }
}

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
                let worker = spawn("the reader of last lines", &self.out, look);
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
    let mut between = SHORT;
    loop {
        let asked = Instant::now();
        let seen = tokio::select! {
            seen = see(&client, &task, next) => seen,
            () = changed.notified(), if next.is_some() => continue,
        };
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) if error.is_disconnect() => {
                sleep(LONG.1).await;
                continue;
            }
            // Its output is gone: there is no last line.
            Err(_) => return,
        };
        let first = next.is_none();
        next = Some(seen.end);
        if !first {
            between = pause(between, asked.elapsed(), live.load(Ordering::Relaxed));
        }
        // What comes in a flood is drawn with the next thing that is not.
        let urgent = first || seen.complete || between <= 4 * SHORT;
        if !seen.line.is_empty() && tell(&out, &task, seen.line, urgent).await.is_err() {
            return;
        }
        if seen.complete {
            return;
        }
        // What a task prints first may come at once; one that has nothing to wait for is asked again after a pause.
        if !first {
            sleep(between).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_prints_now_and_then_is_asked_soon_and_one_that_never_stops_is_not() {
        let millis = Duration::from_millis;
        let mut between = SHORT;
        let flood: Vec<_> = (0..6)
            .map(|_| {
                between = pause(between, millis(1), 40);
                between.as_millis()
            })
            .collect();
        assert_eq!(flood, [80, 160, 320, 640, 1_280, 2_000]);
        assert_eq!(pause(between, millis(2_500), 40), SHORT, "after a silence");
        assert_eq!(pause(millis(400), millis(1), 1), millis(400), "few in sight are asked more often");
    }
}
