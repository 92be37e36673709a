//! Windows, floods and the breaker as the engine keeps them, under a clock that the test moves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use homing_engine::{Caller, Clock, Engine, WaitMode};
use homing_model::notice::{Body, Completed};
use homing_model::{EventKind, Notice, Spec, Stdin, TaskId, Timestamp};
use homing_store::store::EventFilter;
use homing_testkit::Home;

use super::home;

/// A clock with hands.
struct Hands(Mutex<i64>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(*self.0.lock().unwrap())
    }
}

impl Hands {
    fn advance(&self, seconds: i64) {
        *self.0.lock().unwrap() += seconds * 1_000;
    }
}

struct Bench {
    engine: Engine,
    hands: Arc<Hands>,
}

impl Bench {
    async fn new(home: &Home) -> Self {
        let hands = Arc::new(Hands(Mutex::new(1_790_000_000_000)));
        let builder = Engine::builder(home.path()).helper(home.program().into());
        let engine = builder.clock(Arc::<Hands>::clone(&hands)).open().await.expect("the home opens");
        Self { engine, hands }
    }

    /// A task that prints what is typed.
    async fn parrot(&self, patterns: &[&str]) -> TaskId {
        let spec = Spec {
            argv: vec!["cat".into()],
            stdin: Stdin::Pipe,
            watch: patterns.iter().map(|text| (*text).to_owned()).collect(),
            ..Spec::default()
        };
        self.engine.submit(spec, Caller::default(), None).await.expect("accepted").task.id
    }

    async fn say(&self, id: &TaskId, text: String) {
        self.engine.input(id, text.into_bytes(), false).await.expect("taken");
    }

    async fn end(&self, id: &TaskId) -> Box<Completed> {
        self.engine.input(id, Vec::new(), true).await.expect("taken");
        self.engine
            .wait(std::slice::from_ref(id), WaitMode::All, Some(Duration::from_secs(30)))
            .await
            .expect("it ends");
        let mut ends = self.notices(id).await;
        match ends.pop().expect("an end").body {
            Body::Completed(completed) => completed,
            other => panic!("expected the end last, got {other:?}"),
        }
    }

    async fn notices(&self, id: &TaskId) -> Vec<Notice> {
        let kinds = vec![EventKind::TaskMatched, EventKind::TaskCompleted];
        let events =
            self.engine.events(0, EventFilter { owner: None, kinds }, 1_000).await.expect("readable");
        let of_it = events.events.into_iter().filter(|event| event.task_id.as_ref() == Some(id));
        of_it.map(|event| serde_json::from_value(event.data).expect("a notice")).collect()
    }

    /// Waits until so many matches of a pattern were told; answers the held-back counts and whether each explains itself.
    async fn told(&self, id: &TaskId, wanted: &str, count: usize) -> Vec<(u64, bool)> {
        let mut news = self.engine.newest_event();
        loop {
            let told: Vec<_> = self
                .notices(id)
                .await
                .into_iter()
                .filter_map(|notice| match notice.body {
                    Body::Matched { pattern, held_back, explanation, .. } if pattern == wanted => {
                        Some((held_back, explanation.is_some()))
                    }
                    _ => None,
                })
                .collect();
            if told.len() >= count {
                return told;
            }
            tokio::time::timeout(Duration::from_secs(30), news.changed()).await.expect("news").expect("live");
        }
    }
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test);
}

#[test]
fn p5_a_window_holds_back_and_three_floods_turn_a_pattern_off_with_one_explanation() {
    let home = home();
    block_on(async {
        let bench = Bench::new(&home).await;
        let id = bench.parrot(&["flood", "mark"]).await;
        let burst: String = (0..100).map(|n| format!("flood {n}\n")).collect();
        for round in 1..=6 {
            bench.say(&id, format!("{burst}mark\n")).await;
            // Once the mark is told, all that came before it was judged.
            let marks = bench.told(&id, "mark", round).await;
            assert!(marks.iter().all(|mark| *mark == (0, false)), "{marks:?}");
            bench.hands.advance(15);
        }
        let floods = bench.told(&id, "flood", 4).await;
        assert_eq!(floods, [(0, false), (98, false), (99, false), (99, true)]);
        let task = bench.engine.task(&id).await.expect("known");
        assert_eq!(task.watch_off, ["flood"]);
        assert_eq!(bench.end(&id).await.held_back, None, "what is off holds nothing back");
    });
}

#[test]
fn p5_the_breaker_holds_back_and_lets_go_and_no_match_is_lost() {
    let home = home();
    block_on(async {
        let bench = Bench::new(&home).await;
        let mut ids = Vec::new();
        for _ in 0..17 {
            ids.push(bench.parrot(&["hit"]).await);
        }
        for id in &ids[..15] {
            bench.say(id, "hit\n".to_owned()).await;
            let _ = bench.told(id, "hit", 1).await;
        }
        for id in &ids[15..] {
            bench.say(id, "hit\n".to_owned()).await;
        }
        let paused = async |count: usize| {
            let filter = EventFilter { owner: None, kinds: vec![EventKind::WatchPaused] };
            let mut news = bench.engine.newest_event();
            while bench.engine.events(0, filter.clone(), 9).await.expect("readable").events.len() < count {
                tokio::time::timeout(Duration::from_secs(30), news.changed())
                    .await
                    .expect("news")
                    .expect("live");
            }
            bench.engine.events(0, filter, 9).await.expect("readable").events.len()
        };
        assert_eq!(paused(1).await, 1);
        bench.hands.advance(30);
        for id in &ids[15..] {
            bench.say(id, "hit again\n".to_owned()).await;
            let told = bench.told(id, "hit", 1).await;
            let held = bench.end(id).await.held_back.unwrap_or(0);
            let all: u64 = told.iter().map(|(held_back, _)| 1 + held_back).sum();
            assert_eq!(all + held, 2, "each is told or counted");
        }
        assert_eq!(paused(1).await, 1, "one event for one pause");
    });
}
