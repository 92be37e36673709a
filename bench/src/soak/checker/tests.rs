//! Doctored histories: each rule notices what breaks it, and a sound story breaks none.

use super::super::story::{Came, Delivery, Mark, Notice, Plan, Receipt, Sighting, Submit, Telling};
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
        results: Vec::new(),
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
    assert!(found.iter().all(|what| what.starts_with(&format!("{rule}: "))), "{rule} was meant: {found:?}");
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
                results: Vec::new(),
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
        results: Vec::new(),
        reason: reason.into(),
    };
    let unheard = |story: &mut Story, row: Delivery| {
        story.deliveries.push(row);
        story.inbox.acknowledged.clear();
        story.inbox.left.insert("n".into());
    };
    breaks("H5", |story| unheard(story, wake("delivered", "", 1)));
    breaks("H5", |story| unheard(story, wake("superseded", homing_model::wake::TOLD, 0)));
    breaks("H5", |story| unheard(story, wake("dead", "", 0)));
    breaks("H5", |story| unheard(story, wake("pending", "", 0)));
    breaks("H5", |story| story.books[0].plan.wake = Some("wake:codex:c1".into()));
    let mut known = sound();
    known.deliveries.push(wake("superseded", homing_model::wake::TOLD, 0));
    assert_eq!(check(&known), Vec::<String>::new());
    let mut heard = sound();
    unheard(&mut heard, wake("delivered", "", 1));
    heard.inbox.left.clear();
    heard.tellings.push(Telling {
        notice: "n".into(),
        owner: "ann".into(),
        life: None,
        at: 1,
        came: Came::HandedOver,
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
