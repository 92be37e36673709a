//! Tasks from inside tasks, and tasks from the network.

use homing_model::Session;
use homing_model::notify::{Notify, When};
use homing_model::reservation::Access;
use tokio::task::JoinSet;

use super::binding::seat;
use super::fixture::{Ledger, at, channel, create, finish, finished, get, id, keyed, submit, telling};
use crate::outbox::DeliveryFilter;
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
        let claimed = store
            .claim(channel("ann", &format!("https://{n}.example")), 9, at(90), at(3))
            .await
            .expect("claimed");
        let networks: Vec<bool> = claimed.iter().map(|claim| claim.network).collect();
        assert_eq!(networks, [network]);
    }
}

/// A task of this session, to be told by these targets.
fn of_session(mut submit: Submit, session: &str, targets: &[&str]) -> Submit {
    submit.task.owner = session.to_owned();
    submit.task.spec.session =
        Session::named(session).map(|named| Session { asleep: session.starts_with("gemini:"), ..named });
    let targets = targets.iter().map(|target| target.parse().expect("a target")).collect();
    submit.task.spec.notify = Some(Notify { on: When::Always, targets, secret: None });
    submit
}

/// Whom the end of a task wakes, and by which target; and whose inbox has it.
async fn reported(store: &Ledger, n: u64) -> (Vec<(String, String)>, Vec<String>) {
    let filter = DeliveryFilter { task: Some(id(n)), limit: 9, ..DeliveryFilter::default() };
    let wakes = store.deliveries(filter).await.expect("readable").items;
    let mut owners = Vec::new();
    for each in store.waiting(String::new(), 99).await.expect("readable") {
        let entries =
            store.peek(each.owner.clone(), 99, Access::Look, at(99)).await.expect("readable").notices;
        if entries.iter().any(|entry| entry.task.id == id(n)) {
            owners.push(each.owner);
        }
    }
    (wakes.into_iter().map(|wake| (wake.owner, wake.target)).collect(), owners)
}

/// What a sub-agent has left running wakes the session that started it, by the wake that its task
/// names or by the session itself.
pub async fn p5_a_late_job_of_a_sub_agent_wakes_the_outer_session(store: Ledger) {
    let cases = [
        ("claude:a", &["inbox"][..], Some("wake:claude:a")),
        ("claude:b", &["inbox", "wake:codex:c"], Some("wake:codex:c")),
        ("claude:d", &[], None),
        ("gemini:e", &["inbox"], None),
    ];
    for (n, (outer, targets, woken)) in (1..).zip(cases) {
        let (asked, job, own) = (n * 10, n * 10 + 1, format!("claude:own-{n}"));
        create(&store, of_session(submit(asked), outer, targets), 0).await;
        create(&store, of_session(child(job, asked, 9), &own, &["inbox", "wake"]), 1).await;
        let claim = SessionClaim { task: id(asked), session: own.clone(), replaces: None, inside: None };
        assert_eq!(store.claim_session(claim).await, Ok(Some(own)));
        finish(&store, asked, 2, 0).await;
        finish(&store, job, 3, 0).await;
        let woken: Vec<_> = woken.iter().map(|target| (outer.to_owned(), (*target).to_owned())).collect();
        assert_eq!(reported(&store, job).await, (woken, vec![outer.to_owned()]), "{outer}");
    }
}

/// A caller inside a task can name any session as the owner of the next sub-agent: what that one
/// leaves running is reported there, and wakes nothing.
pub async fn p11_a_late_job_wakes_no_session_named_inside_a_task(store: Ledger) {
    let (named, own) = ("codex:named", "claude:own");
    create(&store, of_session(submit(1), "claude:outer", &["inbox"]), 0).await;
    let claim = async |n: u64, session: &str| {
        let claim = SessionClaim { task: id(n), session: session.to_owned(), replaces: None, inside: None };
        assert_eq!(store.claim_session(claim).await.expect("answered").as_deref(), Some(session));
    };
    claim(1, named).await;
    create(&store, of_session(child(2, 1, 9), named, &["inbox"]), 1).await;
    claim(2, own).await;
    create(&store, of_session(child(3, 2, 9), own, &["inbox", "wake"]), 2).await;
    finish(&store, 2, 3, 0).await;
    finish(&store, 3, 4, 0).await;
    assert_eq!(reported(&store, 3).await, (Vec::new(), vec![named.to_owned()]));
}

/// While another task continues the session of a sub-agent, what it left running reports to that
/// session again.
pub async fn p5_a_continued_sub_agent_hears_of_its_own_jobs(store: Ledger) {
    let (outer, own) = ("claude:outer", "claude:own");
    let claim = async |n: u64| {
        let claim = SessionClaim { task: id(n), session: own.to_owned(), replaces: None, inside: None };
        assert_eq!(store.claim_session(claim).await, Ok(Some(own.to_owned())), "{n}");
    };
    create(&store, of_session(submit(1), outer, &["inbox"]), 0).await;
    claim(1).await;
    for n in [2, 3] {
        create(&store, of_session(child(n, 1, 9), own, &["inbox", "wake"]), 1).await;
    }
    finish(&store, 1, 2, 0).await;
    create(&store, of_session(submit(4), outer, &["inbox"]), 3).await;
    claim(4).await;
    finish(&store, 2, 4, 0).await;
    let inside = (vec![(own.to_owned(), format!("wake:{own}"))], vec![own.to_owned()]);
    assert_eq!(reported(&store, 2).await, inside);
    finish(&store, 4, 5, 0).await;
    finish(&store, 3, 6, 0).await;
    let outside = (vec![(outer.to_owned(), format!("wake:{outer}"))], vec![outer.to_owned()]);
    assert_eq!(reported(&store, 3).await, outside);
    assert_eq!(reported(&store, 2).await.1, [outer], "what it has not read goes there too");
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
    store.bind(seat("claude", "s", 7, 1)).await.expect("bound inside");
    create(&store, owned(3, "claude:s", Some(1)), 1).await;
    assert_eq!(get(&store, 1).await.nested_session.as_deref(), Some("claude:s"), "it stays its own");
    store.bind(Bind { outside: true, ..seat("claude", "s", 8, 2) }).await.expect("bound outside");
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
    let there = |pid| seat("claude", "s", pid, 1);
    store.bind(there(7)).await.expect("bound");
    assert_eq!(claim(1, "claude:s", None).await, None, "it was bound after the look, or its process is gone");
    assert_eq!(claim(1, "claude:s", Some(there(8))).await, None, "it has moved since the look");
    assert_eq!(store.unbind(there(7).binding, at(9)).await, Ok(true));
    assert_eq!(claim(1, "claude:s", None).await, None, "it has ended there, and may be resumed");
    let next = Bind { alone: true, ..seat("claude", "next", 7, 2) };
    store.bind(there(7)).await.expect("bound");
    store.bind(next).await.expect("bound");
    assert_eq!(claim(1, "claude:s", None).await, None, "its process has begun another");
    assert_eq!(claim(1, "claude:s", Some(there(7))).await.as_deref(), Some("claude:s"));
    finish(&store, 1, 2, 0).await;
    assert_eq!(claim(2, "claude:s", None).await.as_deref(), Some("claude:s"), "the next task continues it");
}
