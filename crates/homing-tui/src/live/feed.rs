//! The tasks, by the events of the daemon.
//!
//! An event only says that a task changed; how it is now is asked. So what is shown is never older than the last event, in whatever order answers come: one is
//! asked after the other. The stream begins with a cursor that no log has, which is answered with all tasks and the cursor to go on from, read in one moment.

use std::collections::BTreeSet;
use std::time::Duration;

use homing_client::{Client, Error, EventQuery, EventStream, ListQuery, Record};
use homing_model::{Code, Event, EventKind, Kind, Task};
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
    let mut cursor = BEGINNING;
    while let Ok(()) = follow(&client, &out, &mut cursor).await {
        sleep(AGAIN).await;
    }
}

/// Until the stream cannot go on by itself.
async fn follow(client: &Client, out: &Out, cursor: &mut u64) -> Result<(), Over> {
    let query = EventQuery { after: *cursor, owner: None, kinds: Vec::new() };
    let mut stream = client.follow_events(query);
    let mut standing = stream.standing();
    loop {
        let first = tokio::select! {
            record = stream.next() => record,
            Ok(()) = standing.changed() => {
                let link = match *standing.borrow_and_update() {
                    // How it is comes with what is told next, or it was all told before.
                    true if *cursor == BEGINNING => Link::Connecting,
                    true => Link::Live,
                    false => Link::Lost("reconnecting".to_owned()),
                };
                out.now(Message::Link(link)).await?;
                continue;
            }
        };
        let mut records = Vec::new();
        match first {
            Ok(record) => records.push(record),
            Err(error) => return out.now(Message::Link(Link::Lost(why(error)))).await,
        }
        drain(&mut stream, &mut records).await;
        take_in(client, out, cursor, records).await?;
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

async fn take_in(client: &Client, out: &Out, cursor: &mut u64, records: Vec<Record>) -> Result<(), Over> {
    let (mut changed, mut touched) = (BTreeSet::new(), BTreeSet::new());
    for record in records {
        match &record {
            Record::Event { seq, .. } => {
                *cursor = *seq;
                // One that this release does not know may still be about a task; the next event of that task brings it.
                let Ok(Some(event)) = record.event() else { continue };
                let Event { kind, task_id: Some(id), .. } = event else { continue };
                touched.insert(id.to_string());
                if !matches!(kind, EventKind::DeliveryDelivered | EventKind::DeliveryDead) {
                    changed.insert(id.to_string());
                }
            }
            Record::Reset { seq, .. } => {
                *cursor = *seq;
                changed.clear();
                if let Ok(Some(reset)) = record.reset() {
                    out.now(Message::Rows(rows(&reset.tasks.items))).await?;
                    out.now(Message::Link(Link::Live)).await?;
                    touched.extend(reset.tasks.items.iter().map(|task| task.id.to_string()));
                }
            }
        }
    }
    if let Err(error) = ask(client, out, changed).await? {
        out.say(why(error)).await?;
    }
    out.send(News::Changed(touched.into_iter().collect())).await
}

/// How the tasks that changed are now.
async fn ask(client: &Client, out: &Out, mut changed: BTreeSet<String>) -> Result<Result<(), Error>, Over> {
    if changed.len() > ONE_BY_ONE {
        let query = ListQuery { limit: Some(PAGE), ..ListQuery::default() };
        match client.list(&query).await {
            Ok(page) => {
                for task in page.items.iter().filter(|task| changed.remove(task.id.as_str())) {
                    out.now(Message::Row(Box::new(Row::from(task)))).await?;
                }
            }
            Err(error) => return Ok(Err(error)),
        }
    }
    for id in changed {
        match client.task(&id).await {
            Ok(task) if task.kind == Kind::Hook => {}
            Ok(task) if task.forgotten => out.now(Message::Gone(id)).await?,
            Ok(task) => out.now(Message::Row(Box::new(Row::from(&task)))).await?,
            Err(error) if error.code() == Some(Code::UnknownTask) => out.now(Message::Gone(id)).await?,
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(()))
}

fn rows(tasks: &[Task]) -> Vec<Row> {
    tasks.iter().filter(|task| !task.forgotten).map(Row::from).collect()
}

/// In a few words, with the code.
pub(super) fn why(error: Error) -> String {
    let problem = error.into_problem();
    format!("{} ({})", problem.detail, problem.code)
}
