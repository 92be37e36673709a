//! Tasks from inside tasks, and tasks from the network.

use homing_model::Agent;
use homing_model::notify::When;
use tokio::task::JoinSet;

use super::fixture::{Ledger, at, create, finish, finished, get, id, keyed, submit, telling};
use super::seating::seat;
use crate::session::{Bind, SessionClaim};
use crate::store::{Filter, Submit, Submitted};

/// A submit of the `n`th task from inside another, which may have at most so many live ones.
fn child(n: u64, parent: u64, most: u32) -> Submit {
    let mut submit = submit(n);
    submit.task.parent = Some(id(parent));
    submit.task.depth = 1;
    submit.children = most;
    submit
}

/// The count is taken in the transaction that accepts: nobody comes in between.
pub async fn p11_however_many_at_once_a_parent_has_no_more_live_children_than_it_may(store: Ledger) {
    create(&store, submit(0), 0).await;
    let mut asking = JoinSet::new();
    for n in 1..=100 {
        asking.spawn(store.submit(child(n, 0, 8), at(1)));
    }
    let mut created = Vec::new();
    for answer in asking.join_all().await {
        match answer.expect("the submit is answered") {
            Submitted::Created(record) => created.push(record.id),
            Submitted::TooManyChildren => {}
            other => panic!("expected one of both, got {other:?}"),
        }
    }
    assert_eq!(created.len(), 8);
    let nth = |n: u64| (1..=100).find(|child| id(*child) == created[n as usize]).expect("one of them");
    assert_eq!(store.submit(child(101, 0, 8), at(2)).await, Ok(Submitted::TooManyChildren));
    assert_eq!(store.get(id(101)).await, Ok(None), "a refused submit leaves nothing");
    create(&store, child(102, nth(0), 8), 2).await;
    finish(&store, nth(1), 3, 0).await;
    create(&store, child(103, 0, 8), 3).await;
    assert_eq!(store.submit(child(104, 0, 8), at(4)).await, Ok(Submitted::TooManyChildren));
    create(&store, child(105, 0, 9), 4).await;

    // What joins makes no child, and what is nobody's child is not counted.
    let mut first = keyed(110, "build", homing_model::OnDuplicate::Join);
    first.children = 0;
    create(&store, first, 5).await;
    let mut second = child(111, 0, 0);
    second.task.spec.key = Some("build".into());
    let joined = store.submit(second, at(5)).await;
    assert!(matches!(&joined, Ok(Submitted::Joined(record)) if record.id == id(110)), "{joined:?}");
}

/// Children, their children, live and ended; pages of them too.
pub async fn a_list_within_a_task_holds_what_came_of_it_and_nothing_else(store: Ledger) {
    finished(&store, 1, 0, 0).await;
    create(&store, submit(2), 0).await;
    create(&store, child(3, 1, 9), 1).await;
    create(&store, child(4, 3, 9), 1).await;
    create(&store, child(5, 2, 9), 1).await;
    create(&store, child(6, 1, 9), 1).await;
    finish(&store, 3, 2, 0).await;
    let listed = async |filter: Filter| {
        let listed = store.list(filter).await.expect("it can be listed");
        let number = |task| (0..10).find(|n| id(*n) == task).expect("a task of ours");
        let ids: Vec<u64> = listed.records.into_iter().map(|record| number(record.id)).collect();
        (ids, listed.next_cursor)
    };
    let within = |n: u64, limit: u32| Filter { within: Some(id(n)), limit, ..Filter::default() };
    assert_eq!(listed(within(1, 10)).await.0, [6, 4, 3]);
    assert_eq!(listed(within(2, 10)).await.0, [5]);
    assert!(listed(within(4, 10)).await.0.is_empty());
    assert_eq!(
        listed(Filter { statuses: vec![homing_model::Status::Succeeded], ..within(1, 10) }).await.0,
        [3]
    );
    assert!(listed(Filter { owner: Some("bob".into()), ..within(1, 10) }).await.0.is_empty());
    let (first, cursor) = listed(within(1, 1)).await;
    finish(&store, 4, 3, 0).await;
    let (rest, end) = listed(Filter { cursor, ..within(1, 10) }).await;
    assert_eq!(
        (first, rest, end),
        (vec![6], vec![4, 3], None),
        "what ends meanwhile is neither missed nor told twice"
    );
    store.forget(id(3), at(4)).await.expect("it can be forgotten");
    assert_eq!(listed(within(1, 10)).await.0, [6, 4], "and what came of it stays in the family");
}

/// The guard of a webhook decides by it at every attempt.
pub async fn p11_whether_its_caller_was_on_the_network_stays_with_a_delivery(store: Ledger) {
    for (n, network) in [(1, true), (2, false)] {
        let mut submit = telling(n, When::Always, &[&format!("https://{n}.example/")]);
        submit.task.network = network;
        create(&store, submit, 0).await;
        assert_eq!(get(&store, n).await.network, network);
        finish(&store, n, 1, 0).await;
        store.forget(id(n), at(2)).await.expect("it can be forgotten");
        let claimed = store.claim(format!("https://{n}.example"), 9, at(90), at(3)).await.expect("claimed");
        let networks: Vec<bool> = claimed.iter().map(|claim| claim.network).collect();
        assert_eq!(networks, [network]);
    }
}

/// Only a session without tasks elsewhere can be claimed, and the first claim stays.
pub async fn p11_a_nested_session_is_recorded_once_and_never_anothers(store: Ledger) {
    let owned = |n: u64, owner: &str, parent: Option<u64>| {
        let mut submit = parent.map_or_else(|| submit(n), |parent| child(n, parent, 9));
        submit.task.owner = owner.to_owned();
        submit
    };
    let claim = async |task: u64, session: &str, replaces: Option<&str>| {
        let replaces = replaces.map(str::to_owned);
        let claim = SessionClaim { task: id(task), session: session.to_owned(), replaces, inside: None };
        store.claim_session(claim).await.expect("the claim is answered")
    };
    for n in [1, 2, 3] {
        create(&store, owned(n, "claude:outer", None), 0).await;
    }
    create(&store, owned(4, "claude:live", None), 0).await;
    create(&store, owned(5, "claude:ended", None), 0).await;
    finish(&store, 5, 1, 0).await;
    for foreign in ["claude:outer", "claude:live", "claude:ended"] {
        assert_eq!(claim(1, foreign, None).await, None, "{foreign}");
    }
    // A task that was submitted from inside does not make its owner foreign.
    create(&store, owned(6, "claude:own", Some(1)), 2).await;
    assert_eq!(claim(1, "claude:own", None).await.as_deref(), Some("claude:own"));
    assert_eq!(get(&store, 1).await.nested_session.as_deref(), Some("claude:own"));
    assert_eq!(claim(1, "claude:own", None).await.as_deref(), Some("claude:own"));
    assert_eq!(claim(1, "claude:other", None).await.as_deref(), Some("claude:own"), "the first stays");
    assert_eq!(claim(2, "claude:own", None).await, None, "its task still runs");
    // The agent's own next conversation replaces it, another session's does not.
    assert_eq!(claim(1, "claude:live", Some("claude:own")).await.as_deref(), Some("claude:own"));
    assert_eq!(claim(1, "claude:next", Some("claude:own")).await.as_deref(), Some("claude:next"));
    finish(&store, 1, 3, 0).await;
    assert_eq!(claim(2, "claude:next", None).await.as_deref(), Some("claude:next"), "it is continued");
    create(&store, owned(7, "claude:another", None), 4).await;
    finish(&store, 2, 5, 0).await;
    assert_eq!(claim(7, "claude:next", None).await, None, "another owner's");
    assert_eq!(claim(99, "claude:x", None).await, None);
}

/// A session that was claimed before it was there is not that of the agent inside the task once a
/// process or a task elsewhere has it; where a task that has it itself submits, it is.
pub async fn p11_a_claim_in_advance_ends_when_the_session_is_elsewhere(store: Ledger) {
    let owned = |n: u64, owner: &str, parent: Option<u64>| {
        let mut submit = parent.map_or_else(|| submit(n), |parent| child(n, parent, 9));
        submit.task.owner = owner.to_owned();
        submit
    };
    let claim = async |task: u64, session: &str| {
        let claim =
            SessionClaim { task: id(task), session: session.to_owned(), replaces: None, inside: None };
        store.claim_session(claim).await.expect("the claim is answered")
    };
    for n in [1, 2] {
        create(&store, owned(n, "claude:outer", None), 0).await;
    }
    assert_eq!(claim(1, "claude:s").await.as_deref(), Some("claude:s"));
    store.bind(seat(Agent::Claude, "s", 7, 1)).await.expect("bound inside");
    create(&store, owned(3, "claude:s", Some(1)), 1).await;
    assert_eq!(get(&store, 1).await.nested_session.as_deref(), Some("claude:s"), "it stays its own");
    store.bind(Bind { outside: true, ..seat(Agent::Claude, "s", 8, 2) }).await.expect("bound outside");
    assert_eq!(get(&store, 1).await.nested_session, None);
    assert_eq!(claim(2, "claude:t").await.as_deref(), Some("claude:t"));
    create(&store, owned(4, "claude:t", None), 3).await;
    assert_eq!(get(&store, 2).await.nested_session, None);
    assert_eq!(claim(2, "claude:t").await, None, "it has a task elsewhere");
}

/// What counts is where the session is when the claim is recorded, not when the engine looked.
pub async fn p11_a_session_of_another_process_is_not_claimed(store: Ledger) {
    let owned = |n: u64| {
        let mut submit = submit(n);
        submit.task.owner = "claude:outer".to_owned();
        submit
    };
    let claim = async |task: u64, session: &str, inside: Option<Bind>| {
        let inside = inside.map(|bind| bind.binding);
        let claim = SessionClaim { task: id(task), session: session.to_owned(), replaces: None, inside };
        store.claim_session(claim).await.expect("the claim is answered")
    };
    for n in [1, 2] {
        create(&store, owned(n), 0).await;
    }
    let there = |pid| seat(Agent::Claude, "s", pid, 1);
    store.bind(there(7)).await.expect("bound");
    assert_eq!(claim(1, "claude:s", None).await, None, "it was bound after the look, or its process is gone");
    assert_eq!(claim(1, "claude:s", Some(there(8))).await, None, "it has moved since the look");
    assert_eq!(claim(1, "claude:s", Some(there(7))).await.as_deref(), Some("claude:s"));
    finish(&store, 1, 2, 0).await;
    assert_eq!(claim(2, "claude:s", None).await.as_deref(), Some("claude:s"), "the next task continues it");
}
