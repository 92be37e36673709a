//! Pages of tasks, and how many there are.

use crate::outbox::Report;
use std::collections::BTreeMap;

use homing_model::counts::TaskCounts;
use homing_model::{Ending, Status, Verdict};

use super::fixture::{Ledger, at, create, ending, finish, finished, first, id, start, submit};
use crate::store::{Filter, Listed};

fn pages_of(limit: u32) -> Filter {
    Filter { limit, ..Filter::default() }
}

async fn list(store: &Ledger, filter: Filter) -> Listed {
    store.list(filter).await.expect("it can be listed")
}

async fn ids(store: &Ledger, filter: Filter) -> Vec<u64> {
    let listed = list(store, filter).await;
    assert!(listed.cursor_valid);
    listed.records.iter().filter_map(|record| (0..200).find(|n| id(*n) == record.id)).collect()
}

/// The order of acceptance, backwards, in both halves.
pub async fn live_tasks_come_first_each_newest_first(store: Ledger) {
    for n in 1..=6 {
        create(&store, submit(n), 0).await;
    }
    for n in [5, 2, 4] {
        finish(&store, n, 1, 0).await;
    }
    assert_eq!(ids(&store, pages_of(10)).await, [6, 3, 1, 5, 4, 2]);
    store.forget(id(4), at(2)).await.expect("it can be forgotten");
    assert_eq!(ids(&store, pages_of(10)).await, [6, 3, 1, 5, 2], "forgotten ones are not listed");
}

/// By owner, by state, by labels, and by all of them.
pub async fn filters_narrow_a_list(store: Ledger) {
    for n in 1..=8 {
        let mut task = submit(n);
        if n % 2 == 0 {
            task.task.owner = "bob".into();
        }
        if n > 4 {
            task.task.spec.labels = BTreeMap::from([("x".into(), "1".into()), ("n".into(), n.to_string())]);
        }
        create(&store, task, 0).await;
    }
    start(&store, 8, 1).await;
    for (n, verdict) in
        [(1, Verdict::Succeeded), (2, Verdict::Failed), (5, Verdict::Failed), (6, Verdict::Lost)]
    {
        let ended = store.finish(first(n), Ending { verdict, ..ending(2, 0) }, Report::default()).await;
        ended.expect("the end is taken");
    }
    let owner = |owner: &str| Filter { owner: Some(owner.into()), ..pages_of(10) };
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(ids(&store, owner("bob")).await, [8, 4, 6, 2]);
    assert_eq!(ids(&store, owner("eve")).await, [] as [u64; 0]);
    let states = |statuses: &[Status]| Filter { statuses: statuses.to_vec(), ..pages_of(10) };
    assert_eq!(ids(&store, states(&[Status::Failed])).await, [5, 2]);
    assert_eq!(ids(&store, states(&[Status::Running])).await, [8]);
    assert_eq!(
        ids(&store, states(&[Status::Failed, Status::Starting, Status::Failed])).await,
        [7, 4, 3, 5, 2]
    );
    let both = Filter { statuses: vec![Status::Failed], ..owner("bob") };
    assert_eq!(ids(&store, both).await, [2]);
    let one = Filter { labels: BTreeMap::from([label("x", "1")]), ..pages_of(10) };
    assert_eq!(ids(&store, one.clone()).await, [8, 7, 6, 5]);
    let two = Filter { labels: BTreeMap::from([label("x", "1"), label("n", "5")]), ..pages_of(10) };
    assert_eq!(ids(&store, two).await, [5]);
    let page = list(&store, Filter { limit: 3, ..one.clone() }).await;
    assert_eq!(page.records.len(), 3);
    assert_eq!(ids(&store, Filter { cursor: page.next_cursor, ..one }).await, [5]);
}

/// It is neither an error nor the first page.
pub async fn a_strange_cursor_is_told_apart(store: Ledger) {
    create(&store, submit(1), 0).await;
    for cursor in ["", "nonsense", "l.1", "f.-1.2"] {
        let listed = list(&store, Filter { cursor: Some(cursor.into()), ..pages_of(10) }).await;
        let nothing = (Vec::new(), None, false);
        assert_eq!((listed.records, listed.next_cursor, listed.cursor_valid), nothing, "{cursor}");
    }
}

/// Whoever turns pages while tasks come and end sees each task of the beginning once.
pub async fn pages_are_complete_and_without_duplicates_while_tasks_end(store: Ledger) {
    for n in 0..40 {
        create(&store, submit(n), 0).await;
        if n % 3 == 0 {
            finish(&store, n, 1, 0).await;
        }
    }
    let (mut seen, mut cursor, mut turn) = (Vec::new(), None, 0);
    loop {
        let listed = list(&store, Filter { cursor: cursor.take(), ..pages_of(7) }).await;
        assert!(listed.cursor_valid && listed.records.len() <= 7);
        seen.extend(listed.records.into_iter().map(|record| record.id));
        // One that was shown ends, one that was not ends, and a new one comes and ends.
        for n in [38 - 3 * turn, 1 + 3 * turn] {
            store.finish(first(n), ending(2, 0), Report::default()).await.expect("the end is judged");
        }
        finished(&store, 100 + turn, 3, 0).await;
        turn += 1;
        match listed.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert!(turn >= 6, "it took several pages");
    let mut expected: Vec<_> = (0..40).map(id).collect();
    expected.sort();
    seen.sort();
    assert_eq!(seen, expected);
}

/// Live, ended, forgotten.
pub async fn counts_follow_every_step(store: Ledger) {
    let counts = |running, finished| Ok(TaskCounts { queued: 0, running, finished });
    assert_eq!(store.counts().await, counts(0, 0));
    create(&store, submit(1), 0).await;
    create(&store, submit(2), 0).await;
    assert_eq!(store.counts().await, counts(2, 0));
    start(&store, 1, 1).await;
    finish(&store, 1, 2, 0).await;
    store.finish(first(1), ending(3, 0), Report::default()).await.expect("the end is judged");
    assert_eq!(store.counts().await, counts(1, 1));
    let census = store.census().await.expect("it can be counted");
    let all: u64 = census.tasks.iter().map(|(_, count)| count).sum();
    assert_eq!((census.tasks(Status::Succeeded), all), (1, 2));
    assert!(store.work().commits >= 4 && store.work().time.count() == store.work().commits);
    store.forget(id(1), at(4)).await.expect("it can be forgotten");
    assert_eq!(store.counts().await, counts(1, 0));
}

/// A page holds what memory has room for, and the next one goes on after it.
pub async fn pages_end_early_where_what_they_hold_is_large(store: Ledger) {
    for n in 0..8 {
        let mut large = submit(n);
        large.task.spec.argv = vec!["x".repeat(1 << 20).as_str().into()];
        create(&store, large, 0).await;
    }
    let (mut seen, mut cursor, mut pages) = (0, None, 0);
    loop {
        let filter = Filter { limit: 1_000, cursor, ..Filter::default() };
        let page = store.list(filter).await.expect("a page");
        assert!(page.records.len() < 6, "{} MiB on one page", page.records.len());
        (seen, pages, cursor) = (seen + page.records.len(), pages + 1, page.next_cursor);
        if cursor.is_none() {
            break;
        }
    }
    assert!(seen == 8 && pages > 1, "{seen} tasks on {pages} pages");
}
