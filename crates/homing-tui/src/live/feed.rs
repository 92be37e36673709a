//! The tasks, by the events of the daemon.
//!
//! An event only says that a task changed; how it is now is asked. So what is shown is never older than the last event, in whatever order answers come: one is
//! asked after the other. The stream begins with a cursor that no log has, which is answered with all tasks and the cursor to go on from, read in one moment.

use std::collections::BTreeSet;
use std::time::Duration;

use homing_api::Code;
use homing_client::{Client, Error, EventQuery, EventStream, ListQuery, Record};
use homing_model::{Event, EventKind, Kind, Task};
use tokio::time::{sleep, timeout};

use super::news::{News, Out, Over};
use crate::message::Message;
use crate::row::Row;
use crate::snapshot::Link;

/// A cursor beyond every log.
const BEGINNING: u64 = i64::MAX as u64;

/// Events that come so close together are taken together.
const TOGETHER: Duration = Duration::from_millis(3);

/// As many changes at once are asked for one by one; of more, a whole page.
const ONE_BY_ONE: usize = 24;

/// Tasks of a page.
const PAGE: u32 = 500;

/// Between two attempts when the daemon is gone for good.
const AGAIN: Duration = Duration::from_secs(1);

/// Tells of every task, for ever.
pub(super) async fn feed(client: Client, out: Out) {
    let mut feed = Feed { client, out, cursor: BEGINNING, unasked: BTreeSet::new() };
    while let Ok(()) = feed.follow().await {
        sleep(AGAIN).await;
    }
}

struct Feed {
    client: Client,
    out: Out,
    cursor: u64,
    /// Tasks that changed and of which nobody could be asked yet. Their events do not come again: what is forgotten here stays wrong until the next one.
    unasked: BTreeSet<String>,
}

impl Feed {
    /// Until the stream cannot go on by itself.
    async fn follow(&mut self) -> Result<(), Over> {
        let query = EventQuery { after: self.cursor, owner: None, kinds: Vec::new() };
        let mut stream = self.client.follow_events(query);
        let mut standing = stream.standing();
        loop {
            let first = tokio::select! {
                record = stream.next() => record,
                Ok(()) = standing.changed() => {
                    let link = match *standing.borrow_and_update() {
                        // How it is comes with what is told next, or it was all told before.
                        true if self.cursor == BEGINNING => Link::Connecting,
                        true => Link::Live,
                        false => Link::Lost("reconnecting".to_owned()),
                    };
                    self.out.now(Message::Link(link)).await?;
                    continue;
                }
                () = sleep(AGAIN), if !self.unasked.is_empty() => {
                    self.ask().await?;
                    continue;
                }
            };
            let mut records = Vec::new();
            match first {
                Ok(record) => records.push(record),
                Err(error) => return self.out.now(Message::Link(Link::Lost(why(error)))).await,
            }
            drain(&mut stream, &mut records).await;
            self.take_in(records).await?;
        }
    }

    async fn take_in(&mut self, records: Vec<Record>) -> Result<(), Over> {
        let mut touched = BTreeSet::new();
        for record in records {
            match &record {
                Record::Event { seq, .. } => {
                    self.cursor = *seq;
                    // One that this release does not know may still be about a task; the next event of that task brings it.
                    let Ok(Some(event)) = record.event() else { continue };
                    let Event { kind, task_id: Some(id), .. } = event else { continue };
                    touched.insert(id.to_string());
                    let delivery = matches!(
                        kind,
                        EventKind::DeliveryDelivered
                            | EventKind::DeliverySuperseded
                            | EventKind::DeliveryDead
                    );
                    if !delivery {
                        self.unasked.insert(id.to_string());
                    }
                }
                Record::Reset { seq, .. } => match record.reset() {
                    Ok(reset) => {
                        self.cursor = *seq;
                        self.unasked.clear();
                        let tasks = reset.map(|reset| reset.tasks.items).unwrap_or_default();
                        self.out.now(Message::Rows(rows(&tasks))).await?;
                        self.out.now(Message::Link(Link::Live)).await?;
                        touched.extend(tasks.iter().map(|task| task.id.to_string()));
                    }
                    // Of a later release: what it says of its tasks is asked for one by one as they change.
                    Err(error) => {
                        self.cursor = *seq;
                        self.out.say(why(error)).await?;
                    }
                },
            }
        }
        self.ask().await?;
        self.out.send(News::Changed(touched.into_iter().collect())).await
    }

    /// How the tasks that changed are now. Those that could not be asked for are asked for again.
    async fn ask(&mut self) -> Result<(), Over> {
        match self.ask_each().await? {
            Ok(()) => Ok(()),
            Err(error) => self.out.say(why(error)).await,
        }
    }

    async fn ask_each(&mut self) -> Result<Result<(), Error>, Over> {
        if self.unasked.len() > ONE_BY_ONE {
            let query = ListQuery { limit: Some(PAGE), ..ListQuery::default() };
            match self.client.list(&query).await {
                Ok(page) => {
                    for task in page.items.iter().filter(|task| self.unasked.remove(task.id.as_str())) {
                        self.out.now(Message::Row(Box::new(Row::from(task)))).await?;
                    }
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        while let Some(id) = self.unasked.first().cloned() {
            let message = match self.client.task(&id).await {
                Ok(task) if task.kind == Kind::Hook => None,
                Ok(task) if task.forgotten => Some(Message::Gone(id.clone())),
                Ok(task) => Some(Message::Row(Box::new(Row::from(&task)))),
                Err(error) if error.code() == Some(Code::UnknownTask) => Some(Message::Gone(id.clone())),
                Err(error) => return Ok(Err(error)),
            };
            self.unasked.remove(&id);
            if let Some(message) = message {
                self.out.now(message).await?;
            }
        }
        Ok(Ok(()))
    }
}

/// What else is there already.
async fn drain(stream: &mut EventStream, records: &mut Vec<Record>) {
    while records.len() < 1_000 {
        match timeout(TOGETHER, stream.next()).await {
            Ok(Ok(record)) => records.push(record),
            // An error is told again when it is asked again.
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

fn rows(tasks: &[Task]) -> Vec<Row> {
    tasks.iter().filter(|task| !task.forgotten).map(Row::from).collect()
}

/// In a few words, with the code.
pub(super) fn why(error: Error) -> String {
    let problem = error.into_problem();
    format!("{} ({})", problem.detail, problem.code)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use homing_api::Problem;
    use homing_client::fake::{Fake, Reply, sample_task};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_could_not_be_asked_for_is_asked_for_again() {
        let home = tempfile::tempdir().unwrap();
        let mut task = sample_task("running");
        let id = task["id"].as_str().unwrap().to_owned();
        task["name"] = "wanted".into();
        let event = serde_json::json!({ "seq": 1, "type": "task.started", "at": "2026-01-01T00:00:00Z", "task_id": id,
            "owner": "user", "data": {} });
        let told = format!("event: task.started\nid: 1\ndata: {event}\n\n");
        let (streams, asked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let _fake = Fake::serve(home.path(), move |request| {
            if request.is("GET", "/v1/events") {
                return match streams.fetch_add(1, Ordering::Relaxed) {
                    0 => Reply::stream([told.clone()]),
                    _ => Reply::silence(),
                };
            }
            match asked.fetch_add(1, Ordering::Relaxed) {
                0 => Reply::problem(&Problem::new(Code::Internal, "not now")),
                _ => Reply::json(200, task.to_string()),
            }
        });
        let (out, mut news) = Out::channel();
        let feeding = tokio::spawn(feed(Client::new(home.path(), "u"), out));
        let mut said = false;
        let row = loop {
            match news.recv().await.unwrap() {
                News::Now(Message::Row(row)) => break row,
                News::Now(Message::Say(text)) => said |= text.contains("not now"),
                _ => {}
            }
        };
        assert_eq!((row.id.as_str(), row.name.as_deref(), said), (id.as_str(), Some("wanted"), true));
        feeding.abort();
    }
}
