//! The processes of sessions, and what was delivered to them.

use homing_model::AgentName;
use homing_model::notify::When;
use homing_model::reservation::{Access, ConfirmedBy, Confirmer, POLL_MS, Reserve};

use super::fixture::{Ledger, at, create, deliver, finish, handed, oldest, telling};
use crate::session::{Bind, Binding};

/// The name of an agent.
pub(super) fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("a name")
}

/// A binding of session `session` to the process `pid`.
pub(super) fn seat(name: &str, session: &str, pid: u32, millis: i64) -> Bind {
    let binding = Binding {
        agent: agent(name),
        session: session.into(),
        node: "here".into(),
        boot_id: "this".into(),
        pid,
        start: u64::from(pid) + 1,
        streak: 0,
        bound_at: at(millis),
    };
    Bind { binding, alone: false, gives_back: false, polls: false, outside: false }
}

async fn sessions_of(store: &Ledger, pids: &[u32]) -> Vec<String> {
    let found = store.bindings(pids.to_vec()).await.expect("readable");
    found.into_iter().map(|found| format!("{}:{}", found.agent, found.session)).collect()
}

/// One row a session: the last place counts, and looking by process finds it there and nowhere else.
pub async fn a_session_is_in_the_process_that_it_was_last_seen_in(store: Ledger) {
    assert_eq!(store.binding(agent("claude"), "s".into()).await, Ok(None));
    store.bind(seat("claude", "s", 10, 0)).await.expect("taken");
    let mut moved = seat("claude", "s", 20, 5);
    moved.binding.streak = 3;
    store.bind(moved.clone()).await.expect("taken");
    assert_eq!(store.binding(agent("claude"), "s".into()).await, Ok(Some(moved.binding)));
    assert_eq!(store.binding(agent("codex"), "s".into()).await, Ok(None), "another agent's is another");
    assert_eq!(sessions_of(&store, &[10]).await, [""; 0]);
    assert_eq!(sessions_of(&store, &[10, 20, 30]).await, ["claude:s"]);
    let there = store.binding(agent("claude"), "s".into()).await.expect("read").expect("it is somewhere");
    let before = Binding { pid: 10, ..there.clone() };
    assert_eq!(store.unbind(before, at(9)).await, Ok(false), "it went on elsewhere, and stays there");
    assert_eq!(sessions_of(&store, &[20]).await, ["claude:s"]);
    assert_eq!(store.unbind(there.clone(), at(9)).await, Ok(true));
    assert_eq!(store.unbind(there, at(9)).await, Ok(false), "twice is once");
    assert_eq!(sessions_of(&store, &[20]).await, [""; 0]);
}

/// `/clear` makes another session of the same process; a server of several sessions is in all of them.
pub async fn a_process_is_in_one_session_where_its_agent_says_so_and_in_several_else(store: Ledger) {
    for session in ["a", "b"] {
        store.bind(seat("codex", session, 10, 0)).await.expect("taken");
        store.bind(Bind { alone: true, ..seat("claude", session, 10, 0) }).await.expect("taken");
    }
    assert_eq!(sessions_of(&store, &[10]).await, ["claude:b", "codex:a", "codex:b"]);
    let mut stranger = Bind { alone: true, ..seat("claude", "c", 10, 0) };
    stranger.binding.start += 1;
    store.bind(stranger).await.expect("taken");
    assert_eq!(sessions_of(&store, &[10]).await, ["claude:b", "claude:c", "codex:a", "codex:b"]);
}

/// What was told is held for the owner; it is gone when that comes back in time, and open again after.
pub async fn p6_delivered_notices_are_confirmed_or_return(store: Ledger) {
    for n in 1..=2 {
        create(&store, telling(n, When::Always, &[]), 0).await;
        finish(&store, n, 1, 0).await;
    }
    let taken = store.take("ann".into(), oldest(9, 50), at(2)).await.expect("taken");
    let ids: Vec<_> = taken.iter().map(|notice| notice.id.clone()).collect();
    let theirs = store.take("bob".into(), handed(ids.clone(), ConfirmedBy::Call, 100), at(0)).await;
    assert_eq!(theirs, Ok(Vec::new()), "none of bob's");
    let told = store.take("ann".into(), handed(ids.clone(), ConfirmedBy::Call, 100), at(0)).await;
    assert_eq!(told, Ok(taken));
    assert_eq!(store.unconfirmed(at(60)).await, Ok(vec![(Confirmer::Owner("ann".into()), at(100)); 2]));
    assert_eq!(store.peek("ann".into(), 9, Access::Look, at(99)).await.expect("readable").notices, []);
    assert_eq!(
        store.peek("ann".into(), 9, Access::Look, at(100)).await.expect("readable").notices.len(),
        2,
        "nobody came back"
    );
    let first: Vec<_> = ids.iter().take(1).cloned().collect();
    store.take("ann".into(), handed(first, ConfirmedBy::Call, 300), at(0)).await.expect("taken");
    store.confirm(Confirmer::Owner("ann".into()), ConfirmedBy::Call, at(200)).await.expect("taken");
    let left = store.peek("ann".into(), 9, Access::Look, at(400)).await.expect("readable").notices;
    assert_eq!(left.iter().map(|notice| notice.id.clone()).collect::<Vec<_>>(), ids.get(1..).expect("one"));
}

/// The process died before it came back: whether it read what it was told is not known, so the session is told again.
pub async fn p5_a_delivery_to_a_process_that_is_gone_returns(store: Ledger) {
    for (n, owner) in [(1, "claude:s"), (2, "claude:t")] {
        let mut submit = telling(n, When::Always, &[]);
        submit.task.owner = owner.into();
        create(&store, submit, 0).await;
        finish(&store, n, 1, 0).await;
        let taken = store.take(owner.into(), oldest(9, 50), at(2)).await.expect("taken");
        let ids = taken.into_iter().map(|notice| notice.id).collect();
        store.take(owner.into(), handed(ids, ConfirmedBy::Call, 1_000), at(0)).await.expect("taken");
    }
    store.bind(seat("claude", "s", 10, 3)).await.expect("taken");
    assert_eq!(store.peek("claude:s".into(), 9, Access::Look, at(4)).await.expect("readable").notices, []);
    store.bind(Bind { gives_back: true, ..seat("claude", "s", 20, 5) }).await.expect("taken");
    assert_eq!(
        store.peek("claude:s".into(), 9, Access::Look, at(6)).await.expect("readable").notices.len(),
        1
    );
    assert_eq!(
        store.peek("claude:t".into(), 9, Access::Look, at(6)).await.expect("readable").notices,
        [],
        "nobody else's"
    );
    store.confirm(Confirmer::Owner("claude:s".into()), ConfirmedBy::Call, at(7)).await.expect("taken");
    assert_eq!(
        store.peek("claude:s".into(), 9, Access::Look, at(8)).await.expect("readable").notices.len(),
        1,
        "it was not told"
    );
}

/// Neither old ones nor many pile up.
pub async fn sessions_are_kept_for_a_while_and_so_many(store: Ledger) {
    store.bind(seat("gemini", "old", 1, 0)).await.expect("taken");
    let month = 30 * 24 * 3_600 * 1_000;
    for n in 0..1_001 {
        store.bind(seat("claude", &format!("s{n}"), 10 + n, month + i64::from(n))).await.expect("taken");
    }
    assert_eq!(store.binding(agent("gemini"), "old".into()).await, Ok(None));
    assert_eq!(store.binding(agent("claude"), "s0".into()).await, Ok(None), "the newest thousand stay");
    assert!(store.binding(agent("claude"), "s1".into()).await.expect("readable").is_some());
    store.bind(seat("claude", "new", 1, month * 3)).await.expect("taken");
    assert_eq!(store.binding(agent("claude"), "s1000".into()).await, Ok(None));
    assert!(store.binding(agent("claude"), "new".into()).await.expect("readable").is_some());
}

/// An MCP client polls for the end of its task: others see that only once it did not come for it, also after a restart of the agent.
pub async fn p6_a_polled_end_is_held_for_its_client(store: Ledger) {
    let mut submit = telling(1, When::Always, &[]);
    submit.task.owner = "claude:s".into();
    submit.task.spec.reserve = Some(Reserve::Poll);
    create(&store, submit, 0).await;
    store.bind(seat("claude", "s", 10, 0)).await.expect("taken");
    finish(&store, 1, 1, 0).await;
    let open = async |millis| {
        store.peek("claude:s".into(), 9, Access::Look, at(millis)).await.expect("readable").notices.len()
    };
    assert_eq!((open(2).await, open(POLL_MS).await, open(POLL_MS + 1).await), (0, 0, 1));
    let again = Bind { gives_back: true, polls: true, ..seat("claude", "s", 20, 50_000) };
    store.bind(again).await.expect("taken");
    assert_eq!((open(50_001).await, open(50_000 + POLL_MS).await), (0, 1));
    store.bind(Bind { gives_back: true, ..seat("claude", "s", 30, 50_002) }).await.expect("taken");
    deliver(&store, "claude:s", 1, true, 200_000).await;
    store.confirm(Confirmer::Owner("claude:s".into()), ConfirmedBy::Call, at(60_000)).await.expect("taken");
    assert_eq!(open(300_000).await, 0, "it was told by a poll");
}
