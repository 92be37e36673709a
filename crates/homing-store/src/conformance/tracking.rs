//! Somebody else's work: heard of, completed, stopped.

use homing_model::notice::Body;
use homing_model::notify::When;
use homing_model::reservation::Access;
use homing_model::{
    Answer, AnswerState, Ending, EventKind, Kind, Outcome, Progress, Reference, Status, Verdict,
};

use super::fixture::{
    Ledger, at, create, done, ending, finish, first, get, id, named, rejected, submit, telling,
};
use crate::outbox::Report;
use crate::record::Tracking;
use crate::store::{Applied, EventFilter, Found, Submit};

/// The `n`th task, run by somebody else.
fn external(n: u64, tracking: Tracking) -> Submit {
    let mut submit = telling(n, When::Always, &[]);
    submit.task.spec.argv.clear();
    submit.task.spec.kind = Kind::External;
    submit.task.kind = Kind::External;
    submit.task.tracking = Some(tracking);
    submit
}

/// What somebody says who completes it.
fn completion(verdict: Verdict, millis: i64) -> Ending {
    Ending { outcome: Outcome::default(), verdict, pid: None, started_at: None, ..ending(millis, 0) }
}

fn told(answer: &str) -> Report {
    Report { answer: Some(answer.to_owned()), ..Report::default() }
}

/// It is not ours to start; who runs it is heard, by heartbeat or by progress, until the end.
pub async fn an_external_task_runs_from_the_start_and_is_heard_until_it_ends(store: Ledger) {
    let lease = Tracking::Lease { ms: 500 };
    let process = Tracking::Process { pid: 77, start: 123_456 };
    let leased = create(&store, external(1, lease), 5).await;
    let watched = create(&store, external(2, process), 5).await;
    for (record, tracking, pid) in [(&leased, lease, None), (&watched, process, Some(77))] {
        assert_eq!((record.status, record.started_at), (Status::Running, Some(at(5))));
        assert_eq!((record.tracking, record.pid, record.heard_at), (Some(tracking), pid, Some(at(5))));
    }
    assert_eq!((get(&store, 1).await, get(&store, 2).await), (leased, watched));
    let log = store.events(0, EventFilter::default(), 9).await.expect("readable").events;
    let kinds: Vec<_> = log.iter().map(|event| event.kind).collect();
    let both = [EventKind::TaskQueued, EventKind::TaskStarted];
    assert_eq!(kinds, [both, both].concat());

    assert_eq!(done(store.heard(id(1), at(9)).await.expect("heard")).heard_at, Some(at(9)));
    assert_eq!(get(&store, 1).await.heard_at, Some(at(9)));
    let progress = Progress { percent: Some(1.0), text: None, at: at(11) };
    done(store.progress(id(1), progress).await.expect("noted"));
    assert_eq!(get(&store, 1).await.heard_at, Some(at(11)));

    done(store.finish(first(1), completion(Verdict::Succeeded, 12), told("x")).await.expect("ended"));
    assert_eq!(rejected(store.heard(id(1), at(13)).await.expect("answered")).heard_at, Some(at(11)));
    create(&store, submit(3), 5).await;
    rejected(store.heard(id(3), at(6)).await.expect("answered"));
    assert_eq!(store.heard(id(9), at(6)).await, Ok(Applied::Unknown));
}

/// Whoever comes second is told how it ended, and changes nothing.
pub async fn p1_the_first_completion_of_an_external_task_wins(store: Ledger) {
    create(&store, external(1, Tracking::Lease { ms: 1 }), 0).await;
    let rivals: Vec<_> = (0..50)
        .map(|n| {
            store.finish(first(1), completion(Verdict::Succeeded, i64::from(n)), told(&format!("answer {n}")))
        })
        .collect();
    let (mut won, mut lost) = (Vec::new(), Vec::new());
    for rival in rivals {
        match rival.await.expect("answered") {
            Applied::Done(record) => won.push(record),
            Applied::Rejected(record) => lost.push(record),
            Applied::Unknown => panic!("the task exists"),
        }
    }
    let [winner] = won.as_slice() else { panic!("{} of them won", won.len()) };
    assert!(lost.len() == 49 && lost.iter().all(|record| record == winner));
    let late = completion(Verdict::Lost, 99);
    assert_eq!(
        rejected(store.finish(first(1), late, Report::default()).await.expect("answered")),
        *winner,
        "a missed lease neither"
    );
}

/// In the record and in the notice alike.
pub async fn p5_an_external_end_carries_its_answer_or_the_words_for_none(store: Ledger) {
    let cases = [
        (Verdict::Succeeded, Some("42"), "42", AnswerState::Ok),
        (Verdict::Succeeded, None, "(no answer produced)", AnswerState::None),
        (Verdict::Failed, Some("no disk"), "(background task failed: no disk)", AnswerState::Failed),
        (Verdict::Lost, None, "(background task failed: silence)", AnswerState::Failed),
    ];
    for (n, (verdict, given, text, state)) in (1_u64..).zip(cases) {
        create(&store, external(n, Tracking::Lease { ms: 1 }), 0).await;
        let mut end = completion(verdict, 1);
        end.outcome.reason = (verdict == Verdict::Lost).then(|| "silence".to_owned());
        let report = Report { entropy: n, answer: given.map(str::to_owned), ..Report::default() };
        let record = done(store.finish(first(n), end, report).await.expect("ended"));
        assert_eq!(record.answer, Some(Answer { text: text.to_owned(), state }));
        assert_eq!(get(&store, n).await, record);
        let inbox = store.peek("ann".into(), 9, Access::Look, at(1)).await.expect("readable").notices;
        let Some(Body::Completed(completed)) = inbox.into_iter().last().map(|notice| notice.body) else {
            panic!("a completion waits")
        };
        assert_eq!(completed.answer.as_deref(), Some(text));
    }
    let tombstone = done(store.forget(id(1), at(2)).await.expect("forgotten"));
    assert_eq!((tombstone.kind, tombstone.answer), (Kind::External, None));
    create(&store, submit(9), 0).await;
    assert_eq!(finish(&store, 9, 1, 0).await.answer, None, "a command has none");
}

/// There is nothing to wait for.
pub async fn a_stop_ends_an_external_task_at_once(store: Ledger) {
    create(&store, external(1, Tracking::Lease { ms: 1 }), 0).await;
    let record = done(store.stop_requested(id(1), "bob".into(), 1, None, at(3)).await.expect("stopped"));
    assert_eq!(
        (record.status, record.ended_at, record.started_at),
        (Status::Stopped, Some(at(3)), Some(at(0)))
    );
    assert_eq!(record.outcome.as_ref().and_then(|outcome| outcome.stopped_by.as_deref()), Some("bob"));
    assert_eq!(record.answer.as_ref().map(|answer| answer.state), Some(AnswerState::Failed));
    assert_eq!(get(&store, 1).await, record);
    assert_eq!(
        rejected(store.stop_requested(id(1), "ann".into(), 1, None, at(4)).await.expect("answered")),
        record
    );
    assert_eq!(store.peek("ann".into(), 9, Access::Look, at(3)).await.expect("readable").notices.len(), 1);
}

/// By id, by name, by the start of an id: as if it were not there.
pub async fn what_others_have_is_not_found_among_ones_own(store: Ledger) {
    let mut foreign = named(1, "build");
    foreign.task.owner = "bob".into();
    create(&store, foreign, 0).await;
    let find = |text: &str| store.find_own(Reference::parse(text), "ann".into());
    let whole = id(1).to_string();
    for text in [whole.as_str(), "build", &whole[..6]] {
        assert_eq!(find(text).await, Ok(Found::None), "{text}");
    }
    create(&store, named(2, "build"), 0).await;
    for text in [id(2).as_str(), "build", "@last"] {
        assert_eq!(find(text).await, Ok(Found::One(id(2))), "{text}");
    }
    finish(&store, 2, 1, 0).await;
    assert_eq!(find("build").await, Ok(Found::One(id(2))), "another's live one does not hide it");
}
