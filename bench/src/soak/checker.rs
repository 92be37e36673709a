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
            // Nobody is woken with what the session has.
            "dead" if wakes && row.reason == homing_model::wake::TOLD => {
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
pub(super) mod tests {
    use super::super::story::{Delivery, Mark, Notice, Plan, Receipt, Sighting, Submit, Telling};
    use super::*;

    const HOOK: &str = "http://127.0.0.1:1";

    /// One task that ended well, told its end to everybody, and whose entry was acknowledged.
    pub(in super::super) fn sound() -> Story {
        let plan = Plan {
            code: 3,
            prints: b"out".to_vec(),
            webhook: Some(HOOK.to_owned()),
            hook: true,
            owner: "ann".into(),
            ..Plan::default()
        };
        let book = Book {
            id: "t".into(),
            number: 1,
            owner: "ann".into(),
            answer: None,
            answer_state: None,
            pid: Some(50),
            status: Status::Failed,
            exit_code: Some(3),
            signal: None,
            reason: None,
            output: b"out".to_vec(),
            plan,
        };
        let seen = |status| Sighting { task: "t".into(), status };
        let row = |target: &str| Delivery {
            task: "t".into(),
            notice: "n".into(),
            target: target.into(),
            state: "delivered".into(),
            attempts: 1,
            reason: String::new(),
        };
        let receipt = Receipt {
            endpoint: HOOK.into(),
            notice: "n".into(),
            task: "t".into(),
            about: COMPLETED.into(),
            hash: 7,
        };
        let mut story = Story {
            submits: vec![Submit { number: 1, answers: vec!["t".into(), "t".into()] }],
            books: vec![book],
            runs: BTreeMap::from([(1, vec![Run { attempt: 1, pid: 50, began: 10, ended: Some((20, 3)) }])]),
            sightings: vec![vec![seen(Status::Queued), seen(Status::Running), seen(Status::Failed)]],
            streams: vec![vec![2, 4, 5, 9], vec![1, 2, 4, 5, 9]],
            log: vec![1, 2, 4, 5, 9],
            deliveries: vec![row(HOOK), row("exec")],
            receipts: vec![receipt.clone(), receipt],
            told: BTreeSet::from(["n".to_owned()]),
            notices: BTreeMap::from([("n".to_owned(), notice("t", COMPLETED, 5))]),
            ..Story::default()
        };
        story.inbox.acknowledged.insert("n".into());
        story
    }

    pub(in super::super) fn notice(task: &str, about: &str, seq: u64) -> Notice {
        Notice {
            task: task.into(),
            owner: "ann".into(),
            about: about.into(),
            seq,
            held_back: 0,
            text: String::new(),
        }
    }

    /// The doctored story breaks this rule and no other.
    pub(in super::super) fn breaks(rule: &str, doctor: impl FnOnce(&mut Story)) {
        let mut story = sound();
        doctor(&mut story);
        let found = check(&story);
        assert!(!found.is_empty(), "{rule} did not notice");
        assert!(
            found.iter().all(|what| what.starts_with(&format!("{rule}: "))),
            "{rule} was meant: {found:?}"
        );
    }

    fn lost(story: &mut Story) {
        let book = &mut story.books[0];
        (book.status, book.exit_code, book.reason) = (Status::Lost, None, Some("supervisor killed".into()));
        story.sightings.clear();
    }

    #[test]
    fn a_sound_story_breaks_nothing() {
        assert_eq!(check(&sound()), Vec::<String>::new());
    }

    #[test]
    fn h1_an_acknowledged_task_that_is_gone_doubled_or_another_is_noticed() {
        breaks("H1", |story| story.submits[0].answers = vec!["other".into()]);
        breaks("H1", |story| story.submits[0].answers.push("other".into()));
        breaks("H1", |story| story.submits.clear());
        breaks("H1", |story| story.books[0].owner = "bob".into());
        breaks("H1", |story| story.submits.push(Submit { number: 2, answers: vec!["gone".into()] }));
        breaks("H1", |story| {
            let twin = Book { id: "twin".into(), ..story.books[0].clone() };
            story.books.push(twin);
            story.notices.insert("m".into(), notice("twin", COMPLETED, 6));
            story.inbox.acknowledged.insert("m".into());
            for target in [HOOK, "exec"] {
                let row = Delivery {
                    task: "twin".into(),
                    notice: "m".into(),
                    target: target.into(),
                    state: "dead".into(),
                    attempts: 1,
                    reason: String::new(),
                };
                story.deliveries.push(row);
            }
        });
        let mut unanswered = sound();
        unanswered.submits[0].answers.clear();
        assert_eq!(check(&unanswered), Vec::<String>::new(), "accepted, and the answer did not come");
    }

    #[test]
    fn h2_a_state_that_cannot_follow_and_an_end_that_changes_are_noticed() {
        breaks("H2", |story| story.sightings[0].swap(0, 1));
        breaks("H2", |story| story.sightings[0][2].status = Status::Succeeded);
        breaks("H2", |story| story.sightings[0].swap(1, 2));
        let mut unended = sound();
        unended.books[0].status = Status::Running;
        assert!(check(&unended).iter().any(|what| what.starts_with("H2") && what.contains("never ended")));
    }

    #[test]
    fn h3_an_outcome_that_is_made_up_is_noticed() {
        breaks("H3", |story| story.books[0].exit_code = Some(4));
        breaks("H3", |story| {
            story.runs.entry(1).or_default()[0].ended = Some((20, 4));
        });
        breaks("H3", |story| (story.books[0].exit_code, story.books[0].signal) = (None, Some(9)));
        breaks("H3", lost);
        breaks("H3", |story| {
            lost(story);
            story.runs.clear();
            story.books[0].pid = None;
        });
        breaks("H3", |story| {
            story.books[0].pid = Some(51);
            (story.books[0].exit_code, story.books[0].signal) = (None, Some(9));
            story.killed.tasks.insert(51);
        });
        breaks("H3", |story| {
            lost(story);
            story.killed.under_shims.insert(50);
            story.books[0].reason = Some("it looked gone".into());
        });
        let mut true_loss = sound();
        lost(&mut true_loss);
        true_loss.killed.under_shims.insert(50);
        assert_eq!(check(&true_loss), Vec::<String>::new());
        breaks("H3", |story| {
            story.books[0].status = Status::Stopped;
            story.sightings.clear();
        });
    }

    #[test]
    fn h4_a_gap_a_repetition_and_a_wrong_order_are_noticed() {
        breaks("H4", |story| story.streams[0] = vec![2, 5, 9]);
        breaks("H4", |story| story.streams[0] = vec![2, 4, 4, 5, 9]);
        breaks("H4", |story| story.streams[0] = vec![4, 2, 5, 9]);
        breaks("H4", |story| story.streams[0] = vec![2, 3, 4, 5, 9]);
    }

    #[test]
    fn h4_a_missed_end_of_the_log_and_a_reader_who_saw_nothing_are_noticed() {
        breaks("H4", |story| story.streams[0] = vec![2, 4, 5]);
        breaks("H4", |story| story.streams[1] = Vec::new());
    }

    #[test]
    fn h5_a_notice_that_is_lost_doubled_or_changed_is_noticed() {
        breaks("H5", |story| story.receipts.clear());
        breaks("H5", |story| story.told.clear());
        breaks("H5", |story| {
            (story.deliveries[0].state, story.deliveries[0].attempts) = ("dead".into(), 0);
        });
        breaks("H5", |story| story.receipts[1].task = "stranger".into());
        breaks("H5", |story| story.receipts[1].hash = 8);
        breaks("H5", |story| story.receipts[1].notice = "other".into());
        breaks("H5", |story| story.deliveries[0].state = "pending".into());
        breaks("H5", |story| drop(story.deliveries.remove(0)));
        breaks("H5", |story| drop(story.deliveries.remove(1)));
        breaks("H5", |story| story.inbox.acknowledged.clear());
        breaks("H5", |story| story.inbox.left.extend(["n".into()]));
        breaks("H5", |story| story.notices.clear());
        breaks("H5", |story| story.deliveries[0].task = "other".into());
        breaks("H5", |story| drop(story.notices.insert("m".into(), notice("t", COMPLETED, 6))));
    }

    #[test]
    fn h5_a_wake_that_counts_as_delivered_or_known_and_never_came_is_noticed() {
        let wake = |state: &str, reason: &str, attempts| Delivery {
            task: "t".into(),
            notice: "n".into(),
            target: "wake:codex:c1".into(),
            state: state.into(),
            attempts,
            reason: reason.into(),
        };
        let unheard = |story: &mut Story, row: Delivery| {
            story.deliveries.push(row);
            story.inbox.acknowledged.clear();
            story.inbox.left.insert("n".into());
        };
        breaks("H5", |story| unheard(story, wake("delivered", "", 1)));
        breaks("H5", |story| unheard(story, wake("dead", homing_model::wake::TOLD, 0)));
        breaks("H5", |story| unheard(story, wake("dead", "", 0)));
        breaks("H5", |story| unheard(story, wake("pending", "", 0)));
        breaks("H5", |story| story.books[0].plan.wake = Some("wake:codex:c1".into()));
        let mut known = sound();
        known.deliveries.push(wake("dead", homing_model::wake::TOLD, 0));
        assert_eq!(check(&known), Vec::<String>::new());
        let mut heard = sound();
        unheard(&mut heard, wake("delivered", "", 1));
        heard.inbox.left.clear();
        heard.tellings.push(Telling {
            notice: "n".into(),
            owner: "ann".into(),
            life: None,
            at: 1,
            mark: Mark::Shim,
            by: Vec::new(),
        });
        assert_eq!(check(&heard), Vec::<String>::new());
    }

    #[test]
    fn h3_an_answer_that_is_made_up_or_missing_is_noticed() {
        let asked = |status, answer: &str, state: &str| {
            let (answer, state) = (answer.to_owned(), state.to_owned());
            move |story: &mut Story| {
                let code = u64::from(status == Status::Failed) * 3;
                let book = &mut story.books[0];
                (book.status, book.exit_code, book.plan.code) = (status, Some(code), code);
                book.plan.answer = Some("whole".into());
                (book.answer, book.answer_state) = (Some(answer), Some(state));
                story.sightings.clear();
                story.runs.entry(1).or_default()[0].ended = Some((20, code));
            }
        };
        breaks("H3", asked(Status::Succeeded, "hal", "ok"));
        breaks("H3", asked(Status::Succeeded, "whole", "none"));
        breaks("H3", asked(Status::Failed, "whole", "ok"));
        breaks("H3", asked(Status::Failed, "(background task failed: x)", "ok"));
        for (status, answer, state) in
            [(Status::Succeeded, "whole", "ok"), (Status::Failed, "(background task failed: x)", "failed")]
        {
            let mut story = sound();
            asked(status, answer, state)(&mut story);
            assert_eq!(check(&story), Vec::<String>::new());
        }
    }

    #[test]
    fn h6_two_runs_at_once_and_an_attempt_that_ran_twice_are_noticed() {
        let again = |attempt, began| Run { attempt, pid: 51, began, ended: Some((40, 3)) };
        breaks("H6", |story| story.runs.entry(1).or_default().push(again(1, 30)));
        breaks("H6", |story| story.runs.entry(1).or_default().push(again(2, 15)));
        let mut retried = sound();
        retried.runs.entry(1).or_default().push(again(2, 30));
        assert_eq!(check(&retried), Vec::<String>::new());
    }

    #[test]
    fn h7_a_byte_that_is_missing_added_or_changed_is_noticed() {
        for output in ["ou", "out!", "oud"] {
            breaks("H7", |story| story.books[0].output = output.into());
        }
        breaks("H7", |story| {
            lost(story);
            story.killed.under_shims.insert(50);
            story.books[0].output = b"ut".to_vec();
        });
    }
}
