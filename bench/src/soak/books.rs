//! The end of a soak: everything settles, and what there is to know is collected.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use homing_model::Status;
use homing_testkit::drift;
use serde_json::{Value, json};

use super::field::Field;
use super::load::{self, OWNERS, Script};
use super::story::{Book, Delivery, Notice};
use super::{heard, readers, sessions};

/// How long everything may take to settle.
const PATIENCE: Duration = Duration::from_secs(240);

/// Waits for the end of all tasks and deliveries. Nothing is killed any more, and every receiver is well.
pub(crate) fn settle(field: &Field) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    for look in 0.. {
        // Whoever waits for its schedule goes now. Not at every look: it begins anew what is under way.
        if look % 12 == 0 {
            readers::redeliver(field);
        }
        if look % 4 == 1 {
            field.sessions.numbers().for_each(|session| sessions::last_turn(field, session, look));
        }
        // The command line starts a daemon if there is none.
        let status = field.home.cli(["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        let open = |pointer: &str| status.pointer(pointer).and_then(Value::as_u64).unwrap_or(1);
        let left = open("/tasks/queued") + open("/tasks/running") + open("/deliveries/pending");
        if left == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            // What there is to know is judged all the same.
            field.story().unsettled = Some(format!("it does not settle: {status}"));
            return Ok(());
        }
        drift(Duration::from_millis(200));
    }
    Ok(())
}

/// Marks the last event that every reader must see, and makes later ones, so that nobody waits in vain.
pub(crate) fn mark_last_event(field: &Field) -> Result<()> {
    let log = field.ask_with("GET", "/v1/events?after=0&follow=false", &[], None).context("the log")?;
    let events = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events: Vec<Value> =
        events.map(serde_json::from_slice).collect::<Result<_, _>>().context("an event")?;
    let seqs = events.iter().map(|event| event["seq"].as_u64().context("its place"));
    let seqs = seqs.collect::<Result<Vec<_>>>()?;
    let last = *seqs.last().context("an event")?;
    {
        let mut story = field.story();
        story.log = seqs;
        story.notices = events.iter().filter_map(notice).collect();
    }
    field.last_event.store(last, Ordering::Relaxed);
    for _ in 0..2 {
        let _ =
            field.home.cli(["run", "--wait", "--notify-on", "never", "--label", "number=none", "--", "true"]);
    }
    Ok(())
}

/// What an event tells of, if that is a notice.
fn notice(event: &Value) -> Option<(String, Notice)> {
    let data = &event["data"];
    let id = data["id"].as_str().filter(|id| id.starts_with("n-"))?;
    let said = data["new_output"].as_str().or_else(|| data["line"].as_str()).unwrap_or_default();
    let notice = Notice {
        task: text(&data["task"]["id"]),
        owner: text(&data["task"]["owner"]),
        about: text(&event["type"]),
        seq: event["seq"].as_u64()?,
        held_back: data["held_back"].as_u64().unwrap_or(0),
        text: said.to_owned(),
    };
    Some((id.to_owned(), notice))
}

/// Puts the ledger's side into the story.
pub(crate) fn collect(field: &Field) -> Result<()> {
    let books = books(field)?;
    let numbers = std::fs::read_dir(&field.truth)?.flatten();
    let numbers: Vec<u64> = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let runs = numbers.iter().map(|number| (*number, load::runs(&field.truth, *number))).collect();
    let nested: Vec<_> = numbers.iter().filter_map(|number| load::nested(&field.truth, *number)).collect();
    let heard = {
        let story = field.story();
        heard::all(field, &heard::ends(&story.notices))?
    };
    let deliveries = field.all("/v1/deliveries").context("the deliveries")?;
    let (left, astray) = left(field)?;
    let told = told(field)?;
    let receipts = field.receivers.receipts();
    let mut story = field.story();
    // A tool call that was killed, or lost its daemon, may have been answered all the same, and nobody heard it.
    let unheard: BTreeSet<String> = {
        let numbers: BTreeSet<u64> = heard.unheard.into_iter().collect();
        let tasks: BTreeSet<&str> =
            books.iter().filter(|book| numbers.contains(&book.number)).map(|book| book.id.as_str()).collect();
        let of = story.notices.iter().filter(|(_, notice)| tasks.contains(notice.task.as_str()));
        of.map(|(id, _)| id.clone()).collect()
    };
    story.inbox.perhaps.extend(unheard);
    story.inbox.astray.extend(astray);
    story.tellings = heard.tellings;
    story.submits.extend(nested);
    story.books = books;
    story.runs = runs;
    story.deliveries = deliveries.iter().map(delivery).collect();
    story.inbox.left = left;
    story.told = told;
    story.receipts = receipts;
    let last = field.last_event.load(Ordering::Relaxed);
    story.streams.iter_mut().for_each(|seen| seen.retain(|id| *id <= last));
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn books(field: &Field) -> Result<Vec<Book>> {
    let mut books = Vec::new();
    for task in field.all("/v1/tasks").context("the tasks")? {
        let by_name = text(&task["name"]).trim_start_matches("number-").to_owned();
        let number = text(&task["labels"]["number"]).parse().or_else(|_| by_name.parse());
        let Ok(number) = number else { continue };
        let id = text(&task["id"]);
        let target = format!("/v1/tasks/{id}/output?offset=0&limit=1048576");
        let status = Status::ALL.into_iter().find(|status| task["status"] == status.as_str());
        let plan = Script::of(number).plan(field);
        let output = if plan.external {
            Vec::new()
        } else {
            field.ask_with("GET", &target, &[], None).with_context(|| format!("output of {id}"))?
        };
        books.push(Book {
            number,
            owner: text(&task["owner"]),
            answer: task["answer"].as_str().map(str::to_owned),
            answer_state: task["answer_state"].as_str().map(str::to_owned),
            pid: task["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()),
            status: status.with_context(|| format!("a state: {task}"))?,
            exit_code: task["outcome"]["exit_code"].as_u64(),
            signal: task["outcome"]["signal"].as_u64(),
            reason: task["outcome"]["reason"].as_str().map(str::to_owned),
            output,
            plan,
            id,
        });
    }
    Ok(books)
}

fn delivery(row: &Value) -> Delivery {
    let target = text(&row["target"]);
    Delivery {
        task: text(&row["task_id"]),
        notice: text(&row["notice_id"]),
        target: if target.starts_with("exec:") { "exec".to_owned() } else { target },
        state: text(&row["state"]),
        attempts: row["history"].as_array().map_or(0, Vec::len),
        results: row["history"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|tried| format!("{}: {}", text(&tried["at"]), text(&tried["result"])))
            .collect(),
        reason: text(&row["reason"]),
    }
}

/// What is still in the inboxes, and what of it is in the wrong one: taken, so that a look of a limited length sees all of it.
fn left(field: &Field) -> Result<(BTreeSet<String>, Vec<String>)> {
    let (mut left, mut astray) = (BTreeSet::new(), Vec::new());
    let sessions = field.sessions.numbers().map(|session| field.sessions.owner(session));
    for owner in OWNERS.into_iter().chain(sessions) {
        loop {
            let body = json!({ "max": 1_000, "lease_ms": 3_600_000, "wait_ms": 1_000 });
            let taken = field.ask("POST", &format!("/v1/inbox/{owner}/take"), Some(&body));
            let taken = taken.with_context(|| format!("the inbox of {owner}"))?;
            let items = taken["items"].as_array().cloned().unwrap_or_default();
            if items.is_empty() {
                break;
            }
            let others = items.iter().filter(|item| item["task"]["owner"] != owner);
            astray.extend(others.map(|item| format!("{owner} has {}", item["id"])));
            left.extend(items.iter().map(|item| text(&item["id"])));
        }
    }
    Ok((left, astray))
}

/// Notices that the command kept.
fn told(field: &Field) -> Result<BTreeSet<String>> {
    let mut told = BTreeSet::new();
    for entry in std::fs::read_dir(&field.told)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("told.") {
            let given: Value =
                serde_json::from_slice(&std::fs::read(entry.path())?).context("what a hook was given")?;
            told.extend(given["notices"].as_array().into_iter().flatten().map(|notice| text(&notice["id"])));
        }
    }
    Ok(told)
}
