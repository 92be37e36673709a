//! What is told of a task has none of its secrets. Keeps P11.

use std::collections::BTreeMap;

use homing_model::notice::Body;
use homing_model::notify::When;
use homing_model::reservation::Access;
use homing_model::{Masks, OsText, Outcome, Progress, Survivor, Timestamp};

use super::fixture::{Ledger, at, create, done, ending, first, get, id, tell, telling};
use crate::outbox::{DeliveryFilter, Next, Report, Settled};
use crate::store::EventFilter;

const VALUE: &str = "hunter2";

/// Whoever puts a text into the ledger that is told: it goes in masked, and the masks go with the task.
pub async fn p11_no_secret_of_a_task_is_told_or_kept(store: Ledger) {
    let values = BTreeMap::from([("API_TOKEN".to_owned(), OsText::from(VALUE))]);
    let mut submit = telling(1, When::Always, &["exec:post hunter2"]);
    submit.task.masks = Masks::new(9, &values, |_| false);
    let masks = submit.task.masks.clone();
    create(&store, submit, 0).await;
    assert_eq!(get(&store, 1).await.masks, masks);

    let said = |text: &str| Some(format!("{text} {VALUE}"));
    let progress = Progress { percent: None, text: said("at"), at: at(1) };
    done(store.progress(id(1), progress).await.expect("taken"));
    let seen = Body::Matched { pattern: VALUE.into(), line: VALUE.into(), held_back: 0, explanation: None };
    done(tell(&store, 1, 1, seen, None, 2).await);
    let heartbeat = Body::Heartbeat { new_output: VALUE.into() };
    done(tell(&store, 1, 2, heartbeat, None, 3).await);

    let mut end = ending(5, 7);
    let survivors = vec![Survivor { pid: 1, name: VALUE.into() }];
    end.outcome = Outcome { reason: said("because"), survivors, ..Outcome::default() };
    let report = Report { entropy: 7, output_tail: VALUE.into(), ..Report::default() };
    let ended = done(store.finish(first(1), end, report).await.expect("taken"));
    assert_eq!(ended, get(&store, 1).await, "what is answered is what is kept");

    let channel = store.due(at(9)).await.expect("readable").0.remove(0);
    for claim in store.claim(channel, 9, at(99), at(9)).await.expect("taken") {
        assert_eq!(
            (claim.target.to_string().as_str(), claim.shown.as_str()),
            ("exec:post hunter2", "exec:post [secret API_TOKEN]")
        );
        let settled = Settled { tried: None, next: Next::Delivered };
        assert!(store.settle(claim.id, claim.fence, settled, at(9)).await.expect("taken"));
    }
    let task = (ended.outcome, ended.progress);
    let told = store.peek("ann".into(), 10, Access::Look, at(9)).await.expect("readable").notices;
    let log = store.events(0, EventFilter::default(), 100).await.expect("readable").events;
    let sent = store
        .deliveries(DeliveryFilter { limit: 10, ..DeliveryFilter::default() })
        .await
        .expect("readable")
        .items;
    assert_eq!((told.len(), sent.len()), (3, 3));
    let all = serde_json::to_string(&(task, told, log, sent)).expect("plain data");
    assert!(!all.contains(VALUE) && all.contains("because [secret API_TOKEN]"), "{all}");

    done(store.forget(id(1), Timestamp::from_millis(i64::MAX / 2)).await.expect("taken"));
    assert!(get(&store, 1).await.masks.is_empty());
}
