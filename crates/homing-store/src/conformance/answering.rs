//! Agents as tasks: what they say of themselves, their answers, and sessions that go on.

use std::collections::BTreeMap;

use homing_model::agent::{Driver, Heard, SubAgent, Tokens};
use homing_model::notice::Body;
use homing_model::notify::When;
use homing_model::reservation::Access;
use homing_model::{Answer, AnswerState, Kind, Masks, OsText, Outcome, Verdict};

use super::binding::{agent, seat};
use super::fixture::{Ledger, at, create, done, ending, first, get, id, submit, telling};
use crate::outbox::Report;
use crate::record::Record;
use crate::session::{Bind, SessionClaim};
use crate::store::{Submit, Submitted};

/// The `n`th task, an agent; if it continues another, in this session.
fn asking(n: u64, continues: Option<(u64, &str)>) -> Submit {
    let mut submit = telling(n, When::Always, &[]);
    submit.task.kind = Kind::Agent;
    submit.task.spec.kind = Kind::Agent;
    submit.task.spec.prompt = Some("why?".into());
    let session_id = continues.map(|(_, session)| session.to_owned());
    submit.task.agent = Some(SubAgent {
        name: "claude".into(),
        driver: Driver::Agent(agent("claude")),
        folder: Some("/home/ann/.claude".into()),
        continues: continues.map(|(earlier, _)| id(earlier)),
        heard: Heard { session_id, ..Heard::default() },
    });
    submit
}

/// Ends it with what it said; it was in this session.
async fn answered(store: &Ledger, n: u64, session: &str) -> Record {
    let heard = Heard { session_id: Some(session.into()), ..Heard::default() };
    let report = Report { entropy: n, answer: Some("42".into()), agent: Some(heard), ..Report::default() };
    done(store.finish(first(n), ending(5, 9), report).await.expect("ended"))
}

/// One transaction: the answer, what the agent said of itself, and the notice that tells it.
pub async fn p5_an_agents_end_carries_its_answer_or_the_words_for_none(store: Ledger) {
    let accepted = create(&store, asking(1, None), 0).await;
    assert_eq!((accepted.kind, accepted.answer.as_ref()), (Kind::Agent, None));
    assert_eq!(get(&store, 1).await, accepted);
    let heard = Heard {
        session_id: Some("s-1".into()),
        turns: Some(3),
        cost_usd: Some(0.25),
        tokens: Some(Tokens { input: 10, cached: 4, output: 2 }),
        doing: Some("Bash: make".into()),
    };
    let report = Report { answer: Some("42".into()), agent: Some(heard.clone()), ..Report::default() };
    let record = done(store.finish(first(1), ending(5, 9), report).await.expect("ended"));
    assert_eq!(record.answer, Some(Answer { text: "42".into(), state: AnswerState::Ok }));
    let kept = record.agent.as_ref().map(|agent| agent.heard.clone());
    assert_eq!(kept, Some(Heard { doing: None, ..heard }), "what it was at is over");
    assert_eq!(get(&store, 1).await, record);

    for (n, verdict, told, text) in [
        (2, Verdict::Succeeded, None, "(no answer produced)"),
        (3, Verdict::Failed, None, "(background task failed: exit 3)"),
        (4, Verdict::TimedOut, None, "(background task failed: exit 3)"),
        (5, Verdict::Failed, Some("no credit"), "(background task failed: no credit)"),
    ] {
        create(&store, asking(n, None), 0).await;
        let mut end = ending(5, 9);
        end.verdict = verdict;
        end.outcome = Outcome { exit_code: Some(3), ..Outcome::default() };
        let report = Report { entropy: n, answer: told.map(str::to_owned), ..Report::default() };
        let record = done(store.finish(first(n), end, report).await.expect("ended"));
        assert_eq!(record.answer.as_ref().map(|answer| answer.text.as_str()), Some(text));
        let told = store.peek("ann".into(), 9, Access::Look, at(5)).await.expect("readable").notices.pop();
        let Some(Body::Completed(completed)) = told.map(|notice| notice.body) else {
            panic!("a completion waits")
        };
        assert_eq!(completed.answer.as_deref(), Some(text));
    }
}

/// In the record as in the notice.
pub async fn p11_an_answer_repeats_no_secret(store: Ledger) {
    let values = BTreeMap::from([("API_TOKEN".to_owned(), OsText::from("hunter2"))]);
    let mut submit = asking(1, None);
    submit.task.masks = Masks::new(9, &values, |_| false);
    create(&store, submit, 0).await;
    let report = Report { answer: Some("it is hunter2".into()), ..Report::default() };
    let record = done(store.finish(first(1), ending(5, 9), report).await.expect("ended"));
    let masked = "it is [secret API_TOKEN]";
    assert_eq!(record.answer.as_ref().map(|answer| answer.text.as_str()), Some(masked));
    assert_eq!(get(&store, 1).await, record);
}

/// One at a time, and never after the task it belongs to was forgotten.
pub async fn a_session_goes_on_in_one_task_at_a_time(store: Ledger) {
    create(&store, asking(1, None), 0).await;
    answered(&store, 1, "s-1").await;
    let second = create(&store, asking(2, Some((1, "s-1"))), 6).await;
    assert_eq!(second.agent.and_then(|agent| agent.continues), Some(id(1)));
    let at_once = store.submit(asking(3, Some((1, "s-1"))), at(7)).await;
    assert_eq!(at_once, Ok(Submitted::SessionBusy(id(2))));
    answered(&store, 2, "s-1").await;
    create(&store, asking(3, Some((2, "s-1"))), 8).await;
    answered(&store, 3, "s-1").await;
    done(store.forget(id(2), at(9)).await.expect("forgotten"));
    assert_eq!(
        store.submit(asking(4, Some((2, "s-1"))), at(9)).await,
        Ok(Submitted::SessionGone(id(2))),
        "its own record is gone"
    );
    create(&store, asking(4, Some((3, "s-1"))), 9).await;
}

/// The last of them takes the session along; a tombstone says where it was.
pub async fn a_session_is_kept_while_a_task_of_it_is(store: Ledger) {
    let released = |n| store.released_session(id(n));
    assert_eq!(released(1).await, Ok(None), "no such task");
    create(&store, asking(1, None), 0).await;
    assert_eq!(released(1).await, Ok(None), "no task has reported it yet");
    answered(&store, 1, "s-1").await;
    create(&store, asking(2, Some((1, "s-1"))), 6).await;
    let tombstone = done(store.forget(id(1), at(7)).await.expect("forgotten"));
    let agent = tombstone.agent.expect("a tombstone knows its agent");
    assert_eq!((agent.heard.session_id.as_deref(), agent.name.as_str()), (Some("s-1"), "claude"));
    assert_eq!((tombstone.answer, tombstone.spec.prompt), (None, None));
    assert_eq!(released(1).await, Ok(None), "a live task has it");
    answered(&store, 2, "s-2").await;
    assert_eq!(released(1).await, Ok(Some(at(0))), "the second task reported another session");
    assert_eq!(released(2).await, Ok(None));
    create(&store, asking(3, Some((2, "s-2"))), 9).await;
    answered(&store, 3, "s-2").await;
    done(store.forget(id(2), at(10)).await.expect("forgotten"));
    assert_eq!(released(2).await, Ok(None), "the third task has it");
    done(store.forget(id(3), at(11)).await.expect("forgotten"));
    assert_eq!(released(3).await, Ok(Some(at(6))), "the time of the session's first task");
}

/// The program that ran as the agent may have printed the id of a session that is not its own.
pub async fn p11_a_session_that_was_bound_elsewhere_is_not_released(store: Ledger) {
    // Another task's agent has the third as its own.
    create(&store, asking(4, None), 0).await;
    for (n, session) in [(1, "s-1"), (2, "s-2"), (3, "s-3")] {
        create(&store, asking(n, None), 0).await;
        answered(&store, n, session).await;
        if n != 2 {
            let owner = format!("claude:{session}");
            let task = id(if n == 3 { 4 } else { n });
            let claim = SessionClaim { task, session: owner, replaces: None, inside: None };
            assert!(store.claim_session(claim).await.expect("claimed").is_some());
        }
        let there = seat("claude", session, 7, 6);
        store.bind(there.clone()).await.expect("bound");
        if n != 1 {
            assert_eq!(store.unbind(there.binding, at(9)).await, Ok(true), "it may be resumed");
        }
        done(store.forget(id(n), at(7)).await.expect("forgotten"));
    }
    assert_eq!(store.released_session(id(1)).await, Ok(Some(at(0))), "its process was in the task");
    assert_eq!(store.released_session(id(2)).await, Ok(None));
    assert_eq!(store.released_session(id(3)).await, Ok(None), "it is that of another task's agent");
    store.bind(Bind { outside: true, ..seat("claude", "s-1", 8, 8) }).await.expect("bound outside");
    assert_eq!(store.released_session(id(1)).await, Ok(None), "it goes on outside");
    create(&store, asking(5, None), 9).await;
    answered(&store, 5, "s-5").await;
    done(store.forget(id(5), at(10)).await.expect("forgotten"));
    assert_eq!(store.released_session(id(5)).await, Ok(Some(at(9))));
    let mut outside = submit(6);
    outside.task.owner = "claude:s-5".to_owned();
    create(&store, outside, 11).await;
    assert_eq!(store.released_session(id(5)).await, Ok(None), "it owns a task outside");
}
