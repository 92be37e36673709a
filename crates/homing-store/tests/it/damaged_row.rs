//! One row that makes no sense costs nobody else anything.

use homing_model::notify::When;
use homing_model::reservation::Access;
use homing_model::{DeliveryState, Kind};
use homing_store::Error;
use homing_store::conformance::fixture::{
    at, create, done, ending, finish, first, get, id, oldest, submit, telling,
};
use homing_store::outbox::{DeliveryFilter, Report};
use homing_store::store::{EventFilter, Filter};
use homing_store::store::{EventLog, Inbox, Outbox, Tasks, Upkeep};
use rusqlite::Connection;

use crate::home::{Home, ledger};

fn damage(home: &Home, n: u64, assignment: &str) {
    let conn = Connection::open(home.database()).unwrap();
    let changed =
        conn.execute(&format!("UPDATE tasks SET {assignment} WHERE id = ?1"), [id(n).as_str()]).unwrap();
    assert_eq!(changed, 1);
}

#[tokio::test]
async fn a_damaged_live_row_is_reported_beside_the_others() {
    let home = Home::new();
    let store = home.open();
    for n in 0..4 {
        create(&ledger(&store), submit(n), 0).await;
    }
    damage(&home, 1, "spec = '{'");
    damage(&home, 2, "status = 'dancing'");
    let (live, damaged) = store.live().await.unwrap();
    assert_eq!(live.iter().map(|record| record.id.clone()).collect::<Vec<_>>(), [id(0), id(3)]);
    let names: Vec<_> = damaged
        .iter()
        .map(|error| match error {
            Error::BadRow { task, .. } => task.clone(),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(names, [id(1).as_str(), id(2).as_str()]);
    let listed = store.list(Filter { limit: 10, ..Filter::default() }).await.unwrap();
    assert_eq!(listed.records.len(), 2);
    assert!(matches!(store.get(id(1)).await, Err(Error::BadRow { .. })));
    assert!(matches!(store.check().await, Err(Error::BadRow { .. })));
}

#[tokio::test]
async fn an_operation_on_a_damaged_row_undoes_nothing_of_its_batch() {
    let home = Home::new();
    let store = home.open();
    for n in 0..3 {
        create(&ledger(&store), submit(n), 0).await;
    }
    damage(&home, 1, "spec = '{'");
    let stops: Vec<_> = (0..3).map(|n| store.stop_requested(id(n), "ann".into(), 1, None, at(1))).collect();
    let mut answers = Vec::new();
    for stop in stops {
        answers.push(stop.await);
    }
    assert!(matches!(answers[1], Err(Error::BadRow { .. })));
    for n in [0, 2] {
        assert_eq!(get(&ledger(&store), n).await.stop, Some("ann".into()));
    }
}

#[tokio::test]
async fn a_damaged_task_can_be_forgotten() {
    let home = Home::new();
    let store = home.open();
    create(&ledger(&store), submit(1), 0).await;
    finish(&ledger(&store), 1, 1, 0).await;
    damage(&home, 1, "spec = '{'");
    assert!(store.finish(first(1), ending(2, 0), Report::default()).await.is_err());
    assert!(done(store.forget(id(1), at(2)).await.unwrap()).forgotten);
}

#[tokio::test]
async fn p5_a_damaged_notice_event_or_delivery_stops_no_other() {
    let home = Home::new();
    let store = home.open();
    let ledger = ledger(&store);
    for n in 0..5 {
        create(&ledger, telling(n, When::Always, &["https://x.example/hook"]), 0).await;
        let report = Report { entropy: n + 1, ..Report::default() };
        done(store.finish(first(n), ending(1, 0), report).await.unwrap());
    }
    let conn = Connection::open(home.database()).unwrap();
    let harm = |statement: &str, n: u64| {
        assert_eq!(conn.execute(statement, [id(n).as_str()]).unwrap(), 1);
    };
    harm("UPDATE deliveries SET target = 'nonsense' WHERE task_id = ?1", 0);
    harm("UPDATE events SET type = 'task.danced' WHERE task_id = ?1 AND type = 'task.queued'", 1);
    harm("UPDATE notices SET body = '{' WHERE seq IN (SELECT seq FROM inbox WHERE task_id = ?1)", 2);

    let told = store.peek("ann".into(), 10, Access::Look, at(2)).await.unwrap().notices;
    let told: Vec<_> = told.into_iter().map(|notice| notice.task.id).collect();
    assert_eq!(told, [id(0), id(1), id(3), id(4)]);
    let log = store.events(0, EventFilter::default(), 100).await.unwrap();
    assert_eq!(log.events.len(), 3 * 5 - 2, "and the cursor is behind all of them");
    assert_eq!(log.cursor, store.last_event().await.unwrap());

    let channel = store.due(at(2)).await.unwrap().0.remove(0);
    let claimed = store.claim(channel, 10, at(9), at(2)).await.unwrap();
    let sent: Vec<_> = claimed.into_iter().map(|claim| claim.task_id).collect();
    assert!(
        [id(1), id(3), id(4)].iter().all(|task| sent.contains(task)) && !sent.contains(&id(0)),
        "{sent:?}"
    );
    harm("UPDATE deliveries SET state = 'strange' WHERE task_id = ?1", 4);
    let page = |before| store.deliveries(DeliveryFilter { limit: 1, before, ..DeliveryFilter::default() });
    let (mut shown, mut next) = (Vec::new(), None);
    loop {
        let found = page(next).await.unwrap();
        shown.extend(found.items.into_iter().map(|delivery| delivery.task_id));
        next = found.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(shown, [id(3), id(2), id(1), id(0)], "one that cannot be read hides no older one");
    let dead = DeliveryFilter { state: Some(DeliveryState::Dead), limit: 9, ..DeliveryFilter::default() };
    assert!(!store.deliveries(dead).await.unwrap().items.is_empty(), "given up, and said so");
}

#[tokio::test]
async fn p5_entries_behind_a_damaged_one_are_given_however_few_are_asked_for() {
    let home = Home::new();
    let store = home.open();
    for n in 0..3 {
        create(&ledger(&store), telling(n, When::Always, &[]), 0).await;
        finish(&ledger(&store), n, 1, 0).await;
    }
    let conn = Connection::open(home.database()).unwrap();
    conn.execute("UPDATE notices SET body = '{' WHERE task = ?1", [id(0).as_str()]).unwrap();
    conn.execute("UPDATE notices SET body = CAST(x'ff' AS TEXT) WHERE task = ?1", [id(1).as_str()]).unwrap();
    let seen = store.peek("ann".into(), 1, Access::Look, at(2)).await.unwrap().notices;
    let taken = store.take("ann".into(), oldest(1, 9), at(2)).await.unwrap();
    for notices in [seen, taken] {
        assert_eq!(notices.into_iter().map(|notice| notice.task.id).collect::<Vec<_>>(), [id(2)]);
    }
}

#[tokio::test]
async fn p5_a_command_whose_row_is_damaged_holds_up_its_channel_until_the_next_pass_only() {
    let home = Home::new();
    let store = home.open();
    let ledger = ledger(&store);
    create(&ledger, telling(1, When::Always, &["exec:cat"]), 0).await;
    finish(&ledger, 1, 1, 0).await;
    let channel = store.due(at(2)).await.unwrap().0.remove(0);
    let mut hook = submit(10).task;
    (hook.kind, hook.owner) = (Kind::Hook, String::new());
    let claims = store.claim(channel.clone(), 10, at(50), at(2)).await.unwrap();
    let given = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
    store.hand_over(given, hook, None, at(2)).await.unwrap().unwrap();
    store.release_claims().await.unwrap();
    assert_eq!(store.release_unending().await, Ok(0));
    assert_eq!(store.due(at(3)).await.unwrap().0, [], "its end decides");
    damage(&home, 10, "spec = '{'");
    assert_eq!((store.release_unending().await, store.release_unending().await), (Ok(1), Ok(0)));
    let again = store.claim(channel, 10, at(50), at(3)).await.unwrap();
    assert_eq!((again.len(), again[0].notice_id.clone()), (1, claims[0].notice_id.clone()));
}
