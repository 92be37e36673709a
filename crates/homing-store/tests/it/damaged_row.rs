//! One row that makes no sense costs nobody else anything.

use homing_store::conformance::fixture::{at, create, done, finish, first, get, id, submit};
use homing_store::outbox::Report;
use homing_store::store::Filter;
use homing_store::{Error, Store};
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
    let stops: Vec<_> = (0..3).map(|n| store.stop_requested(id(n), "ann".into(), 1, at(1))).collect();
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
    assert!(
        store
            .finish(first(1), homing_store::conformance::fixture::ending(2, 0), Report::default())
            .await
            .is_err()
    );
    assert!(done(store.forget(id(1), at(2)).await.unwrap()).forgotten);
}
