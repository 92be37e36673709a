//! Who is woken, how often, and what waits meanwhile. Keeps P5 and P6.

use homing_model::inbox::InboxState;
use homing_model::notice::Body;
use homing_model::notify::{Notify, When};
use homing_model::operator::TargetKind;
use homing_model::reservation::{Access, ConfirmedBy};
use homing_model::wake::{self, Budget};
use homing_model::{
    Channel, Delivery, DeliveryState, Ending, EventKind, Kind, Outcome, Route, Session, Verdict,
};

use super::binding::agent;
use super::fixture::{
    Ledger, at, channel, create, deliver, done, ending, first, handed, id, oldest, submit, tell,
};
use crate::outbox::{DeliveryFilter, Redeliver, Report, Terms, Wake};
use crate::record::Tracking;
use crate::store::EventFilter;

const OWNER: &str = "claude:1";
const COMMAND: &str = "exec:poke";
const WAKE: &str = "wake";
const BUDGET: Budget = Budget { per_hour: 2 };
const TERMS: Terms = terms(BUDGET);
const HOUR: i64 = wake::WINDOW_MS;
/// As long as a wake may take.
const LIMIT: i64 = 60_000;

const fn terms(budget: Budget) -> Terms {
    Terms { budget, at_most: When::Always }
}

/// A task of a session, which ended: its command is to be told, and these besides.
async fn ended(store: &Ledger, n: u64, besides: &[&str], millis: i64) {
    let targets: Vec<_> = ["exec:poke"].iter().chain(besides).copied().collect();
    ended_for(store, n, &targets, millis).await;
}

async fn ended_for(store: &Ledger, n: u64, targets: &[&str], millis: i64) {
    let mut task = submit(n);
    task.task.owner = OWNER.into();
    let targets = targets.iter().map(|text| text.parse().expect("a target")).collect();
    task.task.spec.notify = Some(Notify { on: When::Always, targets, secret: None });
    create(store, task, millis).await;
    let report = Report { entropy: n, ..Report::default() };
    done(store.finish(first(n), ending(millis, 0), report).await.expect("taken"));
}

async fn admit(store: &Ledger, budget: Budget, millis: i64) -> bool {
    store
        .admit(of(COMMAND), terms(budget), 1_000_000 + millis.unsigned_abs(), at(millis))
        .await
        .expect("judged")
}

/// Hands over what is due to the `n`th hook, which ends with this code; answers how many notices it got, or `None` if there was no room.
async fn hand_over(store: &Ledger, n: u64, code: i32, millis: i64) -> Option<usize> {
    hand_over_to(store, COMMAND, n, code, millis).await
}

fn of(target: &str) -> Channel {
    channel(OWNER, target)
}

async fn hand_over_to(store: &Ledger, target: &str, n: u64, code: i32, millis: i64) -> Option<usize> {
    let entropy = 1_000_000 + millis.unsigned_abs();
    if !store.admit(of(target), TERMS, entropy, at(millis)).await.expect("judged") {
        return None;
    }
    let claims = store.claim(of(target), 100, at(millis + 50), at(millis)).await.expect("claimed");
    if claims.is_empty() {
        return None;
    }
    let given: Vec<_> = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
    let mut hook = submit(n).task;
    (hook.kind, hook.owner) = (Kind::Hook, String::new());
    hook.spec.timeout_ms = Some(LIMIT.unsigned_abs());
    let until = (target == WAKE).then(|| at(millis + LIMIT));
    let wake = Wake { owner: OWNER.into(), budget: BUDGET, until };
    store.hand_over(given, hook, Some(wake), at(millis)).await.expect("taken")?;
    let end = Ending {
        verdict: if code == 0 { Verdict::Succeeded } else { Verdict::Failed },
        outcome: Outcome { exit_code: Some(code), ..Outcome::default() },
        ..ending(millis, 0)
    };
    done(store.finish(first(n), end, Report::default()).await.expect("taken"));
    Some(claims.len())
}

async fn deliveries(store: &Ledger) -> Vec<Delivery> {
    let filter = DeliveryFilter { limit: 100, ..DeliveryFilter::default() };
    let mut rows = store.deliveries(filter).await.expect("readable").items;
    rows.reverse();
    rows
}

async fn inbox(store: &Ledger, millis: i64) -> Vec<Body> {
    let notices = store.peek(OWNER.into(), 100, Access::Look, at(millis)).await.expect("readable").notices;
    notices.into_iter().map(|notice| notice.body).collect()
}

fn pauses(bodies: &[Body]) -> usize {
    bodies.iter().filter(|body| matches!(body, Body::WakePaused { .. })).count()
}

/// Two are woken; the third and the fourth wait, both in the inbox, and one notice says so.
pub async fn p5_beyond_the_budget_notices_wait_in_the_inbox_and_one_says_so(store: Ledger) {
    for n in 1..=2 {
        ended(&store, n, &[], n64(n)).await;
        assert_eq!(hand_over(&store, 100 + n, 0, n64(n)).await, Some(1));
    }
    assert_eq!(inbox(&store, 2).await.len(), 0, "nobody asked for an entry");
    for n in 3..=4 {
        ended(&store, n, &[], n64(n)).await;
        assert_eq!(hand_over(&store, 100 + n, 0, n64(n)).await, None);
    }
    let waiting = inbox(&store, 5).await;
    assert_eq!((waiting.len(), pauses(&waiting)), (3, 1), "{waiting:?}");
    let paused = waiting.iter().find(|body| matches!(body, Body::WakePaused { .. }));
    assert_eq!(paused, Some(&Body::WakePaused { per_hour: 2, until: at(1 + HOUR), held_back: 1 }));
    let held: Vec<_> = deliveries(&store).await.into_iter().skip(2).collect();
    assert!(held.iter().all(|row| row.state == DeliveryState::Pending && row.next_at == Some(at(1 + HOUR))));
    assert!(held.iter().all(|row| row.reason.as_deref().is_some_and(|why| why.contains("2 wakes an hour"))));
    assert_eq!(store.due(at(6)).await, Ok((Vec::new(), Some(at(1 + HOUR)))), "no clock wakes them before");
    let kinds = vec![EventKind::WakePaused];
    let log = store.events(0, EventFilter { kinds, owner: Some(OWNER.into()) }, 10).await;
    assert_eq!(log.expect("readable").events.len(), 1);
    // Another owner is none of it.
    assert!(
        store.admit(channel("codex:2", COMMAND), TERMS, 7, at(6)).await.expect("judged"),
        "each has a budget of its own"
    );
}

/// When there is room again they go in one hand-over; a new hour that is spent is told anew.
pub async fn p5_what_waited_goes_together_and_then_leaves_the_inbox(store: Ledger) {
    for n in 1..=2 {
        ended(&store, n, &[], n64(n)).await;
        assert_eq!(hand_over(&store, 100 + n, 0, n64(n)).await, Some(1));
    }
    for n in 3..=5 {
        ended(&store, n, &[], n64(n)).await;
        assert_eq!(hand_over(&store, 100 + n, 0, n64(n)).await, None);
    }
    assert_eq!(hand_over(&store, 110, 0, 1 + HOUR).await, Some(3), "together");
    assert!(deliveries(&store).await.iter().all(|row| row.state == DeliveryState::Delivered));
    let left = inbox(&store, 1 + HOUR).await;
    assert_eq!((left.len(), pauses(&left)), (1, 1), "what stood in for a wake went with it: {left:?}");
    let notices = store.notices(id(4), 9, at(1 + HOUR)).await.expect("readable");
    assert_eq!(notices.first().map(|notice| notice.inbox), Some(InboxState::Acknowledged));
    // The second of the first hour is over a moment later; then two are within the hour again.
    ended(&store, 6, &[], 2 + HOUR).await;
    assert_eq!(hand_over(&store, 111, 0, 2 + HOUR).await, Some(1));
    ended(&store, 7, &[], 3 + HOUR).await;
    assert_eq!(hand_over(&store, 112, 0, 3 + HOUR).await, None);
    assert_eq!(pauses(&inbox(&store, 4 + HOUR).await), 2, "an hour has passed since it was said");
}

/// One line on a screen stands for several, and is no evidence that anybody read it.
pub async fn p6_a_popup_takes_nothing_out_of_the_inbox(store: Ledger) {
    const POPUP: &str = "desktop";
    for n in 1..=2 {
        ended_for(&store, n, &["desktop"], n64(n)).await;
        assert_eq!(hand_over_to(&store, POPUP, 100 + n, 0, n64(n)).await, Some(1));
    }
    ended_for(&store, 3, &["desktop"], 3).await;
    ended_for(&store, 4, &["inbox", "desktop"], 4).await;
    assert_eq!(hand_over_to(&store, POPUP, 103, 0, 5).await, None, "the budget is spent");
    assert_eq!(hand_over_to(&store, POPUP, 104, 0, 1 + HOUR).await, Some(2), "one line for both");
    assert!(deliveries(&store).await.iter().all(|row| row.state == DeliveryState::Delivered));
    let left = inbox(&store, 1 + HOUR).await;
    assert_eq!((left.len(), pauses(&left)), (3, 1), "whoever missed it finds them: {left:?}");
}

/// Three busy answers, then two hand-overs, and all of the budget was there for them; a failure counts.
pub async fn a_busy_session_spends_nothing_of_the_budget(store: Ledger) {
    ended(&store, 1, &[], 1).await;
    for n in 1..=3 {
        assert_eq!(hand_over(&store, 100 + n, 75, n64(n) * 100_000).await, Some(1), "busy {n}");
    }
    assert_eq!(hand_over(&store, 110, 0, 500_000).await, Some(1));
    ended(&store, 2, &[], 500_001).await;
    assert_eq!(hand_over(&store, 111, 3, 500_001).await, Some(1));
    ended(&store, 3, &[], 500_002).await;
    assert_eq!(hand_over(&store, 112, 0, 500_002).await, None);
    let rows = deliveries(&store).await;
    assert_eq!(rows.iter().map(|row| row.attempts).collect::<Vec<_>>(), [1, 1, 0]);
}

/// Two commands of one session, and room for one: whoever comes second hands nothing over, and what it had is due again.
pub async fn p5_two_commands_of_one_session_share_its_budget(store: Ledger) {
    let one = Budget { per_hour: 1 };
    ended(&store, 1, &["exec:prod"], 1).await;
    let channels = [of(COMMAND), of("exec:prod")];
    let mut claims = Vec::new();
    for channel in &channels {
        assert!(store.admit(channel.clone(), terms(one), 7, at(1)).await.expect("judged"));
        let claimed = store.claim(channel.clone(), 9, at(50), at(1)).await.expect("claimed");
        claims.push(claimed.iter().map(|claim| (claim.id.clone(), claim.fence)).collect::<Vec<_>>());
    }
    let mut handed = Vec::new();
    for (n, given) in (100..).zip(claims) {
        let mut hook = submit(n).task;
        (hook.kind, hook.owner) = (Kind::Hook, String::new());
        let wake = Some(Wake { owner: OWNER.into(), budget: one, until: None });
        handed.push(store.hand_over(given, hook, wake, at(2)).await.expect("judged").is_some());
    }
    assert_eq!(handed, [true, false]);
    assert_eq!(store.due(at(2)).await, Ok((vec![channels[1].clone()], None)), "due again");
    assert!(!store.admit(channels[1].clone(), terms(one), 8, at(2)).await.expect("judged"), "and held");
    assert_eq!(store.due(at(2)).await, Ok((Vec::new(), Some(at(2 + HOUR)))));
}

/// Acknowledged, or handed over by a wait, before the wake: there is none, and the delivery says why. Who asks for it again gets it.
pub async fn p6_nobody_is_woken_for_what_they_know(store: Ledger) {
    for n in 1..=3 {
        ended_for(&store, n, if n == 2 { &["wake"] } else { &["wake", "inbox"] }, 1).await;
    }
    know(&store).await;
    assert_eq!(hand_over_to(&store, WAKE, 100, 0, 2).await, Some(1), "only the third is news");
    let rows = deliveries(&store).await;
    let ends: Vec<_> = rows.iter().map(|row| (row.state, row.attempts, row.reason.as_deref())).collect();
    let told = (DeliveryState::Superseded, 0, Some(wake::TOLD));
    assert_eq!(
        ends,
        [told, told, (DeliveryState::Delivered, 1, None)],
        "who was never called was told nothing"
    );
    assert_eq!(inbox(&store, 3).await.len(), 0, "a wake that was delivered acknowledges");
    let notices = store.notices(id(3), 9, at(3)).await.expect("readable");
    assert_eq!(notices.first().map(|notice| notice.inbox), Some(InboxState::Acknowledged));
    // What was not needed is sent again only if it is named.
    let first = rows.first().expect("a delivery").id.clone();
    for which in [Redeliver::Task(id(1)), Redeliver::State(DeliveryState::Dead)] {
        let again = store.redeliver(which, Vec::new(), at(4)).await.expect("taken");
        assert_eq!(again.due, Vec::new());
    }
    assert_eq!(hand_over_to(&store, WAKE, 101, 0, 4).await, None);
    let again = store.redeliver(Redeliver::Delivery(first.clone()), Vec::new(), at(4)).await.expect("taken");
    assert_eq!(again.due, [first]);
    assert_eq!(hand_over_to(&store, WAKE, 102, 0, 4).await, Some(1));
}

/// A wake that was given up, whose owner then came to have the notice another way: it is not sent
/// again with the others.
pub async fn p6_a_dead_wake_of_what_is_known_is_not_sent_again(store: Ledger) {
    for n in 1..=4 {
        ended_for(&store, n, &["wake", "inbox"], 1).await;
    }
    let late = wake::LONGEST_MS + 2;
    assert_eq!(hand_over_to(&store, WAKE, 100, 0, late).await, None, "expired");
    let rows = deliveries(&store).await;
    assert!(rows.iter().all(|row| row.state == DeliveryState::Dead), "{rows:?}");
    let entries = store.peek(OWNER.into(), 9, Access::Look, at(late)).await.expect("readable").notices;
    let notices: Vec<_> = entries.into_iter().map(|notice| notice.id).collect();
    // The first is acknowledged; the second was told, and waits for its proof; the third came back
    // without one.
    store.acknowledge(OWNER.into(), vec![notices[0].clone()], Vec::new()).await.expect("acknowledged");
    for (n, until) in [(1, late + 10), (2, late)] {
        let (told, confirmed_by) = (vec![notices[n].clone()], ConfirmedBy::Turn);
        store.take(OWNER.into(), handed(told, confirmed_by, until), at(0)).await.expect("told");
    }
    let ids: Vec<_> = rows.iter().map(|row| row.id.clone()).collect();
    let dead = Redeliver::State(DeliveryState::Dead);
    let again = store.redeliver(dead, Vec::new(), at(late + 1)).await.expect("taken");
    assert_eq!((again.due.as_slice(), again.superseded.as_slice()), (&ids[2..], &ids[..2]));
    let row = deliveries(&store).await.remove(0);
    assert_eq!((row.state, row.reason.as_deref()), (DeliveryState::Superseded, Some(wake::TOLD)));
    let named = Redeliver::Delivery(ids[0].clone());
    assert_eq!(store.redeliver(named, Vec::new(), at(late + 1)).await.expect("taken").due, ids[..1]);
}

/// The same after the claim: what they came to know since ends, what is left is due again, and nothing is spent.
pub async fn p6_nobody_is_woken_for_what_they_know_since_the_claim(store: Ledger) {
    for n in 1..=3 {
        ended_for(&store, n, if n == 2 { &["wake"] } else { &["wake", "inbox"] }, 1).await;
    }
    assert!(store.admit(of(WAKE), TERMS, 7, at(2)).await.expect("judged"));
    let claims = store.claim(of(WAKE), 9, at(50), at(2)).await.expect("claimed");
    assert_eq!(claims.len(), 3);
    know(&store).await;
    let given: Vec<_> = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
    let mut hook = submit(100).task;
    (hook.kind, hook.owner) = (Kind::Hook, String::new());
    let wake = Wake { owner: OWNER.into(), budget: Budget { per_hour: 1 }, until: Some(at(LIMIT)) };
    assert_eq!(store.hand_over(given, hook, Some(wake), at(3)).await, Ok(None));
    let ends: Vec<_> = deliveries(&store).await.into_iter().map(|row| (row.state, row.reason)).collect();
    let told = (DeliveryState::Superseded, Some(wake::TOLD.to_owned()));
    assert_eq!(ends, [told.clone(), told, (DeliveryState::Pending, None)]);
    assert_eq!(inbox(&store, 3).await.len(), 1, "nobody has the third");
    assert_eq!(store.due(at(3)).await, Ok((vec![of(WAKE)], None)), "due again");
    assert_eq!(hand_over_to(&store, WAKE, 101, 3, 3).await, Some(1));
    // Who asks for it again gets it, known or not.
    let first = deliveries(&store).await.first().expect("a delivery").id.clone();
    store.redeliver(Redeliver::Delivery(first), Vec::new(), at(4)).await.expect("taken");
    assert_eq!(hand_over_to(&store, WAKE, 102, 0, 4).await, Some(1));
}

/// What somebody has taken waits for them; what they acknowledge wakes nobody, what they let go does.
pub async fn p6_what_somebody_has_taken_from_the_inbox_wakes_nobody_meanwhile(store: Ledger) {
    for n in 1..=2 {
        ended_for(&store, n, &["wake", "inbox"], 1).await;
        let taken = store.take(OWNER.into(), oldest(9, 100), at(2)).await.expect("taken");
        assert_eq!(taken.len(), 1);
        assert_eq!(
            hand_over_to(&store, WAKE, 100 + n, 0, 3).await,
            None,
            "it has nothing to claim, or is not let"
        );
        let row = deliveries(&store).await.pop().expect("a delivery");
        assert_eq!((row.state, row.next_at), (DeliveryState::Pending, Some(at(100))), "{row:?}");
        assert!(row.reason.is_some_and(|why| why.contains("taken it from the inbox")));
        if n == 1 {
            store
                .acknowledge(OWNER.into(), vec![taken[0].id.clone()], Vec::new())
                .await
                .expect("acknowledged");
        }
    }
    assert_eq!(hand_over_to(&store, WAKE, 110, 0, 100).await, Some(1), "the second was let go");
    let states: Vec<_> = deliveries(&store).await.into_iter().map(|row| row.state).collect();
    assert_eq!(states, [DeliveryState::Superseded, DeliveryState::Delivered]);
}

/// While a wake has them nobody else gets the entries; if it comes to nothing they are there again.
pub async fn p6_what_a_wake_tells_is_nobody_elses_to_tell_until_it_ends(store: Ledger) {
    ended_for(&store, 1, &["wake", "inbox"], 1).await;
    for (n, code, reason) in [(100, 75, Some("at work")), (101, 3, None)] {
        let millis = n64(n) * 100_000;
        assert!(store.admit(of(WAKE), TERMS, n, at(millis)).await.expect("judged"));
        let claims = store.claim(of(WAKE), 9, at(millis + 50), at(millis)).await.expect("claimed");
        let given: Vec<_> = claims.iter().map(|claim| (claim.id.clone(), claim.fence)).collect();
        let mut hook = submit(n).task;
        (hook.kind, hook.owner) = (Kind::Hook, String::new());
        hook.spec.timeout_ms = Some(LIMIT.unsigned_abs());
        let wake = Wake { owner: OWNER.into(), budget: BUDGET, until: Some(at(millis + LIMIT)) };
        assert!(store.hand_over(given, hook, Some(wake), at(millis)).await.expect("taken").is_some());
        assert_eq!(inbox(&store, millis).await.len(), 0, "the wake has it");
        let end = Ending {
            verdict: Verdict::Failed,
            outcome: Outcome { exit_code: Some(code), ..Outcome::default() },
            ..ending(millis, 0)
        };
        let report = Report { output_tail: "first\nat work\n".into(), ..Report::default() };
        done(store.finish(first(n), end, report).await.expect("taken"));
        assert_eq!(inbox(&store, millis).await.len(), 1, "it is there again");
        let row = deliveries(&store).await.pop().expect("a delivery");
        assert_eq!((row.state, row.reason.as_deref()), (DeliveryState::Pending, reason));
    }
    let row = deliveries(&store).await.pop().expect("a delivery");
    assert_eq!((row.attempts, row.history[0].result.as_str()), (1, "at work"), "in the waker's own words");
}

/// A wake that another attempt cannot heal is not tried again; the entry waits in the inbox. A command with that exit code is tried again.
pub async fn p5_a_wake_that_is_given_up_leaves_its_entry_and_is_not_tried_again(store: Ledger) {
    ended_for(&store, 1, &["wake", "inbox"], 1).await;
    ended(&store, 2, &[], 1).await;
    for (n, target) in [(100, WAKE), (101, COMMAND)] {
        assert_eq!(hand_over_to(&store, target, n, 78, 3).await, Some(1));
    }
    let of = async |target: &str| {
        let rows = deliveries(&store).await;
        let row = rows.into_iter().find(|row| row.target == target).expect("a delivery");
        (row.state, row.attempts)
    };
    assert_eq!(of("wake").await, (DeliveryState::Dead, 1));
    assert_eq!(of("exec:poke").await, (DeliveryState::Pending, 1));
    assert_eq!(inbox(&store, 100_000).await.len(), 1);
}

/// Said and put off, then held for whoever had taken the entry, which begins the pauses anew: that it may have been told is known all the same.
pub async fn p6_what_a_wake_may_have_told_stays_so_until_it_is_asked_for_again(store: Ledger) {
    ended_for(&store, 1, &["wake", "inbox"], 1).await;
    let said = async |millis: i64| {
        let claims = store.claim(of(WAKE), 9, at(millis + 1), at(millis)).await.expect("claimed");
        claims.iter().map(|claim| (claim.said, claim.busy)).collect::<Vec<_>>()
    };
    assert_eq!(said(1).await, [(false, 0)], "nobody was given it");
    assert_eq!(hand_over_to(&store, WAKE, 100, 75, 3).await, Some(1));
    let later = 100_000;
    assert_eq!(said(later).await, [(true, 1)]);
    let taken = store.take(OWNER.into(), oldest(9, later + 20), at(later + 10)).await.expect("taken");
    assert_eq!(taken.len(), 1);
    assert!(store.admit(of(WAKE), TERMS, 9, at(later + 10)).await.expect("judged"));
    assert_eq!(said(later + 10).await, [], "it waits for whoever has the entry");
    assert_eq!(said(later + 30).await, [(true, 0)], "its pauses begin anew, and what was said was said");
    assert_eq!(hand_over_to(&store, WAKE, 101, 3, later + 40).await, Some(1));
    assert_eq!(said(later + HOUR).await, [(true, 0)], "a failed attempt may have told it too");
    let row = deliveries(&store).await.pop().expect("a delivery");
    store.redeliver(Redeliver::Delivery(row.id), Vec::new(), at(later + HOUR + 1)).await.expect("taken");
    assert_eq!(said(later + HOUR + 2).await, [(false, 0)], "whoever asks for it again is told again");
}

/// Two tasks of one owner, from two sessions: each wake goes its own way, by the newest that is known of it.
pub async fn p5_each_wake_goes_the_way_of_the_session_that_submitted(store: Ledger) {
    for (n, session, pid) in [(1, "s1", 7), (2, "s2", 8), (3, "s1", 9)] {
        let mut task = submit(n);
        task.task.owner = "ann".into();
        task.task.spec.session =
            Session::new(agent("claude"), session).map(|session| Session { pid: Some(pid), ..session });
        let targets = vec!["wake".parse().expect("a target")];
        task.task.spec.notify = Some(Notify { on: When::Always, targets, secret: None });
        create(&store, task, 0).await;
        done(
            store
                .finish(first(n), ending(1, 0), Report { entropy: n, ..Report::default() })
                .await
                .expect("taken"),
        );
    }
    let (channels, _) = store.due(at(2)).await.expect("readable");
    assert_eq!(channels, [channel("ann", "wake:claude:s1"), channel("ann", "wake:claude:s2")]);
    let found = store.route(channels[0].clone(), at(2)).await.expect("readable");
    let Some(Route::Session(session)) = found else { panic!("{found:?}") };
    assert_eq!((session.id.as_str(), session.pid), ("s1", Some(9)), "the newest");
    store.put_off(channels[0].clone(), "not now".into(), at(2)).await.expect("taken");
    let why = |row: &Delivery| (row.target.clone(), row.reason.clone());
    let rows: Vec<_> = deliveries(&store).await.iter().map(why).collect();
    let (one, two) = ("wake:claude:s1".to_owned(), "wake:claude:s2".to_owned());
    let not_now = Some("not now".to_owned());
    assert_eq!(rows, [(one.clone(), not_now.clone()), (two, None), (one, not_now)]);
    let claims = store.claim(channels[0].clone(), 9, at(50), at(3)).await.expect("claimed");
    assert_eq!(claims.len(), 2, "together");
    assert!(
        claims
            .iter()
            .all(|claim| matches!(&claim.route, Some(Route::Session(session)) if session.id == "s1"))
    );
    assert!(deliveries(&store).await.iter().all(|row| row.reason.is_none()), "it is no longer put off");
}

/// Where the operator lets nothing be told, that the budget is spent is not told either.
pub async fn the_operator_has_the_last_word_on_pauses(store: Ledger) {
    let silent = Terms { budget: Budget { per_hour: 1 }, at_most: When::Never };
    for n in 1..=2 {
        ended(&store, n, &["inbox"], n64(n)).await;
    }
    assert_eq!(hand_over(&store, 100, 3, 2).await, Some(2));
    ended(&store, 3, &["inbox"], 3).await;
    assert!(!store.admit(of(COMMAND), silent, 9, at(3)).await.expect("judged"));
    assert_eq!(pauses(&inbox(&store, 4).await), 0);
    let loud = Terms { at_most: When::Always, ..silent };
    ended(&store, 4, &["inbox"], 5).await;
    assert!(!store.admit(of(COMMAND), loud, 10, at(5)).await.expect("judged"));
    assert_eq!(pauses(&inbox(&store, 6).await), 1);
}

/// The first is acknowledged, the second told, the third told to somebody whose it is not.
async fn know(store: &Ledger) {
    store.acknowledge(OWNER.into(), Vec::new(), vec![id(1)]).await.expect("taken");
    deliver(store, OWNER, 2, true, 100).await;
    deliver(store, "ann", 3, true, 100).await;
}

/// A command may do more than wake: it gets what its owner knows, and what is older than two days.
pub async fn p5_a_command_is_run_whatever_its_owner_knows_and_however_late(store: Ledger) {
    for n in 1..=3 {
        ended(&store, n, if n == 2 { &[] } else { &["inbox"] }, 1).await;
    }
    know(&store).await;
    assert_eq!(hand_over(&store, 100, 0, 2).await, Some(3));
    ended(&store, 4, &[], 3).await;
    assert_eq!(hand_over(&store, 101, 0, 3 + wake::LONGEST_MS).await, Some(1));
    let rows = deliveries(&store).await;
    assert!(rows.iter().all(|row| (row.state, row.attempts) == (DeliveryState::Delivered, 1)), "{rows:?}");
}

/// Two days, and not a moment longer; a webhook knows no such limit, and whoever asks for it again gets it.
pub async fn notices_older_than_two_days_wake_nobody_and_stay_readable(store: Ledger) {
    ended_for(&store, 1, &["wake", "inbox", "https://x.example/"], 0).await;
    ended_for(&store, 2, &["wake"], 1).await;
    let second = hand_over_to(&store, WAKE, 100, 0, wake::LONGEST_MS).await;
    assert_eq!(second, Some(1), "the second is just young enough");
    let rows = deliveries(&store).await;
    let old = rows.first().expect("a delivery");
    assert_eq!((old.state, old.reason.as_deref()), (DeliveryState::Dead, Some(wake::EXPIRED)));
    assert_eq!(inbox(&store, wake::LONGEST_MS).await.len(), 1);
    let (channels, _) = store.due(at(wake::LONGEST_MS)).await.expect("readable");
    assert_eq!(channels, [channel("ann", "https://x.example")]);
    store
        .redeliver(Redeliver::Delivery(old.id.clone()), Vec::new(), at(wake::LONGEST_MS))
        .await
        .expect("taken");
    assert_eq!(hand_over_to(&store, WAKE, 101, 0, wake::LONGEST_MS).await, Some(1));
}

/// A budget of none: dead with the reason, readable in the inbox, and nothing is said every hour.
pub async fn wakes_that_are_turned_off_leave_everything_in_the_inbox(store: Ledger) {
    ended(&store, 1, &[], 1).await;
    assert!(!admit(&store, Budget { per_hour: 0 }, 1).await);
    let rows = deliveries(&store).await;
    assert_eq!(rows[0].state, DeliveryState::Dead);
    assert_eq!(rows[0].reason.as_deref(), Some(wake::TURNED_OFF));
    let waiting = inbox(&store, 2).await;
    assert_eq!((waiting.len(), pauses(&waiting)), (1, 0));
}

/// The operator forbids a kind: what is pending to it ends, what is under way or elsewhere does not.
pub async fn what_is_forbidden_by_now_is_given_up_and_can_begin_anew(store: Ledger) {
    ended(&store, 1, &["https://x.example/"], 1).await;
    ended(&store, 2, &["https://y.example/"], 1).await;
    let under_way = store.claim(of("https://y.example"), 1, at(50), at(1)).await.expect("claimed");
    assert_eq!(under_way.len(), 1);
    let kinds = vec![TargetKind::Webhook];
    assert_eq!(store.give_up(kinds.clone(), 10, at(2)).await, Ok(1));
    assert_eq!(store.give_up(kinds, 10, at(3)).await, Ok(0));
    let states: Vec<_> = deliveries(&store).await.into_iter().map(|row| (row.target, row.state)).collect();
    let dead: Vec<_> = states.iter().filter(|(_, state)| *state == DeliveryState::Dead).collect();
    assert_eq!(dead, [&("https://x.example/".to_owned(), DeliveryState::Dead)]);
    let again =
        store.redeliver(Redeliver::State(DeliveryState::Dead), Vec::new(), at(4)).await.expect("taken").due;
    assert_eq!(again.len(), 1);
    let claims = store.claim(of("https://x.example"), 1, at(50), at(4)).await.expect("claimed");
    assert_eq!((claims.len(), claims[0].again, under_way[0].again), (1, true, false));
}

/// What waits because a budget is spent is due once there is another; the same budget changes nothing.
pub async fn p5_a_changed_budget_of_wakes_holds_for_what_waits(store: Ledger) {
    for n in 1..=2 {
        ended(&store, n, &[], n64(n)).await;
        assert_eq!(hand_over(&store, 100 + n, 0, n64(n)).await, Some(1));
    }
    ended(&store, 3, &[], 3).await;
    assert_eq!(hand_over(&store, 103, 0, 3).await, None);
    assert_eq!(store.apply_budget(BUDGET, at(4)).await, Ok(0));
    assert_eq!(store.due(at(4)).await, Ok((Vec::new(), Some(at(1 + HOUR)))));
    let larger = Budget { per_hour: 3 };
    assert_eq!(store.apply_budget(larger, at(5)).await, Ok(1));
    assert_eq!(store.due(at(5)).await.expect("readable").0, [of(COMMAND)]);
    assert!(admit(&store, larger, 6).await);
}

/// A queue longer than one look: what was not looked at is not claimed for it.
pub async fn p5_what_was_not_looked_at_wakes_nobody_yet(store: Ledger) {
    let tasks = 1..=1_001;
    let submits: Vec<_> = tasks
        .clone()
        .map(|n| {
            let mut task = submit(n);
            task.task.owner = OWNER.into();
            let targets = vec!["wake".parse().expect("a target")];
            task.task.spec.notify = Some(Notify { on: When::Always, targets, secret: None });
            store.submit(task, at(0))
        })
        .collect();
    for submit in submits {
        submit.await.expect("taken");
    }
    let ends: Vec<_> = tasks
        .map(|n| store.finish(first(n), ending(0, 0), Report { entropy: n << 20, ..Report::default() }))
        .collect();
    for end in ends {
        done(end.await.expect("taken"));
    }
    let late = 50 * HOUR;
    let admit = |entropy| store.admit(of(WAKE), TERMS, entropy, at(late));
    assert_eq!(admit(1 << 40).await, Ok(false), "the last was not looked at");
    assert_eq!(admit(1 << 41).await, Ok(true));
    assert_eq!(store.claim(of(WAKE), 100, at(late + 50), at(late)).await, Ok(Vec::new()), "too old, all");
}

/// Also where somebody else ends a task, and while it lives.
pub async fn the_operator_has_the_last_word_on_stops_and_on_live_tasks(store: Ledger) {
    for (n, most, told) in [(1, When::Always, 2), (2, When::Failure, 1), (3, When::Never, 0)] {
        let owner = format!("owner {n}");
        let mut task = submit(n);
        (task.task.kind, task.task.owner) = (Kind::External, owner.clone());
        task.task.tracking = Some(Tracking::Lease { ms: 1_000 });
        task.task.spec.notify = Some(Notify::usual());
        create(&store, task, 0).await;
        let quiet = Body::Quiet { quiet_ms: 5, waiting_for_input: false };
        done(tell(&store, n, 1, quiet, Some(most), 1).await);
        let by = owner.as_str().into();
        done(store.stop_requested(id(n), by, 50 + n, Some(most), at(2)).await.expect("taken"));
        let notices = store.peek(owner, 9, Access::Look, at(3)).await.expect("readable").notices;
        assert_eq!(notices.len(), told, "{most:?}");
    }
}

/// A task that was to tell always tells no more than the operator lets it when it ends.
pub async fn the_operator_has_the_last_word_on_when(store: Ledger) {
    for (n, most, told) in [(1, When::Always, 1), (2, When::Failure, 0), (3, When::Never, 0)] {
        let mut task = submit(n);
        task.task.owner = format!("owner {n}");
        task.task.spec.notify = Some(Notify::usual());
        create(&store, task, 0).await;
        let report = Report { at_most: Some(most), entropy: n, ..Report::default() };
        done(store.finish(first(n), ending(1, 0), report).await.expect("taken"));
        let notices =
            store.peek(format!("owner {n}"), 9, Access::Look, at(2)).await.expect("readable").notices;
        assert_eq!(notices.len(), told, "{most:?}");
    }
}

fn n64(n: u64) -> i64 {
    i64::try_from(n).expect("small")
}
