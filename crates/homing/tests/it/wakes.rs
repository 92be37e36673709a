//! A session is woken so often and no oftener; what is beyond that waits, and nothing of it is lost.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use homing_deliver::Transports;
use homing_engine::{Caller, Clock, Config, DeliveryQuery, Engine, SystemClock};
use homing_model::notice::Body;
use homing_model::notify::{Notify, When};
use homing_model::reservation::ConfirmedBy;
use homing_model::{Delivery, DeliveryState, Spec, TaskId, Timestamp};
use homing_testkit::{Home, wait_for};
use serde_json::Value;

const OWNER: &str = "claude:5";

fn deliveries(home: &Home, state: &str) -> Vec<Value> {
    let answer = home.cli(["deliveries", "--state", state, "--json"]).ok().json();
    answer["items"].as_array().cloned().unwrap()
}

fn types(home: &Home) -> Vec<String> {
    let answer = home.cli(["inbox", "--owner", OWNER, "--json"]).ok().json();
    answer["items"].as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn p5_a_budget_of_wakes_holds_through_the_death_of_the_daemon_and_what_is_beyond_it_waits_in_the_inbox() {
    let home = super::home();
    let _ = home.daemon_pid();
    std::fs::write(home.path().join("config.toml"), "[wake]\nper_hour = 2\n").unwrap();
    let _ = home.cli(["daemon", "restart"]).ok();
    let hook = format!("exec:cd '{}' && echo x >> calls; cat > /dev/null", home.scratch().display());
    let submit = |owner: &str| home.submit(&["--owner", owner, "--notify", &hook], "true");
    for count in 1..=2 {
        let _ = submit(OWNER);
        wait_for("the session to be woken", || (deliveries(&home, "delivered").len() == count).then_some(()));
    }
    assert_eq!(types(&home), Vec::<String>::new());
    let third = submit(OWNER);
    wait_for("the owner to be told", || (types(&home).len() == 2).then_some(()));
    assert_eq!(types(&home), ["task.completed", "wake.paused"]);
    let daemon = home.kill_daemon();
    let _ = home.next_daemon(daemon);
    let _ = submit(OWNER);
    wait_for("the fourth to wait too", || (types(&home).len() == 3).then_some(()));
    assert_eq!(types(&home).iter().filter(|kind| *kind == "wake.paused").count(), 1, "once");
    let held = deliveries(&home, "pending");
    assert_eq!(held.len(), 2);
    assert!(held.iter().all(|one| one["reason"].as_str().unwrap().contains("2 wakes an hour")), "{held:?}");
    let shown = home.cli(["show", &third]).ok().text();
    assert!(shown.contains("pending, next in 59m") && shown.contains("is spent"), "{shown}");
    assert!(home.cli(["inbox", "--owner", OWNER]).ok().text().contains("woken 2 times in an hour"));
    // A person's own command is no wake.
    for _ in 0..3 {
        let _ = submit("ann");
    }
    wait_for("those to be told", || (deliveries(&home, "delivered").len() == 5).then_some(()));
    assert_eq!(deliveries(&home, "pending").len(), 2);
}

/// The machine's clock, moved.
struct Moved(AtomicI64);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus_millis(self.0.load(Ordering::Relaxed))
    }
}

struct Woken {
    engine: Engine,
    clock: Arc<Moved>,
    config: Config,
}

impl Woken {
    async fn new(home: &Home, per_hour: u32) -> Self {
        let clock = Arc::new(Moved(AtomicI64::new(0)));
        let mut config = Config::default();
        config.wake.per_hour = per_hour;
        let transports = Arc::new(Transports::new(home.path(), config.webhook.clone()));
        let engine = Engine::builder(home.path()).helper(home.program().to_owned()).clock(clock.clone());
        let engine = engine.config(config.clone()).transport(transports).open().await.unwrap();
        Self { engine, clock, config }
    }

    /// Runs a task to its end and lets a command in this folder count how often it is called, and with how much.
    async fn run(&self, folder: &Path, answer: &str) -> TaskId {
        let line = format!("exec:cd '{}' && cat > last && echo x >> calls; {answer}", folder.display());
        let notify = Notify { on: When::Always, targets: vec![line.parse().unwrap()], secret: None };
        let spec = Spec {
            shell: Some("true".into()),
            owner: Some(OWNER.into()),
            notify: Some(notify),
            ..Spec::default()
        };
        let id = self.engine.submit(spec, Caller::default(), None).await.unwrap().task.id;
        let _ =
            self.engine.wait(std::slice::from_ref(&id), homing_engine::WaitMode::All, None).await.unwrap();
        id
    }

    async fn deliveries(&self) -> Vec<Delivery> {
        self.engine.deliveries(DeliveryQuery::default()).await.unwrap().items
    }

    /// Until so many deliveries are in this state.
    async fn until(&self, state: DeliveryState, count: usize) -> Vec<Delivery> {
        for _ in 0..3_000 {
            let rows: Vec<_> = self.deliveries().await.into_iter().filter(|row| row.state == state).collect();
            if rows.len() == count {
                return rows;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.deliveries().await);
    }

    /// So many notices in the inbox.
    async fn inbox(&self, count: usize) -> Vec<Body> {
        for _ in 0..3_000 {
            let found = self.engine.inbox(OWNER, None, Duration::ZERO).await.unwrap();
            if found.items.len() == count {
                return found.items.into_iter().map(|notice| notice.body).collect();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.engine.inbox(OWNER, None, Duration::ZERO).await);
    }

    /// Moves the clock, and has the dispatcher look at it.
    fn pass(&self, millis: i64) {
        self.clock.0.fetch_add(millis, Ordering::Relaxed);
        self.engine.set_config(self.config.clone());
    }
}

fn lines(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("calls")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn p5_what_waited_for_the_budget_goes_in_one_hand_over_an_hour_later() {
    let home = super::home();
    let woken = Woken::new(&home, 1).await;
    let _ = woken.run(home.scratch(), "true").await;
    woken.until(DeliveryState::Delivered, 1).await;
    for _ in 0..3 {
        let _ = woken.run(home.scratch(), "true").await;
    }
    let waiting = woken.inbox(4).await;
    assert_eq!(waiting.iter().filter(|body| matches!(body, Body::WakePaused { .. })).count(), 1);
    assert_eq!(lines(home.scratch()), 1);
    woken.pass(3_600_000);
    woken.until(DeliveryState::Delivered, 4).await;
    assert_eq!(lines(home.scratch()), 2, "together");
    let last: Value = serde_json::from_slice(&std::fs::read(home.scratch().join("last")).unwrap()).unwrap();
    assert_eq!(last["notices"].as_array().map(Vec::len), Some(3));
    let left = woken.inbox(1).await;
    assert!(matches!(left[0], Body::WakePaused { .. }), "what stood in for the wake is told by it");
}

#[tokio::test]
async fn p5_a_larger_budget_of_wakes_holds_at_once() {
    let home = super::home();
    let woken = Woken::new(&home, 1).await;
    let _ = woken.run(home.scratch(), "true").await;
    woken.until(DeliveryState::Delivered, 1).await;
    let _ = woken.run(home.scratch(), "true").await;
    let _ = woken.inbox(2).await;
    let mut config = woken.config.clone();
    config.wake.per_hour = 2;
    woken.engine.set_config(config);
    woken.until(DeliveryState::Delivered, 2).await;
    assert_eq!(lines(home.scratch()), 2);
}

#[tokio::test]
async fn p5_a_command_is_run_though_its_owner_has_the_result() {
    let home = super::home();
    let woken = Woken::new(&home, 30).await;
    for count in 1..=3 {
        let id = woken.run(home.scratch(), "true").await;
        let wait = woken.engine.reserve(OWNER, std::slice::from_ref(&id), None).await;
        wait.deliver(vec![id], ConfirmedBy::Call, None).await.unwrap();
        let rows = woken.until(DeliveryState::Delivered, count).await;
        assert!(rows.iter().all(|row| row.attempts == 1), "{rows:?}");
    }
    assert_eq!(lines(home.scratch()), 3);
}

#[tokio::test]
async fn a_command_that_was_busy_for_two_days_is_run_again() {
    let home = super::home();
    let woken = Woken::new(&home, 30).await;
    let free = home.scratch().join("free");
    let _ = woken.run(home.scratch(), "test -e free || exit 75").await;
    for _ in 0..3_000 {
        if lines(home.scratch()) > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    std::fs::write(&free, "").unwrap();
    woken.pass(48 * 3_600_000);
    let told = woken.until(DeliveryState::Delivered, 1).await;
    assert_eq!(told[0].attempts, 1, "busy is no attempt");
}
