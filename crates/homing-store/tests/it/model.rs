//! Random histories, against a map that says what should be.

use homing_store::outbox::Report;
use homing_store::store::{EventLog, Queue, Tasks, Upkeep};
use std::collections::HashMap;

use homing_model::{Attempt, Ending, OnDuplicate, Status, TaskId, Transition, Verdict, transition};
use homing_store::Record;
use homing_store::conformance::fixture::{at, ending, id, keyed, submit};
use homing_store::record::Started;
use homing_store::store::{Applied, EventFilter, Submitted};
use proptest::prelude::*;

use crate::home::Home;

#[derive(Debug, Clone)]
enum Step {
    Submit { n: u64, key: Option<u8>, refuse: bool },
    Start { n: u64, attempt: u32 },
    Pause { n: u64, attempt: u32 },
    Resume { n: u64, attempt: u32 },
    Stop { n: u64 },
    Finish { n: u64, attempt: u32, verdict: usize, bytes: u64 },
    Forget { n: u64 },
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let n = || 0..6_u64;
    // Mostly the attempt that is current; messages for others, and every message twice, come too.
    let attempt = || prop_oneof![8 => Just(1_u32), 1 => Just(0), 1 => Just(2)];
    let step = prop_oneof![
        6 => (n(), proptest::option::of(0..2_u8), any::<bool>()).prop_map(|(n, key, refuse)| Step::Submit { n, key, refuse }),
        4 => (n(), attempt()).prop_map(|(n, attempt)| Step::Start { n, attempt }),
        3 => (n(), attempt()).prop_map(|(n, attempt)| Step::Pause { n, attempt }),
        3 => (n(), attempt()).prop_map(|(n, attempt)| Step::Resume { n, attempt }),
        2 => n().prop_map(|n| Step::Stop { n }),
        5 => (n(), attempt(), 0..6_usize, 0..100_u64)
            .prop_map(|(n, attempt, verdict, bytes)| Step::Finish { n, attempt, verdict, bytes }),
        3 => n().prop_map(|n| Step::Forget { n }),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..60)
}

#[derive(Debug, Clone, PartialEq)]
struct Known {
    key: Option<String>,
    status: Status,
    started: bool,
    forgotten: bool,
    bytes: u64,
}

/// The map, and how many events it has seen happen.
#[derive(Default)]
struct Model {
    tasks: HashMap<TaskId, Known>,
    events: u64,
}

impl Model {
    fn live_with(&self, key: &str) -> Option<&TaskId> {
        let found = self
            .tasks
            .iter()
            .find(|(_, task)| task.key.as_deref() == Some(key) && !task.status.is_terminal());
        found.map(|(id, _)| id)
    }

    /// Applies a change where the table allows it; whether it did, or `None` if there is no such task.
    fn step(
        &mut self,
        attempt: &Attempt,
        event: Transition,
        change: impl FnOnce(&mut Known),
    ) -> Option<bool> {
        let task = self.tasks.get_mut(&attempt.task)?;
        let repeated = event == Transition::Started && task.started;
        let Ok(status) = transition::next(task.status, event) else { return Some(false) };
        if attempt.number != 1 || repeated {
            return Some(false);
        }
        task.status = status;
        change(task);
        self.events += 1;
        Some(true)
    }

    fn agree(&self, applied: &Applied, expected: Option<bool>) {
        match (applied, expected) {
            (Applied::Done(record), Some(true)) | (Applied::Rejected(record), Some(false)) => {
                assert_eq!(known(record), self.tasks[&record.id]);
            }
            (Applied::Unknown, None) => {}
            (applied, expected) => panic!("{applied:?}, but the model says {expected:?}"),
        }
    }
}

fn known(record: &Record) -> Known {
    Known {
        key: record.spec.key.clone(),
        status: record.status,
        started: record.started_at.is_some(),
        forgotten: record.forgotten,
        bytes: record.output_bytes,
    }
}

async fn play(steps: Vec<Step>) {
    let home = Home::new();
    let mut store = home.open();
    let mut model = Model::default();
    for (millis, step) in (0..).zip(steps) {
        match step {
            Step::Submit { n, key, refuse } => {
                let key = key.map(|key| format!("k{key}"));
                let on_duplicate = if refuse { OnDuplicate::Refuse } else { OnDuplicate::Join };
                let given = match &key {
                    Some(key) => keyed(n, key, on_duplicate),
                    None => submit(n),
                };
                let answer = store.submit(given, at(millis)).await.unwrap();
                match (key.as_ref().and_then(|key| model.live_with(key)), answer) {
                    (Some(first), Submitted::Duplicate(id)) => assert!(refuse && id == *first),
                    (Some(first), Submitted::Joined(record)) => {
                        assert!(!refuse && record.id == *first);
                        assert_eq!(known(&record), model.tasks[first]);
                    }
                    (None, Submitted::IdTaken) => assert!(model.tasks.contains_key(&id(n))),
                    (None, Submitted::Created(record)) => {
                        assert_eq!(record.status, Status::Starting);
                        assert_eq!(model.tasks.insert(id(n), known(&record)), None);
                        model.events += 1;
                    }
                    (first, answer) => panic!("{answer:?}, but the model says {first:?}"),
                }
            }
            Step::Start { n, attempt: number } => {
                let attempt = Attempt { task: id(n), number };
                let applied =
                    store.started(attempt.clone(), Started { pid: 5, at: at(millis) }).await.unwrap();
                let expected = model.step(&attempt, Transition::Started, |task| task.started = true);
                model.agree(&applied, expected);
            }
            Step::Pause { n, attempt: number } => {
                let attempt = Attempt { task: id(n), number };
                let applied = store.paused(attempt.clone(), at(millis)).await.unwrap();
                let expected = model.step(&attempt, Transition::Paused, |_| {});
                model.agree(&applied, expected);
            }
            Step::Resume { n, attempt: number } => {
                let attempt = Attempt { task: id(n), number };
                let applied = store.resumed(attempt.clone(), at(millis)).await.unwrap();
                let expected = model.step(&attempt, Transition::Resumed, |_| {});
                model.agree(&applied, expected);
            }
            Step::Stop { n } => {
                let applied = store.stop_requested(id(n), "ann".into(), 1, None, at(millis)).await.unwrap();
                let attempt = Attempt { task: id(n), number: 1 };
                let expected = model.step(&attempt, Transition::StopRequested, |_| {});
                model.agree(&applied, expected);
            }
            Step::Finish { n, attempt: number, verdict, bytes } => {
                let attempt = Attempt { task: id(n), number };
                let end = Ending { verdict: Verdict::ALL[verdict], ..ending(millis, bytes) };
                let event = Transition::Ended(end.verdict);
                let applied = store.finish(attempt.clone(), end, Report::default()).await.unwrap();
                // An end that is the first to tell of the start tells of both.
                let unheard = model.tasks.get(&id(n)).is_some_and(|task| !task.started);
                model.events += u64::from(unheard && matches!(applied, Applied::Done(_)));
                let expected = model.step(&attempt, event, |task| {
                    task.started = true;
                    task.bytes = bytes;
                });
                model.agree(&applied, expected);
            }
            Step::Forget { n } => {
                let applied = store.forget(id(n), at(millis)).await.unwrap();
                let expected = model.tasks.get_mut(&id(n)).map(|task| {
                    let forget = task.status.is_terminal() && !task.forgotten;
                    if forget {
                        task.forgotten = true;
                        task.key = None;
                    }
                    forget
                });
                model.events += u64::from(expected == Some(true));
                model.agree(&applied, expected);
            }
            Step::Reopen => {
                store.close().await.unwrap();
                store = home.open();
            }
        }
    }
    for (id, task) in &model.tasks {
        assert_eq!(known(&store.get(id.clone()).await.unwrap().unwrap()), *task);
    }
    let count = |wanted: fn(&Known) -> bool| model.tasks.values().filter(|task| wanted(task)).count() as u64;
    let counts = store.counts().await.unwrap();
    assert_eq!(counts.running, count(|task| !task.status.is_terminal()));
    assert_eq!(counts.finished, count(|task| task.status.is_terminal() && !task.forgotten));
    let log = store.events(0, EventFilter::default(), 1000).await.unwrap();
    assert_eq!((log.events.len() as u64, log.cursor), (model.events, model.events), "the log has no holes");
    assert_eq!(store.check().await, Ok(()));
    store.close().await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn p1_any_history_agrees_with_the_model(steps in steps()) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(play(steps));
    }
}
