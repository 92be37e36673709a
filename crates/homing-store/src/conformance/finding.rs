//! Finding tasks: by id, by its start, by name, by `@last`.

use homing_model::Reference;
use homing_model::notify::When;
use homing_model::reservation::Access;

use super::fixture::{Ledger, at, create, finish, finished, get, id, named, submit, telling};
use crate::outbox::DeliveryFilter;
use crate::store::Found;

async fn find(store: &Ledger, text: &str) -> Found {
    store.find(Reference::parse(text), "ann".into()).await.expect("it can be looked up")
}

/// Without those that ended.
pub async fn live_tasks_are_listed_oldest_first(store: Ledger) {
    for n in [3, 1, 2] {
        create(&store, submit(n), 0).await;
    }
    finish(&store, 1, 1, 0).await;
    let (live, damaged) = store.live().await.expect("they can be listed");
    assert_eq!(live.into_iter().map(|record| record.id).collect::<Vec<_>>(), [id(3), id(2)]);
    assert_eq!(damaged, []);
}

/// What waits for the owner comes first: that is what can be acknowledged.
pub async fn a_start_finds_notices_and_deliveries(store: Ledger) {
    for n in [1, 2] {
        create(&store, telling(n, When::Always, &["https://x.example/"]), 0).await;
        finish(&store, n, 1, 0).await;
    }
    let waiting = store.peek("ann".into(), 9, Access::Look, at(2)).await.expect("readable").notices;
    let ids: Vec<_> = waiting.into_iter().map(|notice| notice.id).collect();
    let all = store.find_notices("n-".into(), "ann".into()).await.expect("found");
    assert!(all.len() == 2 && ids.iter().all(|id| all.contains(id)), "{all:?}");
    let [first, second] = &ids[..] else { panic!("{ids:?}") };
    assert_eq!(store.find_notices(first.to_string(), "bob".into()).await, Ok(vec![first.clone()]));
    store.acknowledge("ann".into(), vec![first.clone()], Vec::new()).await.expect("taken");
    assert_eq!(store.find_notices("n-".into(), "ann".into()).await, Ok(vec![second.clone()]));
    assert_eq!(store.find_notices(first.to_string(), "ann".into()).await, Ok(vec![first.clone()]));
    assert_eq!(store.find_notices("n-zzzzzzzzzz".into(), "ann".into()).await, Ok(Vec::new()));

    let filter = DeliveryFilter { limit: 9, ..DeliveryFilter::default() };
    let deliveries = store.deliveries(filter).await.expect("readable").items;
    let mut ids: Vec<_> = deliveries.iter().map(|delivery| delivery.id.clone()).collect();
    ids.sort();
    assert_eq!(store.find_deliveries("d-".into()).await, Ok(ids.clone()));
    assert_eq!(store.find_deliveries(ids[0].as_str()[..11].into()).await, Ok(vec![ids[0].clone()]));
    assert!(deliveries.iter().all(|delivery| delivery.notice_type.as_deref() == Some("task.completed")));
}

/// Tombstones included.
pub async fn a_start_of_an_id_finds_one_or_names_several(store: Ledger) {
    // The ids 1 and 29 start alike, 2 does not.
    create(&store, submit(1), 0).await;
    finished(&store, 29, 0, 0).await;
    finished(&store, 2, 0, 0).await;
    store.forget(id(2), at(1)).await.expect("it can be forgotten");
    let start = |n: u64, length: usize| id(n).as_str()[..length].to_owned();
    assert_eq!(find(&store, &start(2, 3)).await, Found::One(id(2)));
    assert_eq!(
        find(&store, &start(2, 3)[2..]).await,
        Found::One(id(2)),
        "the prefix of all ids may be left out"
    );
    assert_eq!(find(&store, &start(29, 5)).await, Found::One(id(29)));
    assert_eq!(find(&store, id(1).as_str()).await, Found::One(id(1)));
    assert_eq!(find(&store, id(5).as_str()).await, Found::None);
    assert_eq!(find(&store, "t-z").await, Found::None);
    let Found::Several(mut several) = find(&store, &start(1, 3)).await else { panic!("two start so") };
    several.sort();
    let mut both = [id(1), id(29)];
    both.sort();
    assert_eq!(several, both);
}

/// Unique among live ones, else the last that ended, of those that are kept first.
pub async fn a_name_finds_the_live_task_then_the_newest_ended(store: Ledger) {
    for n in [1, 2, 3] {
        create(&store, named(n, "nightly"), 0).await;
    }
    assert!(matches!(find(&store, "nightly").await, Found::Several(ids) if ids.len() == 3));
    finish(&store, 2, 1, 0).await;
    finish(&store, 1, 2, 0).await;
    assert_eq!(find(&store, "nightly").await, Found::One(id(3)));
    finish(&store, 3, 3, 0).await;
    assert_eq!(find(&store, "nightly").await, Found::One(id(3)));
    assert_eq!(find(&store, "Nightly").await, Found::None);
    store.forget(id(3), at(4)).await.expect("it can be forgotten");
    assert_eq!(
        find(&store, "nightly").await,
        Found::One(id(2)),
        "of the others more is kept than a tombstone"
    );
    for n in [1, 2] {
        store.forget(id(n), at(5)).await.expect("it can be forgotten");
    }
    assert_eq!(find(&store, "nightly").await, Found::One(id(3)), "a name that was given is answered (P12)");
}

/// What a person stops or forgets by its name must not be another task by chance; the start of an id can be written with its `t-`.
pub async fn a_name_comes_before_an_id_that_starts_so(store: Ledger) {
    let start = id(1).as_str()[2..4].to_owned();
    create(&store, submit(1), 0).await;
    create(&store, named(2, &start), 0).await;
    assert_eq!(find(&store, &start).await, Found::One(id(2)));
    finish(&store, 2, 1, 0).await;
    assert_eq!(find(&store, &start).await, Found::One(id(2)));
    assert_eq!(find(&store, &format!("t-{start}")).await, Found::One(id(1)));
}

/// Live or ended, but not another's.
pub async fn at_last_is_the_newest_task_of_the_owner(store: Ledger) {
    assert_eq!(find(&store, "@last").await, Found::None);
    create(&store, submit(1), 0).await;
    assert_eq!(find(&store, "@last").await, Found::One(id(1)));
    finished(&store, 2, 0, 0).await;
    assert_eq!(find(&store, "@last").await, Found::One(id(2)));
    let mut other = submit(3);
    other.task.owner = "bob".into();
    create(&store, other, 0).await;
    assert_eq!(find(&store, "@last").await, Found::One(id(2)));
    assert_eq!(get(&store, 3).await.owner, "bob");
}
