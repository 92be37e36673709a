//! Watches: how far an output was judged, and what is told of it, in one.

use homing_model::notice::Body;
use homing_model::notify::When;
use homing_model::reservation::Access;
use homing_model::watch::{Held, Pace, State};
use homing_model::{Attempt, EventKind};

use super::fixture::{Ledger, at, create, done, finish, first, get, id, rejected, submit, telling};
use crate::outbox::Report;
use crate::store::{Applied, EventFilter};

const HOOK: &str = "https://x.example/hook";

fn state(turn: u64, scanned: u64) -> State {
    let held = Some(Held { count: 3, line: "the third".into() });
    let pace = Pace { told_at: Some(at(1)), held, floods: 2, flood_at: Some(at(1)), off: false };
    State { turn, scanned, paces: vec![pace], quiet_told: Some(7), beat_to: 5, beat_at: Some(at(1)) }
}

fn matched(line: &str) -> Body {
    Body::Matched { pattern: "x".into(), line: line.into(), held_back: 0, explanation: None }
}

async fn told(store: &Ledger) -> (usize, usize, u64) {
    let log = store.events(0, EventFilter { kinds: vec![EventKind::TaskMatched], owner: None }, 99).await;
    let inbox = store.peek("ann".into(), 99, Access::Look, at(9)).await.expect("readable").notices;
    let pending = store.delivery_counts().await.expect("readable").pending;
    (log.expect("readable").events.len(), inbox.len(), pending)
}

/// The state is there if and only if the notice is; without one only the state is kept.
pub async fn p5_what_was_watched_and_what_is_told_of_it_are_one(store: Ledger) {
    create(&store, telling(1, When::Failure, &[HOOK]), 0).await;
    assert_eq!(get(&store, 1).await.watch, None);
    let record = done(
        store.watched(first(1), state(1, 10), Some(matched("one")), 3, None, at(1)).await.expect("taken"),
    );
    assert_eq!(record.watch, Some(state(1, 10)));
    assert_eq!((get(&store, 1).await, told(&store).await), (record, (1, 1, 1)));
    done(store.watched(first(1), state(2, 20), None, 3, None, at(2)).await.expect("taken"));
    assert_eq!((get(&store, 1).await.watch, told(&store).await), (Some(state(2, 20)), (1, 1, 1)));
    for turn in [0, 1, 2, 4] {
        let late = store.watched(first(1), state(turn, 30), Some(matched("again")), 3, None, at(3)).await;
        assert_eq!(rejected(late.expect("judged")).watch, Some(state(2, 20)), "one after the other");
    }
    assert_eq!(told(&store).await, (1, 1, 1), "and nothing is told twice");
    create(&store, telling(2, When::Never, &[HOOK]), 0).await;
    done(store.watched(first(2), state(1, 1), Some(matched("two")), 3, None, at(3)).await.expect("taken"));
    assert_eq!(told(&store).await, (2, 1, 1), "in the log all the same");
    // What was held back when it ended comes with the end.
    let report = Report { held_back: Some(4), ..Report::default() };
    done(store.finish(first(1), super::fixture::ending(5, 0), report).await.expect("taken"));
    let kinds = vec![EventKind::TaskCompleted];
    let log = store.events(0, EventFilter { kinds, owner: None }, 9).await.expect("readable");
    assert_eq!(log.events.first().map(|event| &event.data["held_back"]), Some(&4.into()));
}

/// Late, for another attempt, or of nobody: nothing is told and nothing is kept.
pub async fn p5_a_watch_tells_nothing_of_an_ended_task_nor_of_another_attempt(store: Ledger) {
    create(&store, telling(1, When::Always, &[]), 0).await;
    let later = Attempt { task: id(1), number: 2 };
    let record = rejected(
        store.watched(later, state(1, 1), Some(matched("x")), 3, None, at(1)).await.expect("judged"),
    );
    assert_eq!(record.watch, None);
    done(store.watched(first(1), state(1, 1), None, 3, None, at(1)).await.expect("taken"));
    finish(&store, 1, 2, 0).await;
    rejected(store.watched(first(1), state(2, 9), Some(matched("x")), 3, None, at(3)).await.expect("judged"));
    assert_eq!(get(&store, 1).await.watch, Some(state(1, 1)));
    assert_eq!(told(&store).await.0, 0);
    let nobody = store.watched(first(7), state(1, 1), Some(matched("x")), 3, None, at(3)).await;
    assert_eq!(nobody, Ok(Applied::Unknown));
}

/// Lines of the output are not kept beyond it.
pub async fn a_forgotten_task_keeps_no_watch(store: Ledger) {
    create(&store, submit(1), 0).await;
    done(store.watched(first(1), state(1, 1), None, 3, None, at(1)).await.expect("taken"));
    finish(&store, 1, 2, 0).await;
    let record = done(store.forget(id(1), at(3)).await.expect("taken"));
    assert_eq!(record.watch, None);
}
