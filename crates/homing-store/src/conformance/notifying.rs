//! Notices, inbox entries and deliveries of an end. Keeps P5.

use homing_model::inbox::InboxState;
use homing_model::notice::Body;
use homing_model::notify::{Notify, When};
use homing_model::operator::TargetKind;
use homing_model::reservation::{Access, ConfirmedBy, Confirmer};
use homing_model::retention::Policy;
use homing_model::{
    Channel, Delivery, DeliveryState, Ending, EventKind, Kind, Outcome, Progress, Status, Timestamp, Tried,
    Verdict,
};

use super::fixture::{
    Ledger, at, channel, create, deliver, done, ending, finish, first, get, id, oldest, rejected, submit,
    tell, telling,
};
use crate::outbox::{DeliveryFilter, Next, Redeliver, Redelivered, Report, Settled};
use crate::store::{Applied, EventFilter, Filter};

const HOOK: &str = "https://x.example/hook?token=1";

async fn peek(store: &Ledger, owner: &str, millis: i64) -> Vec<homing_model::Notice> {
    store.peek(owner.into(), 100, Access::Look, at(millis)).await.expect("readable").notices
}

async fn settle(store: &Ledger, claim: &crate::outbox::Claimed, next: Next, millis: i64) -> bool {
    let tried = Tried { at: at(millis), took_ms: 1, status: Some(200), result: "said so".into() };
    let settled = Settled { tried: Some(tried), next };
    store.settle(claim.id.clone(), claim.fence, settled, at(millis)).await.expect("taken")
}

async fn pending(store: &Ledger) -> usize {
    let filter =
        DeliveryFilter { state: Some(DeliveryState::Pending), limit: 100, ..DeliveryFilter::default() };
    store.deliveries(filter).await.expect("readable").items.len()
}

/// One transaction: whoever sees the end sees all that tells of it, and it is the same object everywhere.
pub async fn p5_an_end_its_notice_its_entry_and_its_deliveries_are_one(store: Ledger) {
    create(&store, telling(1, When::Always, &[HOOK, "exec:cat"]), 0).await;
    let report = Report {
        entropy: 7,
        output_tail: "the end".into(),
        output_truncated: true,
        output_path: Some("/out".into()),
        agent: None,
        answer: None,
        at_most: None,
        held_back: None,
    };
    done(store.finish(first(1), ending(5, 9_000), report).await.expect("taken"));

    let entries = peek(&store, "ann", 5).await;
    let [notice] = entries.as_slice() else { panic!("one entry, not {entries:?}") };
    let Body::Completed(completed) = &notice.body else { panic!("a completion") };
    assert_eq!((completed.status, completed.output_bytes), (Status::Succeeded, 9_000));
    assert_eq!((completed.output_tail.as_str(), completed.output_truncated), ("the end", true));
    assert_eq!((&notice.task.id, notice.at), (&id(1), at(5)));

    let log = store.events(0, EventFilter { kinds: vec![EventKind::TaskCompleted], owner: None }, 10).await;
    let event = log.expect("readable").events.pop().expect("it is logged");
    assert_eq!(event.seq, notice.seq);
    assert_eq!(event.data, serde_json::to_value(notice).expect("plain data"));

    let rows = store
        .deliveries(DeliveryFilter { limit: 10, ..DeliveryFilter::default() })
        .await
        .expect("readable")
        .items;
    let targets: Vec<_> = rows.iter().map(|row| row.target.as_str()).collect();
    assert_eq!(targets, ["exec:cat", "https://x.example/hook?…"], "newest first, and no token");
    assert!(rows.iter().all(|row| row.notice_id == notice.id && row.next_at == Some(at(5))));
}

/// `never` makes nothing, `failure` only what failed; a task stored without a policy tells nobody.
pub async fn p5_the_policy_decides_who_is_told(store: Ledger) {
    let verdicts = [(Verdict::Succeeded, 0), (Verdict::Failed, 1), (Verdict::Lost, 1), (Verdict::Stopped, 1)];
    for (n, (verdict, told)) in (10..).zip(verdicts) {
        create(&store, telling(n, When::Failure, &[HOOK]), 0).await;
        let before = (peek(&store, "ann", 1).await.len(), pending(&store).await);
        let ended = Ending { verdict, ..ending(1, 0) };
        done(store.finish(first(n), ended, Report::default()).await.expect("taken"));
        let after = (peek(&store, "ann", 1).await.len(), pending(&store).await);
        assert_eq!(after, (before.0 + told, before.1 + told), "{verdict:?}");
    }
    let before = peek(&store, "ann", 1).await.len();
    create(&store, telling(1, When::Never, &[HOOK]), 0).await;
    create(&store, submit(2), 0).await;
    finish(&store, 1, 1, 0).await;
    finish(&store, 2, 1, 0).await;
    assert_eq!(peek(&store, "ann", 1).await.len(), before);
}

/// Two results, two readers: each read is free, each take removes nobody else's.
pub async fn p6_looking_changes_nothing_and_taking_one_leaves_the_others(store: Ledger) {
    for n in 1..=3 {
        create(&store, telling(n, When::Always, &[]), 0).await;
    }
    finish(&store, 1, 1, 0).await;
    finish(&store, 2, 2, 0).await;
    for _ in 0..3 {
        assert_eq!(peek(&store, "ann", 3).await.len(), 2, "the third still runs");
    }
    assert_eq!(peek(&store, "bob", 3).await, []);
    let taken = store.take("ann".into(), oldest(1, 100), at(3)).await.expect("taken");
    assert_eq!(taken.iter().map(|notice| notice.task.id.clone()).collect::<Vec<_>>(), [id(1)]);
    let rest = peek(&store, "ann", 3).await;
    assert_eq!(rest.iter().map(|notice| notice.task.id.clone()).collect::<Vec<_>>(), [id(2)]);
    finish(&store, 3, 4, 0).await;
    assert_eq!(peek(&store, "ann", 4).await.len(), 2);
}

/// A lease that ends gives everything back, in order.
pub async fn p5_a_taker_that_dies_gives_its_entries_back(store: Ledger) {
    create(&store, telling(1, When::Always, &[]), 0).await;
    finish(&store, 1, 1, 0).await;
    assert_eq!(store.take("ann".into(), oldest(9, 50), at(1)).await.expect("taken").len(), 1);
    assert_eq!(store.take("ann".into(), oldest(9, 90), at(49)).await, Ok(Vec::new()));
    let again = store.take("ann".into(), oldest(9, 90), at(50)).await.expect("taken");
    assert_eq!(again.len(), 1);
    let ids = vec![again.first().expect("one").id.clone()];
    assert_eq!(
        store.acknowledge("ann".into(), ids.clone(), Vec::new()).await,
        Ok(ids.clone()),
        "late is not too late"
    );
    assert_eq!(store.acknowledge("ann".into(), ids, Vec::new()).await, Ok(Vec::new()), "and once is enough");
}

/// The last acknowledgement leaves no trace of the owner; another owner's ack is none.
pub async fn p5_an_acknowledged_owner_leaves_nothing_behind(store: Ledger) {
    create(&store, telling(1, When::Always, &[]), 0).await;
    finish(&store, 1, 1, 0).await;
    let ids: Vec<_> = peek(&store, "ann", 1).await.into_iter().map(|notice| notice.id).collect();
    assert_eq!(store.acknowledge("bob".into(), ids.clone(), Vec::new()).await, Ok(Vec::new()));
    let all = store.waiting(String::new(), 9).await.expect("readable");
    assert_eq!(all, store.waiting("aa".into(), 1).await.expect("readable"), "by name");
    assert_eq!((all.len(), store.waiting("ann".into(), 9).await), (1, Ok(Vec::new())));
    store.acknowledge("ann".into(), ids, Vec::new()).await.expect("taken");
    assert_eq!(store.waiting(String::new(), 9).await, Ok(Vec::new()));
}

/// A result handed over counts when the owner calls again; if it never does, the entry is back.
pub async fn p6_a_delivered_end_is_confirmed_or_returns(store: Ledger) {
    for n in 1..=2 {
        create(&store, telling(n, When::Always, &[]), 0).await;
        finish(&store, n, 1, 0).await;
    }
    deliver(&store, "ann", 1, true, 100).await;
    assert_eq!(peek(&store, "ann", 2).await.len(), 1, "held");
    assert_eq!(store.unconfirmed(at(99)).await, Ok(vec![(Confirmer::Owner("ann".into()), at(100))]));
    assert_eq!(store.unconfirmed(at(100)).await, Ok(Vec::new()));
    assert_eq!(peek(&store, "ann", 100).await.len(), 2, "nobody came");
    store.confirm(Confirmer::Owner("ann".into()), ConfirmedBy::Call, at(101)).await.expect("taken");
    assert_eq!(peek(&store, "ann", 101).await.len(), 2, "too late to count");
    deliver(&store, "ann", 1, true, 300).await;
    store.take("ann".into(), oldest(9, 300), at(200)).await.expect("the other is only taken");
    assert_eq!(store.unconfirmed(at(201)).await, Ok(vec![(Confirmer::Owner("ann".into()), at(300))]));
    store.confirm(Confirmer::Owner("ann".into()), ConfirmedBy::Call, at(201)).await.expect("taken");
    assert_eq!(store.unconfirmed(at(201)).await, Ok(Vec::new()));
    let rest = peek(&store, "ann", 300).await;
    assert_eq!(rest.iter().map(|notice| notice.task.id.clone()).collect::<Vec<_>>(), [id(2)]);
}

/// Each notice of a task, and whether its owner has it.
pub async fn notices_of_a_task_are_listed_with_their_inbox_state(store: Ledger) {
    create(&store, telling(1, When::Always, &[]), 0).await;
    let state = async |millis: i64| {
        let notices = store.notices(id(1), 10, at(millis)).await.expect("readable");
        notices.into_iter().map(|notice| (notice.kind.unwrap_or_default(), notice.inbox)).collect::<Vec<_>>()
    };
    assert_eq!(state(0).await, []);
    let quiet = Body::Quiet { quiet_ms: 5, waiting_for_input: false };
    done(tell(&store, 1, 1, quiet, None, 1).await);
    finish(&store, 1, 2, 0).await;
    let (quiet, completed) = ("task.quiet".to_owned(), "task.completed".to_owned());
    assert_eq!(
        state(2).await,
        [(quiet.clone(), InboxState::Waiting), (completed.clone(), InboxState::Waiting)]
    );
    store.take("ann".into(), oldest(1, 100), at(3)).await.expect("taken");
    assert_eq!(state(3).await[0].1, InboxState::Held);
    assert_eq!(state(100).await[0].1, InboxState::Waiting);
    store.acknowledge("ann".into(), Vec::new(), vec![id(1)]).await.expect("taken");
    assert_eq!(
        state(101).await,
        [(quiet, InboxState::Acknowledged), (completed.clone(), InboxState::Acknowledged)]
    );
    create(&store, telling(2, When::Never, &[]), 0).await;
    finish(&store, 2, 2, 0).await;
    let silent = store.notices(id(2), 10, at(3)).await.expect("readable");
    assert_eq!(
        silent.iter().map(|notice| (notice.at, notice.inbox)).collect::<Vec<_>>(),
        [(Some(at(2)), InboxState::None)]
    );
}

/// A match, a quiet alarm, a heartbeat: the same way, while the task lives.
pub async fn p5_notices_of_a_live_task_come_too_and_none_after_its_end(store: Ledger) {
    create(&store, telling(1, When::Failure, &[HOOK]), 0).await;
    let body = Body::Quiet { quiet_ms: 5, waiting_for_input: true };
    done(tell(&store, 1, 1, body.clone(), None, 1).await);
    assert_eq!(
        peek(&store, "ann", 1).await.iter().map(|notice| notice.body.clone()).collect::<Vec<_>>(),
        std::slice::from_ref(&body)
    );
    assert_eq!(pending(&store).await, 1);
    create(&store, telling(2, When::Never, &[HOOK]), 0).await;
    done(tell(&store, 2, 1, body.clone(), None, 1).await);
    assert_eq!(pending(&store).await, 1, "in the log all the same, and nowhere else");
    finish(&store, 1, 2, 0).await;
    rejected(tell(&store, 1, 2, body, None, 3).await);
}

/// A claim is one's own until its lease ends; who comes too late settles nothing.
pub async fn p5_a_delivery_is_claimed_once_and_settled_by_who_holds_it(store: Ledger) {
    create(&store, telling(1, When::Always, &[HOOK]), 0).await;
    finish(&store, 1, 1, 0).await;
    let (channels, _) = store.due(at(-1_000_000)).await.expect("readable");
    assert_eq!(channels.len(), 1, "at once, though the clock was set back after the end");
    let (channels, next) = store.due(at(1)).await.expect("readable");
    assert_eq!((channels.as_slice(), next), ([endpoint("https://x.example")].as_slice(), None));
    let channel = endpoint("https://x.example");
    let claim = |until, now| store.claim(channel.clone(), 10, at(until), at(now));
    let mine = claim(50, 1).await.expect("claimed").pop().expect("one");
    assert_eq!(claim(50, 2).await, Ok(Vec::new()));
    assert_eq!(store.due(at(2)).await, Ok((Vec::new(), Some(at(50)))));
    let theirs = claim(90, 50).await.expect("the lease is over").pop().expect("one");
    assert_eq!((&mine.notice, &mine.id), (&theirs.notice, &theirs.id), "the same bytes under the same id");
    assert!(!settle(&store, &mine, Next::Delivered, 51).await);
    store.release_claims().await.expect("released");
    assert!(!settle(&store, &theirs, Next::Delivered, 51).await, "the claimer was known to be gone");
    let ours = claim(90, 52).await.expect("due at once").pop().expect("one");
    assert!(settle(&store, &ours, Next::Delivered, 52).await);
    assert!(!settle(&store, &ours, Next::Delivered, 53).await);
    assert_eq!(store.due(at(1_000)).await, Ok((Vec::new(), None)));
    let log =
        store.events(0, EventFilter { kinds: vec![EventKind::DeliveryDelivered], owner: None }, 9).await;
    assert_eq!(log.expect("readable").events.len(), 1);
}

/// Each endpoint has its own queue.
pub async fn p5_one_channel_does_not_wait_for_another(store: Ledger) {
    for n in 1..=20 {
        create(&store, telling(n, When::Always, &["https://dead.example/"]), 0).await;
        finish(&store, n, 1, 0).await;
    }
    create(&store, telling(21, When::Always, &["https://well.example/"]), 0).await;
    finish(&store, 21, 2, 0).await;
    let (channels, _) = store.due(at(2)).await.expect("readable");
    assert_eq!(channels, ["https://dead.example", "https://well.example"].map(endpoint));
    let claimed = store.claim(endpoint("https://well.example"), 4, at(50), at(2)).await.expect("claimed");
    assert_eq!(claimed.len(), 1);
    assert_eq!(
        store.claim(endpoint("https://dead.example"), 4, at(50), at(2)).await.expect("claimed").len(),
        4
    );
}

/// An endpoint is shared by owners; a command is one owner's in one folder, a wake one address.
pub async fn p5_deliveries_of_each_channel_are_claimed_together(store: Ledger) {
    let rows = [
        ("ann", "exec:cat", Some("/a")),
        ("ann", "exec:cat", Some("/a")),
        ("ann", "exec:cat", Some("/b")),
        ("ann", "exec:cat", None),
        ("bob", "exec:cat", Some("/a")),
        ("ann", "https://X.example/1", None),
        ("bob", "https://x.example/2", None),
        ("ann", "desktop", None),
        ("bob", "desktop", None),
        ("ann", "wake:claude:s1", None),
        ("ann", "wake:claude:s2", None),
    ];
    let mut expected = std::collections::BTreeMap::new();
    for (n, (owner, target, folder)) in (1..).zip(rows) {
        let mut task = telling(n, When::Always, &[target]);
        task.task.owner = owner.into();
        task.task.spec.cwd = folder.map(Into::into);
        create(&store, task, 0).await;
        let report = Report { entropy: n, ..Report::default() };
        done(store.finish(first(n), ending(1, 0), report).await.expect("taken"));
        let channel = Channel::new(&target.parse().expect("a target"), owner, folder).expect("a channel");
        expected.entry(channel).or_insert_with(Vec::new).push(id(n));
    }
    let (mut channels, next) = store.due(at(2)).await.expect("readable");
    channels.sort();
    assert_eq!((channels, next), (expected.keys().cloned().collect(), None));
    for (channel, tasks) in expected {
        let claims = store.claim(channel.clone(), 9, at(50), at(2)).await.expect("claimed");
        let claimed: Vec<_> = claims.into_iter().map(|claim| claim.task_id).collect();
        assert_eq!(claimed, tasks, "{channel:?}");
    }
    assert_eq!(store.due(at(2)).await, Ok((Vec::new(), Some(at(50)))));
}

/// What is due of a channel does not hide what will be: one attempt may take longer than the other has to wait.
pub async fn p5_what_is_due_does_not_hide_what_is_due_later(store: Ledger) {
    let channel = endpoint("https://x.example");
    create(&store, telling(1, When::Always, &[HOOK]), 0).await;
    finish(&store, 1, 1, 0).await;
    let retried = store.claim(channel.clone(), 9, at(50), at(1)).await.expect("claimed").pop().expect("one");
    assert!(settle(&store, &retried, Next::At(at(20)), 2).await);
    create(&store, telling(2, When::Always, &[HOOK]), 0).await;
    finish(&store, 2, 3, 0).await;
    assert_eq!(store.due(at(3)).await, Ok((vec![channel.clone()], Some(at(20)))));
    assert_eq!(store.claim(channel.clone(), 9, at(50), at(3)).await.expect("claimed").len(), 1);
    assert_eq!(store.due(at(3)).await, Ok((Vec::new(), Some(at(20)))));
    assert_eq!(store.due(at(20)).await, Ok((vec![channel], Some(at(50)))));
}

/// Busy leaves no mark; dead keeps its history and begins anew when asked.
pub async fn p5_a_busy_target_spends_no_attempt_and_a_dead_one_can_begin_anew(store: Ledger) {
    create(&store, telling(1, When::Always, &[HOOK]), 0).await;
    finish(&store, 1, 1, 0).await;
    let claim = |now: i64| store.claim(endpoint("https://x.example"), 1, at(now + 50), at(now));
    let busy = claim(1).await.expect("claimed").pop().expect("one");
    let later = Settled { tried: None, next: Next::At(at(10)) };
    assert_eq!(store.settle(busy.id.clone(), busy.fence, later, at(2)).await, Ok(true));
    assert_eq!(claim(9).await, Ok(Vec::new()));
    let failed = claim(10).await.expect("claimed").pop().expect("one");
    assert_eq!(failed.attempts, 0);
    assert!(settle(&store, &failed, Next::At(at(20)), 11).await);
    let last = claim(20).await.expect("claimed").pop().expect("one");
    assert_eq!(last.attempts, 1);
    assert!(settle(&store, &last, Next::Dead("gone".into()), 21).await);

    let filter = DeliveryFilter { state: Some(DeliveryState::Dead), limit: 9, ..DeliveryFilter::default() };
    let dead = store.deliveries(filter.clone()).await.expect("readable").items;
    assert_eq!(
        dead.iter().map(|row| (row.history.len(), row.reason.as_deref())).collect::<Vec<_>>(),
        [(2, Some("gone"))]
    );
    assert_eq!(store.delivery_counts().await.expect("readable").dead, 1);
    let again = |which, now| store.redeliver(which, Vec::new(), at(now));
    let ours = Ok(Redelivered { due: vec![last.id.clone()], ..Redelivered::default() });
    assert_eq!(again(Redeliver::State(DeliveryState::Dead), 30).await, ours);
    let anew = claim(30).await.expect("claimed").pop().expect("one");
    assert_eq!((anew.attempts, &anew.notice), (0, &last.notice), "the schedule begins anew");
    assert!(settle(&store, &anew, Next::Delivered, 31).await);
    let filter = DeliveryFilter { state: Some(DeliveryState::Delivered), ..filter };
    let delivered = store.deliveries(filter).await.expect("readable").items.pop().expect("one");
    assert_eq!((delivered.attempts, delivered.history.len()), (3, 3), "attempts are counted on");
    assert_eq!(again(Redeliver::Task(id(1)), 32).await, ours);
    assert_eq!(again(Redeliver::Delivery(last.id.clone()), 33).await, ours);
    assert_eq!(claim(33).await.expect("claimed").first().map(|claim| claim.attempts), Some(0));
}

/// What may not go out by now is not begun anew, and nothing of it is changed; the rest is.
pub async fn p5_what_may_not_go_out_by_now_stays_as_it_is(store: Ledger) {
    create(&store, telling(1, When::Always, &[HOOK, "exec:cat"]), 0).await;
    finish(&store, 1, 1, 0).await;
    let claimed = store.claim(endpoint("https://x.example"), 1, at(50), at(1)).await.expect("claimed");
    let webhook = claimed.first().expect("one");
    assert!(settle(&store, webhook, Next::Delivered, 2).await);
    let filter = DeliveryFilter { limit: 9, ..DeliveryFilter::default() };
    let before = store.deliveries(filter.clone()).await.expect("readable").items;
    let again = store.redeliver(Redeliver::Task(id(1)), vec![TargetKind::Webhook], at(9)).await;
    let again = again.expect("taken");
    assert_eq!(again.closed, [(webhook.id.clone(), TargetKind::Webhook)]);
    assert_eq!((again.due.len(), again.due.contains(&webhook.id)), (1, false));
    let after = store.deliveries(filter).await.expect("readable").items;
    let of = |rows: &[Delivery]| rows.iter().find(|row| row.id == webhook.id).cloned();
    assert_eq!(of(&after), of(&before));
}

/// Three ends, one hand-over; busy spends nothing; only the hook's end gives them back; a hook is nobody's task.
pub async fn p5_a_hooks_end_settles_what_it_was_given_and_no_clock_does(store: Ledger) {
    for n in 1..=3 {
        create(&store, telling(n, When::Always, &["exec:cat"]), 0).await;
        finish(&store, n, 1, 0).await;
    }
    let before = store.counts().await;
    let hook = |n: u64| {
        let mut task = submit(n).task;
        (task.kind, task.owner) = (Kind::Hook, String::new());
        task
    };
    let far = i64::from(i32::MAX);
    for (n, code, attempts) in [(10, 75, 0), (11, 3, 0), (12, 0, 1)] {
        let now = n64(n) * 1_000_000;
        let (channels, _) = store.due(at(now)).await.expect("readable");
        let channel = channels.first().expect("something is due").clone();
        let claims = store.claim(channel.clone(), 10, at(now + 50), at(now)).await.expect("claimed");
        assert_eq!(claims.iter().map(|claim| claim.attempts).collect::<Vec<_>>(), [attempts; 3]);
        let given: Vec<_> = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
        let record =
            store.hand_over(given.clone(), hook(n), None, at(now)).await.expect("taken").expect("ours");
        assert_eq!(record.id, id(n));
        assert_eq!(store.hand_over(given, hook(n), None, at(now)).await, Ok(None), "once");
        store.release_claims().await.expect("released");
        assert_eq!(
            store.due(at(now + far)).await,
            Ok((Vec::new(), None)),
            "no clock and no restart gives them back"
        );
        assert_eq!(store.counts().await, before, "nobody's task");
        let ended = Ending {
            verdict: if code == 0 { Verdict::Succeeded } else { Verdict::Failed },
            outcome: Outcome { exit_code: Some(code), ..Outcome::default() },
            ..ending(now + 1, 0)
        };
        done(store.finish(first(n), ended, Report::default()).await.expect("taken"));
    }
    let rows = store
        .deliveries(DeliveryFilter { limit: 9, ..DeliveryFilter::default() })
        .await
        .expect("readable")
        .items;
    assert!(rows.iter().all(|row| row.state == DeliveryState::Delivered && row.history.len() == 2));
    let listed = store.list(Filter { limit: 100, ..Filter::default() }).await.expect("readable");
    assert_eq!(listed.records.len(), 3);
    let log = store.events(0, EventFilter { kinds: vec![EventKind::TaskCompleted], owner: None }, 99).await;
    assert_eq!(log.expect("readable").events.len(), 3, "and nobody's news");
}

/// What found a command busy goes with the next that is told to it, and does not wait for its own turn; a failed attempt does.
pub async fn p5_what_found_a_command_busy_goes_with_the_next(store: Ledger) {
    let command = || channel("ann", "exec:cat");
    let tell = async |n: u64, millis: i64| {
        let mut task = submit(n);
        let notify =
            Notify { on: When::Always, targets: vec!["exec:cat".parse().expect("a target")], secret: None };
        task.task.spec.notify = Some(notify);
        create(&store, task, 0).await;
        let report = Report { entropy: n, ..Report::default() };
        done(store.finish(first(n), ending(millis, 0), report).await.expect("taken"));
    };
    for n in 1..=2 {
        tell(n, n64(n)).await;
        let claim = store.claim(command(), 9, at(50), at(n64(n))).await.expect("claimed").pop().expect("one");
        let tried = Tried { at: at(1), took_ms: 1, status: None, result: "exit 3".into() };
        let settled = Settled { tried: (n == 1).then_some(tried), next: Next::At(at(1_000)) };
        assert_eq!(store.settle(claim.id, claim.fence, settled, at(n64(n))).await, Ok(true));
    }
    assert_eq!(store.due(at(3)).await, Ok((Vec::new(), Some(at(1_000)))));
    tell(3, 4).await;
    let claims = store.claim(command(), 9, at(50), at(4)).await.expect("claimed");
    let tasks: Vec<_> = claims.iter().map(|claim| claim.task_id.clone()).collect();
    assert_eq!(tasks, [id(3), id(2)]);
    assert_eq!(store.claim(command(), 9, at(50), at(5)).await, Ok(Vec::new()), "each once");
}

/// One command of a channel at a time: what comes while it runs, or is asked for again, goes together to the next.
pub async fn p5_a_command_is_told_the_rest_after_its_end(store: Ledger) {
    let command = || channel("ann", "exec:cat");
    let hook = |n: u64| {
        let mut task = submit(n).task;
        (task.kind, task.owner) = (Kind::Hook, String::new());
        task
    };
    let tell = async |n: u64| {
        create(&store, telling(n, When::Always, &["exec:cat"]), 0).await;
        let report = Report { entropy: n, ..Report::default() };
        done(store.finish(first(n), ending(1, 0), report).await.expect("taken"));
    };
    let give = async |n: u64| {
        let claims = store.claim(command(), 9, at(50), at(2)).await.expect("claimed");
        let given = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
        store.hand_over(given, hook(n), None, at(2)).await.expect("taken").expect("ours");
        claims.into_iter().map(|claim| claim.task_id).collect::<Vec<_>>()
    };
    tell(1).await;
    assert_eq!(give(10).await, [id(1)]);
    tell(2).await;
    tell(3).await;
    assert_eq!(store.redeliver(Redeliver::Task(id(1)), Vec::new(), at(2)).await.expect("taken").due.len(), 1);
    assert_eq!(store.due(at(9)).await, Ok((Vec::new(), None)), "only its end makes them due");
    assert_eq!(store.claim(command(), 9, at(50), at(9)).await, Ok(Vec::new()));
    finish(&store, 10, 3, 0).await;
    assert_eq!(store.due(at(3)).await, Ok((vec![command()], None)));
    let mut told = give(11).await;
    told.sort();
    let mut all = vec![id(1), id(2), id(3)];
    all.sort();
    assert_eq!(told, all, "none is lost");
    finish(&store, 11, 4, 0).await;
    assert_eq!(pending(&store).await, 0);
    let filter = DeliveryFilter { task: Some(id(1)), limit: 9, ..DeliveryFilter::default() };
    let again = store.deliveries(filter).await.expect("readable").items.pop().expect("one");
    assert_eq!((again.attempts, again.history.len()), (2, 2), "the run before counts too");
    for (hook, had) in [(10, 0), (11, 3)] {
        let filter = DeliveryFilter { hook: Some(id(hook)), limit: 9, ..DeliveryFilter::default() };
        assert_eq!(store.deliveries(filter).await.expect("readable").items.len(), had, "who had it last");
    }
}

fn n64(n: u64) -> i64 {
    i64::try_from(n).expect("small")
}

/// Progress is kept with the task and told in the log, while it lives.
pub async fn a_live_task_says_how_far_it_is_and_an_ended_one_does_not(store: Ledger) {
    create(&store, submit(1), 0).await;
    let said = |millis: i64| Progress { percent: Some(40.0), text: Some("linking".into()), at: at(millis) };
    let record = done(store.progress(id(1), said(1)).await.expect("taken"));
    assert_eq!(record.progress, Some(said(1)));
    assert_eq!(get(&store, 1).await, record);
    finish(&store, 1, 2, 0).await;
    let record = rejected(store.progress(id(1), said(3)).await.expect("judged"));
    assert_eq!(record.progress, Some(said(1)), "what it said last stays");
    assert_eq!(store.progress(id(2), said(3)).await, Ok(Applied::Unknown));
    let log = store.events(0, EventFilter { kinds: vec![EventKind::TaskProgress], owner: None }, 9).await;
    let events = log.expect("readable").events;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].data["percent"], 40.0);
}

/// Retention of the log leaves what is still to be read or delivered.
pub async fn a_notice_outlives_the_log_while_somebody_needs_it(store: Ledger) {
    create(&store, telling(1, When::Always, &[HOOK]), 0).await;
    finish(&store, 1, 1, 0).await;
    let hour = std::time::Duration::from_secs(3_600);
    let policy = Policy { age: hour, count: 0, bytes: 0, tombstones: hour };
    let late = |millis: i64| Timestamp::from_millis(at(millis).as_millis() + 10 * 3_600_000);
    store.trim(policy, late(0), 100).await.expect("trimmed");
    assert_eq!(store.events(0, EventFilter::default(), 10).await.expect("readable").events, []);
    let ids: Vec<_> = store
        .peek("ann".into(), 9, Access::Look, late(0))
        .await
        .expect("readable")
        .notices
        .into_iter()
        .map(|n| n.id)
        .collect();
    assert_eq!(ids.len(), 1);
    store.acknowledge("ann".into(), ids, Vec::new()).await.expect("taken");
    store.trim(policy, late(1), 100).await.expect("trimmed");
    let claim = store.claim(endpoint("https://x.example"), 1, late(50), late(2)).await.expect("claimed");
    assert_eq!(claim.len(), 1, "its text is still there");
    let of_task = async || store.notices(id(1), 9, late(3)).await.expect("readable").len();
    assert_eq!(of_task().await, 1);
    assert!(settle(&store, &claim[0], Next::Delivered, 4).await);
    store.trim(policy, late(5), 100).await.expect("trimmed");
    assert_eq!(of_task().await, 0, "it went with the last that needed it");
}

/// What nobody reads is looked at once, and costs no later pass anything.
pub async fn a_notice_that_stays_is_looked_at_once(store: Ledger) {
    for n in 1..=5 {
        create(&store, telling(n, When::Always, &[]), 0).await;
        let report = Report { entropy: n, ..Report::default() };
        done(store.finish(first(n), ending(1, 0), report).await.expect("taken"));
    }
    let hour = std::time::Duration::from_secs(3_600);
    let policy = Policy { age: hour, count: 0, bytes: 0, tombstones: hour };
    let late = Timestamp::from_millis(at(0).as_millis() + 10 * 3_600_000);
    let mut passes = 0;
    while store.trim(policy, late, 2).await.expect("trimmed").more {
        passes += 1;
        assert!(passes < 20, "it goes on until there is nothing, and not for ever");
    }
    assert!(passes >= 5, "ten events, two at a time: {passes}");
    let entries = peek(&store, "ann", 1).await;
    assert_eq!(entries.len(), 5, "an owner who comes late finds all");
    let ids = entries.into_iter().map(|notice| notice.id).collect();
    store.acknowledge("ann".into(), ids, Vec::new()).await.expect("taken");
    for n in 1..=5 {
        assert_eq!(store.notices(id(n), 9, late).await, Ok(Vec::new()), "no text is left");
    }
}

fn endpoint(origin: &str) -> Channel {
    Channel::Endpoint { origin: origin.to_owned() }
}
