//! Judges a story: facts/reliability's H1 to H7, and what sessions, external tasks and watches add to them, each as a function that names
//! what breaks it.

mod external;
pub(super) mod telling;
mod watching;

use std::collections::{BTreeMap, BTreeSet};

use homing_model::transition::{self, Transition};
use homing_model::{Status, Verdict};

use super::story::{Book, Run, Story};

/// What is told of an end.
pub(super) const COMPLETED: &str = "task.completed";
/// Why a task may be lost: somebody killed its shim.
const LOST: [&str; 1] = ["supervisor killed"];

/// All violations, each with the number of what it breaks.
pub(crate) fn check(story: &Story) -> Vec<String> {
    let mut found = Vec::new();
    for (name, rule) in RULES {
        found.extend(rule(story).into_iter().map(|what| format!("{name}: {what}")));
    }
    found
}

/// A rule: what breaks it.
type Rule = fn(&Story) -> Vec<String>;

const RULES: [(&str, Rule); 10] = [
    ("H1", accepted_once),
    ("H2", states_follow_the_table),
    ("H3", outcomes_are_true),
    ("H4", streams_have_no_gap),
    ("H5", notices_arrive),
    ("H6", no_two_at_once),
    ("H7", every_byte),
    ("H8", telling::once_and_to_its_owner),
    ("H9", external::the_first_word_counts),
    ("H10", watching::counted_and_before_the_end),
];

/// Each acknowledged submit is there exactly once, under the id that was answered and for whom it was asked; each other at most once.
fn accepted_once(story: &Story) -> Vec<String> {
    let mut found = Vec::new();
    let mut books: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for book in &story.books {
        books.entry(book.number).or_default().push(&book.id);
    }
    for submit in &story.submits {
        let there = books.remove(&submit.number).unwrap_or_default();
        let answers: BTreeSet<&str> = submit.answers.iter().map(String::as_str).collect();
        if there.len() > 1 || answers.len() > 1 {
            found.push(format!("number {} is {there:?}, answered as {answers:?}", submit.number));
        } else if !answers.is_empty() && !answers.iter().eq(there.iter()) {
            found.push(format!("number {} was acknowledged as {answers:?} and is {there:?}", submit.number));
        }
    }
    found.extend(books.iter().map(|(number, ids)| format!("nobody asked for number {number}: {ids:?}")));
    let astray = story.books.iter().filter(|book| book.owner != book.plan.owner);
    found
        .extend(astray.map(|book| {
            format!("{} was submitted for {} and is {}'s", book.id, book.plan.owner, book.owner)
        }));
    found
}

/// Whether a task can get from one state to another, in however many steps.
fn leads_to(from: Status, to: Status) -> bool {
    use Transition::{Claimed, Ended, Paused, Resumed, Started, StopRequested};
    // Nobody retries here: a retry would let everything follow everything.
    let mut events = vec![Claimed, Started, StopRequested, Paused, Resumed];
    events.extend(Verdict::ALL.map(Ended));
    let (mut reached, mut next) = (BTreeSet::from([from.as_str()]), vec![from]);
    while let Some(status) = next.pop() {
        for after in events.iter().filter_map(|event| transition::next(status, *event).ok()) {
            if reached.insert(after.as_str()) {
                next.push(after);
            }
        }
    }
    reached.contains(to.as_str())
}

/// What each observer sees of a task is a path in the table; an end is the end, and the same to everybody.
fn states_follow_the_table(story: &Story) -> Vec<String> {
    let mut found = Vec::new();
    let ends: BTreeMap<&str, Status> =
        story.books.iter().map(|book| (book.id.as_str(), book.status)).collect();
    for (observer, sightings) in story.sightings.iter().enumerate() {
        let mut last: BTreeMap<&str, Status> = BTreeMap::new();
        for sighting in sightings {
            let (task, status) = (sighting.task.as_str(), sighting.status);
            if let Some(before) = last.insert(task, status).filter(|before| !leads_to(*before, status)) {
                found.push(format!("observer {observer} saw {task} {before} and then {status}"));
            }
            let end = ends.get(task).copied().filter(|end| status.is_terminal() && *end != status);
            if let Some(end) = end {
                found.push(format!("observer {observer} saw {task} end as {status}, and it is {end}"));
            }
        }
    }
    let open = story.books.iter().filter(|book| !book.status.is_terminal());
    found.extend(open.map(|book| format!("{} never ended: it is {}", book.id, book.status)));
    found
}

/// The outcome is what the task itself says, or `lost` for a reason that there was.
fn outcomes_are_true(story: &Story) -> Vec<String> {
    let mut found = Vec::new();
    let mut unbegun = 0;
    for book in story.books.iter().filter(|book| !book.plan.external) {
        let run = story.runs.get(&book.number).and_then(|runs| runs.last());
        found.extend(answer(book));
        match judge(story, book, run) {
            Ok(begun) => unbegun += u64::from(!begun),
            Err(why) => found.push(format!("{} (number {}) is {}: {why}", book.id, book.number, book.status)),
        }
    }
    if unbegun > story.killed.shims {
        found.push(format!("{unbegun} were lost before they began, and {} shims killed", story.killed.shims));
    }
    found
}

/// What is wrong with the answer of an agent: the last whole line that it said where it ended well, and else a word on why there is none.
fn answer(book: &Book) -> Option<String> {
    let (asked, state) = (book.plan.answer.as_deref()?, book.answer_state.as_deref().unwrap_or_default());
    let answer = book.answer.as_deref().unwrap_or_default();
    let sound = match book.status {
        Status::Succeeded => answer == asked && state == "ok",
        _ => answer.starts_with("(background task failed: ") && state == "failed",
    };
    (!sound).then(|| format!("{} is {} and answers {answer:?} ({state})", book.id, book.status))
}

/// Whether it began, or why its outcome is not true.
fn judge(story: &Story, book: &Book, run: Option<&Run>) -> Result<bool, String> {
    // Who was killed at once had no time to say who it was.
    let pid = run.map(|run| run.pid).or(book.pid);
    let pid_in = |killed: &BTreeSet<u32>| pid.is_some_and(|pid| killed.contains(&pid));
    match (book.status, book.exit_code, book.signal) {
        (Status::Succeeded | Status::Failed, Some(code), None) => {
            let said = run.and_then(|run| run.ended).map(|(_, code)| code);
            if said != Some(code)
                || book.plan.code != code
                || (code == 0) != (book.status == Status::Succeeded)
            {
                return Err(format!("code {code}, the task said {said:?} and was to say {}", book.plan.code));
            }
        }
        (Status::Failed, None, Some(9)) if pid_in(&story.killed.tasks) => {}
        (Status::Stopped, _, _) if story.stopped.contains(&book.id) => {}
        (Status::Lost, None, None) => {
            let reason = book.reason.as_deref().unwrap_or_default();
            if !LOST.contains(&reason) {
                return Err(format!("for no reason that there was: {reason:?}"));
            }
            if pid.is_some()
                && !pid_in(&story.killed.under_shims)
                && !story.killed.of_shims.contains(&book.id)
            {
                return Err("and nobody killed its shim".to_owned());
            }
            return Ok(pid.is_some());
        }
        (_, code, signal) => {
            return Err(format!("with code {code:?} and signal {signal:?}, which nobody caused"));
        }
    }
    Ok(true)
}

/// Who reads the events sees the log from the first of his to its end, each once, in order.
fn streams_have_no_gap(story: &Story) -> Vec<String> {
    let mut found = Vec::new();
    for (reader, seen) in story.streams.iter().enumerate() {
        let Some(first) = seen.first() else {
            let events = story.log.len();
            found.extend((events > 0).then(|| format!("reader {reader} saw none of {events} events")));
            continue;
        };
        let log = story.log.iter().filter(|id| *id >= first);
        if let Some((at, (got, want))) =
            seen.iter().zip(log.clone()).enumerate().find(|(_, (got, want))| got != want)
        {
            found.push(format!("reader {reader} saw {got} in place {at}, where the log has {want}"));
        } else if log.clone().count() != seen.len() {
            let (seen, has) = (seen.len(), log.count());
            found.push(format!(
                "reader {reader} saw {seen} events, and the log has {has} from there to its end"
            ));
        }
    }
    found
}

/// Every notice came to whom it was owed or is given up with its history; the same id is the same bytes; what was acknowledged is gone, and
/// nothing else.
fn notices_arrive(story: &Story) -> Vec<String> {
    let mut found = Vec::new();
    let mut bodies: BTreeMap<&str, u64> = BTreeMap::new();
    let mut came: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut ends: BTreeMap<&str, &str> = BTreeMap::new();
    let ended = story.notices.iter().filter(|(_, notice)| notice.about == COMPLETED);
    for (id, notice) in ended {
        if let Some(other) = ends.insert(&notice.task, id) {
            found.push(format!("{} ended twice, as {other} and as {id}", notice.task));
        }
    }
    for receipt in &story.receipts {
        if *bodies.entry(&receipt.notice).or_insert(receipt.hash) != receipt.hash {
            found.push(format!("{} came with other bytes", receipt.notice));
        }
        came.insert((&receipt.notice, &receipt.endpoint));
        let end = ends.get(receipt.task.as_str()).copied();
        if receipt.about == COMPLETED && end != Some(receipt.notice.as_str()) {
            found.push(format!("{} came as {}, and the log has {end:?}", receipt.task, receipt.notice));
        }
    }
    let owed: BTreeSet<(&str, &str)> =
        story.deliveries.iter().map(|row| (row.notice.as_str(), row.target.as_str())).collect();
    let unowed = came.iter().filter(|way| !owed.contains(*way));
    found.extend(unowed.map(|(id, endpoint)| format!("{id} came to {endpoint}, which was owed nothing")));
    let told: BTreeSet<&str> = story.tellings.iter().map(|telling| telling.notice.as_str()).collect();
    let known = |id: &str| {
        told.contains(id) || story.inbox.acknowledged.contains(id) || story.inbox.perhaps.contains(id)
    };
    for row in &story.deliveries {
        let wakes = row.target.starts_with("wake:");
        if story.notices.get(&row.notice).is_some_and(|notice| notice.task != row.task) {
            found.push(format!("{} is on its way as one of {}", row.notice, row.task));
        }
        let came = match row.target.as_str() {
            "exec" => story.told.contains(&row.notice),
            _ if wakes => known(&row.notice),
            endpoint => came.contains(&(row.notice.as_str(), endpoint)),
        };
        match row.state.as_str() {
            "delivered" if !came => found.push(format!("{} counts as delivered and never came", row.notice)),
            // A wake that a hook, a waiter or an acknowledgement made unnecessary.
            "superseded" if wakes => {
                found.extend((!came).then(|| format!("{} counts as known and never came", row.notice)));
            }
            "dead" if row.attempts == 0 => found.push(format!("{} is dead and was never tried", row.notice)),
            "delivered" | "dead" => {}
            other => found.push(format!("{} is {other} at the end", row.notice)),
        }
    }
    let mut of_tasks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    story.notices.iter().for_each(|(id, notice)| of_tasks.entry(&notice.task).or_default().push(id));
    for book in story.books.iter().filter(|book| book.status.is_terminal()) {
        let Some(end) = ends.get(book.id.as_str()) else {
            found.push(format!("{} has ended, and the log has no notice of it", book.id));
            continue;
        };
        let targets = [&book.plan.webhook, &book.plan.wake];
        for target in targets.into_iter().filter_map(Option::as_deref).chain(book.plan.hook.then_some("exec"))
        {
            if !owed.contains(&(end, target)) {
                found.push(format!("{} owes {target} a notice that is nowhere", book.id));
            }
        }
        for id in of_tasks.get(book.id.as_str()).into_iter().flatten().copied() {
            let (left, gone) = (story.inbox.left.contains(id), story.inbox.acknowledged.contains(id));
            if left && gone {
                found.push(format!("{id} of {} was acknowledged and is in the inbox", book.id));
            } else if !left && !known(id) {
                found.push(format!(
                    "{id} of {} is in no inbox, and nobody acknowledged it or was told",
                    book.id
                ));
            }
        }
    }
    found
}

/// No attempt was begun twice, and none while another of the task ran.
fn no_two_at_once(story: &Story) -> Vec<String> {
    let mut found = Vec::new();
    for (number, runs) in &story.runs {
        let attempts: BTreeSet<u32> = runs.iter().map(|run| run.attempt).collect();
        if attempts.len() < runs.len() {
            found.push(format!("number {number} ran {} times in {} attempts", runs.len(), attempts.len()));
        }
        let mut runs = runs.clone();
        runs.sort_by_key(|run| run.began);
        for pair in runs.windows(2) {
            if pair[0].ended.is_none_or(|(at, _)| at > pair[1].began) {
                found.push(format!("number {number} ran twice at once"));
            }
        }
    }
    found
}

/// What homing gives back is what was printed: all of it where the task ended by itself, and nothing else where it did not.
fn every_byte(story: &Story) -> Vec<String> {
    let mut found = Vec::new();
    for book in &story.books {
        let (read, printed) = (&book.output, &book.plan.prints);
        let sound = match (book.status, book.exit_code) {
            (Status::Succeeded | Status::Failed, Some(_)) => read == printed,
            // A shell may say a word of its own when a signal ends what it runs.
            (Status::Stopped, _) => true,
            _ => printed.starts_with(read),
        };
        if !sound {
            found.push(format!("{} gives back {} bytes for {} printed", book.id, read.len(), printed.len()));
        }
    }
    found
}

#[cfg(test)]
pub(super) mod tests;
