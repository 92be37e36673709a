//! The three days of a webhook that nobody takes, under a clock that the test moves: every attempt at its moment, and none before it.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::sync::Arc;

use homing_deliver::Transports;
use homing_engine::{Caller, Clock, DeliveryQuery, Engine, HomeError, OpenError, Sleep, SystemClock};
use homing_model::notify::When;
use homing_model::{Delivery, DeliveryState, Notify, Spec, Timestamp};
use homing_testkit::{Home, PATIENCE, Receiver, Script};
use tokio::sync::watch;
use tokio::time::timeout;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// CONTRACT 4: what follows each failed attempt.
const PAUSES: [u64; 9] =
    [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

/// It is the time that was set, until another is.
struct Set(watch::Sender<Timestamp>);

impl Set {
    fn new(now: Timestamp) -> Arc<Self> {
        Arc::new(Self(watch::channel(now).0))
    }

    fn to(&self, now: Timestamp) {
        self.0.send_replace(now);
    }
}

impl Clock for Set {
    fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep {
        let mut time = self.0.subscribe();
        Box::pin(async move {
            let _ = time.wait_for(|now| *now >= at).await;
        })
    }
}

/// An engine that delivers.
async fn open(home: &Home, clock: &Arc<Set>) -> Engine {
    let transports = Arc::new(Transports::new(home.path(), homing_engine::config::Webhook::default()));
    let opened = async {
        loop {
            let builder = Engine::builder(home.path()).helper(home.program().to_owned()).clock(clock.clone());
            match builder.transport(transports.clone()).open().await {
                Ok(engine) => return engine,
                // The one before has not left yet.
                Err(OpenError::Home(HomeError::InUse(_))) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    };
    timeout(PATIENCE, opened).await.expect("the home is free in time")
}

/// The only delivery, once it is as wanted. What is settled is announced, so nothing is asked in vain.
async fn delivery(engine: &Engine, wanted: impl Fn(&Delivery) -> bool) -> Delivery {
    let mut news = engine.newest_event();
    let look = async {
        loop {
            news.mark_unchanged();
            let mut page = engine.deliveries(DeliveryQuery::default()).await.unwrap();
            if let Some(found) = page.items.pop().filter(&wanted) {
                return found;
            }
            news.changed().await.unwrap();
        }
    };
    match timeout(PATIENCE, look).await {
        Ok(found) => found,
        Err(_) => {
            panic!("not in time: {:?}", engine.deliveries(DeliveryQuery::default()).await.unwrap().items)
        }
    }
}

fn posting_to(receiver: &Receiver) -> Spec {
    let target = format!("http://127.0.0.1:{}/hook", receiver.port()).parse().unwrap();
    let notify = Notify { on: When::Always, targets: vec![target], secret: None };
    Spec { shell: Some("echo out; exit 3".into()), notify: Some(notify), ..Spec::default() }
}

#[tokio::test]
async fn p5_ten_attempts_over_three_days_then_dead_with_all_of_them_and_sent_again_when_asked() {
    let home = super::home();
    let mut scripts = vec![Script::status(503).body("not today"); 10];
    scripts.push(Script::status(200));
    let receiver = Receiver::new(scripts);
    let begin = SystemClock.now();
    let clock = Set::new(begin);
    let engine = open(&home, &clock).await;
    let task = engine.submit(posting_to(&receiver), Caller::default(), None).await.unwrap().task.id;

    let mut moments = vec![begin];
    for (made, pause) in (1..).zip(PAUSES) {
        let failed = delivery(&engine, |found| found.attempts == made).await;
        let now = clock.now();
        let next = failed.next_at.unwrap();
        assert_eq!(failed.state, DeliveryState::Pending);
        let wait = next.millis_since(now);
        assert!(wait >= pause - pause / 10 && wait <= pause + pause / 10, "{wait} ms after attempt {made}");
        // A moment before it nothing is due, whoever asks.
        clock.to(next.plus_millis(-1));
        assert_eq!(engine.due().await.unwrap(), (Vec::new(), Some(next)));
        clock.to(next);
        moments.push(next);
    }
    let dead = delivery(&engine, |found| found.state == DeliveryState::Dead).await;
    assert_eq!((dead.attempts, dead.next_at), (10, None));
    assert_eq!(
        dead.reason.as_deref(),
        Some("10 attempts failed; the last: 503 Service Unavailable: not today")
    );
    assert_eq!(dead.history.iter().map(|tried| tried.at).collect::<Vec<_>>(), moments);
    assert!(dead.history.iter().all(|tried| tried.status == Some(503)), "{:?}", dead.history);
    let days = clock.now().millis_since(begin) as f64 / (24.0 * HOUR as f64);
    assert!((2.8..3.5).contains(&days), "{days} days");

    // Nothing happens to it by itself any more; asked for, it begins anew.
    clock.to(clock.now().plus_millis(i64::try_from(30 * 24 * HOUR).unwrap()));
    assert_eq!(engine.due().await.unwrap(), (Vec::new(), None));
    assert_eq!(receiver.requests().len(), 10);
    assert_eq!(engine.redeliver(dead.id.as_str(), "").await.unwrap().redelivered, [dead.id]);
    let delivered = delivery(&engine, |found| found.state == DeliveryState::Delivered).await;
    assert_eq!((delivered.attempts, delivered.history.len()), (11, 11));
    assert_eq!(delivered.task_id, task);

    let requests = receiver.requests();
    assert_eq!(requests.len(), 11);
    for (request, at) in requests.iter().zip(moments.into_iter().chain([clock.now()])) {
        assert_eq!(request.header("webhook-id"), delivered.notice_id.as_str());
        assert_eq!(request.body, requests[0].body, "the same bytes every time");
        assert_eq!(request.header("webhook-timestamp"), (at.as_millis() / 1_000).to_string());
    }
}

#[tokio::test]
async fn p5_the_schedule_goes_on_where_it_was_when_the_engine_is_opened_again() {
    let home = super::home();
    let receiver = Receiver::new([Script::status(500), Script::status(500), Script::status(200)]);
    let clock = Set::new(SystemClock.now());
    let engine = open(&home, &clock).await;
    engine.submit(posting_to(&receiver), Caller::default(), None).await.unwrap();
    let first = delivery(&engine, |found| found.attempts == 1).await;
    clock.to(first.next_at.unwrap());
    let second = delivery(&engine, |found| found.attempts == 2).await;
    engine.leave(false).await;
    drop(engine);

    // Long after the attempt was due: it is made at once, and it is the third.
    clock.to(second.next_at.unwrap().plus_millis(i64::try_from(HOUR).unwrap()));
    let engine = open(&home, &clock).await;
    let delivered = delivery(&engine, |found| found.state == DeliveryState::Delivered).await;
    assert_eq!((delivered.attempts, delivered.history.len()), (3, 3));
    assert_eq!(delivered.history[..2], second.history[..]);
}
