//! Reservations: an inbox entry is held for one reader until a time. Keeps P5 and P6.
//!
//! | state | meaning | ends by |
//! |---|---|---|
//! | held | a waiter, a polling client, a taker or a wake will get it | the delivery, a release, its time |
//! | delivered | it was handed to its owner, who has not confirmed it | a confirmation, the end of the recipient, its time |
//! | expired | the entry is free again; a delivery that expired wakes nobody | another reservation |
//! | acknowledged | the entry is gone | never |
//!
//! Several waiters may hold one notice, since each of them was asked by the owner itself. Every other
//! reader takes only what nothing holds. A notice has one [`Reservation`] for each of its readers; the
//! store reads them, applies [`Reservation::on`] and writes the result in the same transaction.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::time::Timestamp;

/// How long the end of a task is held for the client that polls for it.
pub const POLL_MS: i64 = 30_000;

/// How long a waiter's reservation outlasts its request: a daemon that restarts is back by then, and
/// the waiter has called again or marked the answer as delivered.
pub const GRACE_MS: i64 = 10_000;

/// What the caller of a submit does next about the end of its task, which is reserved for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reserve {
    /// It waits for the end with `reserve=true` or `confirm`, within 10 s of the submit.
    Wait,
    /// It polls for the end, as MCP clients do, and comes within 30 s of it.
    Poll,
}

/// The reader that a notice is held for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reader {
    /// A wait for the end of the task, by the number of its call; 0 is the wait that the submit announced.
    Waiter(u64),
    /// A client that polls for the end of the task.
    Poller,
    /// A hook or a program that took it from the inbox.
    Taker,
    /// A wake of the owner's session, by the hook task that carries it out.
    Wake(TaskId),
}

/// What confirms that the owner has read a delivered notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmedBy {
    /// The owner's next call, or the end of its turn.
    Call,
    /// The end of the owner's turn.
    Turn,
}

impl ConfirmedBy {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Turn => "turn",
        }
    }
}

impl FromStr for ConfirmedBy {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Call, Self::Turn].into_iter().find(|by| by.as_str() == text).ok_or(())
    }
}

/// Where a delivered notice went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// What confirms it.
    pub confirmed_by: ConfirmedBy,
    /// Whether the recipient is the process that the owner, a session, is known to be in. Always true
    /// of an owner that is no session.
    pub bound: bool,
    /// The task that the recipient runs in, if any: then the next call from inside it confirms too.
    pub inside: Option<TaskId>,
}

/// A call, or the end of a turn, that confirms deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Confirmer {
    /// The owner.
    Owner(String),
    /// A caller inside this task: it confirms only what was delivered inside.
    Inside(TaskId),
}

/// Held or delivered, until [`Reservation::until`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// A reader will get it.
    Held(Reader),
    /// The owner was handed it.
    Delivered(Recipient),
}

/// One notice is held for one reader until a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// For which reader, or where it went.
    pub state: State,
    /// From then on it has expired.
    pub until: Timestamp,
}

/// What happens to a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The reader's connection ended, or it failed.
    Released(Reader),
    /// It was handed to the owner, by whichever reader.
    Delivered,
    /// The owner called again, or its turn ended.
    Confirmed(ConfirmedBy),
    /// A caller inside this task called again.
    ConfirmedInside(TaskId),
    /// The process that the owner, a session, was in is gone.
    RecipientGone,
    /// A hook named the process that the owner, a session, is in.
    RecipientNamed,
}

/// What an event makes of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Unchanged,
    /// It no longer holds the notice.
    Expired,
    /// Its recipient is the process that the owner is known to be in.
    Bound,
    /// The notice leaves the inbox.
    Acknowledged,
}

impl Reservation {
    /// Whether it holds the notice.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.until > now
    }

    /// Whether the owner was handed the notice, even if that expired.
    #[must_use]
    pub const fn is_delivery(&self) -> bool {
        matches!(self.state, State::Delivered(_))
    }

    /// The transition table.
    #[must_use]
    pub fn on(&self, event: &Event, now: Timestamp) -> Next {
        if !self.is_live(now) {
            return Next::Unchanged;
        }
        match (&self.state, event) {
            (State::Held(reader), Event::Released(released)) if reader == released => Next::Expired,
            // Another waiter that is connected still wants its answer.
            (State::Held(Reader::Waiter(_)), Event::Delivered) => Next::Unchanged,
            // The delivery takes its place.
            (State::Held(_) | State::Delivered(_), Event::Delivered) => Next::Expired,
            (State::Delivered(to), Event::Confirmed(by)) if to.confirmed_by <= *by => Next::Acknowledged,
            (State::Delivered(to), Event::ConfirmedInside(task)) if to.inside.as_ref() == Some(task) => {
                Next::Acknowledged
            }
            // A process that no hook had named is not the one that is gone.
            (State::Delivered(to), Event::RecipientGone) if to.bound => Next::Expired,
            (State::Delivered(to), Event::RecipientNamed) if !to.bound => Next::Bound,
            (State::Held(_) | State::Delivered(_), _) => Next::Unchanged,
        }
    }
}

/// What a reader wants of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To look: what a waiter will get is there all the same.
    Look,
    /// To take it and hand it to the owner.
    Take,
}

/// Until when these reservations of one notice keep a reader from it; none if it is free.
pub fn held_until<'a>(
    reservations: impl IntoIterator<Item = &'a Reservation>,
    access: Access,
    now: Timestamp,
) -> Option<Timestamp> {
    let counts = |one: &&Reservation| {
        let waits = matches!(one.state, State::Held(Reader::Waiter(_)));
        one.is_live(now) && !(waits && access == Access::Look)
    };
    reservations.into_iter().filter(counts).map(|one| one.until).max()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One inbox entry with its reservations, as a store keeps them.
    #[derive(Debug, Default)]
    struct Entry {
        reservations: Vec<Reservation>,
        acknowledged: bool,
    }

    impl Entry {
        fn set(&mut self, state: State, until: i64) {
            self.reservations.retain(|one| one.state != state);
            self.reservations.push(Reservation { state, until: at(until) });
        }

        fn apply(&mut self, event: &Event, now: i64) {
            for one in &mut self.reservations {
                match one.on(event, at(now)) {
                    Next::Unchanged => {}
                    Next::Expired => one.until = at(0),
                    Next::Bound => {
                        if let State::Delivered(to) = &mut one.state {
                            to.bound = true;
                        }
                    }
                    Next::Acknowledged => self.acknowledged = true,
                }
            }
        }

        fn held_until(&self, access: Access, now: i64) -> Option<i64> {
            held_until(&self.reservations, access, at(now)).map(Timestamp::as_millis)
        }

        /// True if the taker gets it.
        fn take(&mut self, reader: Reader, until: i64, now: i64) -> bool {
            let free = !self.acknowledged && self.held_until(Access::Take, now).is_none();
            if free {
                self.set(State::Held(reader), until);
            }
            free
        }

        fn deliver(&mut self, confirmed_by: ConfirmedBy, bound: bool, until: i64, now: i64) {
            self.apply(&Event::Delivered, now);
            self.set(State::Delivered(Recipient { confirmed_by, bound, inside: None }), until);
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[derive(Debug, Clone)]
    enum Step {
        Wait(u64, i64),
        Take(i64),
        Wake(i64),
        Deliver(ConfirmedBy, bool, i64),
        Happens(Event),
        Pass(i64),
    }

    fn hook() -> TaskId {
        TaskId::from_entropy(7)
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let by = || prop_oneof![Just(ConfirmedBy::Call), Just(ConfirmedBy::Turn)];
        let reader = prop_oneof![
            (0_u64..3).prop_map(Reader::Waiter),
            Just(Reader::Poller),
            Just(Reader::Taker),
            Just(Reader::Wake(hook())),
        ];
        let event = prop_oneof![
            reader.prop_map(Event::Released),
            by().prop_map(Event::Confirmed),
            Just(Event::ConfirmedInside(hook())),
            Just(Event::RecipientGone),
            Just(Event::RecipientNamed),
        ];
        let step = prop_oneof![
            (0_u64..3, 1_i64..50).prop_map(|(call, time)| Step::Wait(call, time)),
            (1_i64..50).prop_map(Step::Take),
            (1_i64..50).prop_map(Step::Wake),
            (by(), any::<bool>(), 1_i64..50).prop_map(|(by, bound, time)| Step::Deliver(by, bound, time)),
            event.prop_map(Step::Happens),
            (1_i64..40).prop_map(Step::Pass),
        ];
        proptest::collection::vec(step, 1..40)
    }

    proptest! {
        #[test]
        fn p6_an_entry_has_one_taker_at_a_time(steps in steps()) {
            let (mut entry, mut now) = (Entry::default(), 1);
            // Until when the entry was given away, by a take or a delivery.
            let mut given: Option<i64> = None;
            for step in steps {
                match step {
                    Step::Wait(call, time) => entry.set(State::Held(Reader::Waiter(call)), now + time),
                    Step::Take(time) | Step::Wake(time) => {
                        let reader = match step {
                            Step::Wake(_) => Reader::Wake(hook()),
                            _ => Reader::Taker,
                        };
                        if entry.take(reader, now + time, now) {
                            prop_assert!(given.is_none_or(|until| until <= now));
                            given = Some(now + time);
                        }
                    }
                    Step::Deliver(by, bound, time) => {
                        entry.deliver(by, bound, now + time, now);
                        given = Some(now + time);
                    }
                    Step::Happens(event) => {
                        let before = entry.acknowledged;
                        entry.apply(&event, now);
                        let free = entry.held_until(Access::Look, now).is_none();
                        if free && !entry.acknowledged {
                            given = None;
                        }
                        if entry.acknowledged && !before {
                            let confirms =
                                matches!(event, Event::Confirmed(_) | Event::ConfirmedInside(_));
                            prop_assert!(confirms, "only a confirmation acknowledges");
                        }
                    }
                    Step::Pass(time) => now += time,
                }
            }
        }

        #[test]
        fn p5_what_nothing_confirms_is_free_again(steps in steps()) {
            let (mut entry, mut now) = (Entry::default(), 1);
            for step in steps {
                match step {
                    Step::Wait(call, time) => entry.set(State::Held(Reader::Waiter(call)), now + time),
                    Step::Take(time) => drop(entry.take(Reader::Taker, now + time, now)),
                    Step::Wake(time) => drop(entry.take(Reader::Wake(hook()), now + time, now)),
                    Step::Deliver(by, bound, time) => entry.deliver(by, bound, now + time, now),
                    Step::Happens(Event::Confirmed(_) | Event::ConfirmedInside(_)) => {}
                    Step::Happens(event) => entry.apply(&event, now),
                    Step::Pass(time) => now += time,
                }
            }
            prop_assert!(!entry.acknowledged);
            prop_assert_eq!(entry.held_until(Access::Take, now + 50), None);
            prop_assert!(entry.take(Reader::Taker, now + 60, now + 50));
        }

        #[test]
        fn p6_acknowledged_is_final(steps in steps()) {
            let mut entry = Entry::default();
            entry.deliver(ConfirmedBy::Call, true, 50, 1);
            entry.apply(&Event::Confirmed(ConfirmedBy::Call), 2);
            for step in steps {
                match step {
                    Step::Take(time) => prop_assert!(!entry.take(Reader::Taker, 2 + time, 2)),
                    Step::Wake(time) => prop_assert!(!entry.take(Reader::Wake(hook()), 2 + time, 2)),
                    Step::Happens(event) => entry.apply(&event, 2),
                    Step::Wait(..) | Step::Deliver(..) | Step::Pass(_) => {}
                }
                prop_assert!(entry.acknowledged);
            }
        }

        #[test]
        fn p6_a_dropped_connection_frees_the_entry(call in 0_u64..9, other in 0_u64..9, until in 5_i64..50) {
            let mut entry = Entry::default();
            entry.set(State::Held(Reader::Waiter(call)), until);
            entry.set(State::Held(Reader::Waiter(other)), until);
            prop_assert_eq!(entry.held_until(Access::Look, 1), None, "looking is free");
            entry.apply(&Event::Released(Reader::Waiter(call)), 2);
            prop_assert_eq!(entry.held_until(Access::Take, 2).is_some(), other != call);
            entry.apply(&Event::Released(Reader::Waiter(other)), 3);
            prop_assert_eq!(entry.held_until(Access::Take, 3), None);
        }
    }

    #[test]
    fn a_turn_confirms_what_a_call_confirms_and_not_the_reverse() {
        for (confirmed_by, by, gone) in [
            (ConfirmedBy::Call, ConfirmedBy::Call, true),
            (ConfirmedBy::Call, ConfirmedBy::Turn, true),
            (ConfirmedBy::Turn, ConfirmedBy::Turn, true),
            (ConfirmedBy::Turn, ConfirmedBy::Call, false),
        ] {
            let mut entry = Entry::default();
            entry.deliver(confirmed_by, true, 50, 1);
            entry.apply(&Event::Confirmed(by), 2);
            assert_eq!(entry.acknowledged, gone, "{confirmed_by:?} by {by:?}");
        }
    }

    #[test]
    fn a_late_confirmation_counts_for_nothing() {
        let mut entry = Entry::default();
        entry.deliver(ConfirmedBy::Call, true, 50, 1);
        entry.apply(&Event::Confirmed(ConfirmedBy::Turn), 50);
        let [delivery] = entry.reservations.as_slice() else { panic!("one delivery") };
        assert!(!entry.acknowledged && delivery.is_delivery() && !delivery.is_live(at(50)));
    }

    #[test]
    fn the_end_of_another_process_returns_nothing() {
        let mut entry = Entry::default();
        entry.deliver(ConfirmedBy::Call, false, 50, 1);
        entry.apply(&Event::RecipientGone, 2);
        assert_eq!(entry.held_until(Access::Take, 2), Some(50), "no hook had named its process");
        entry.apply(&Event::RecipientNamed, 3);
        entry.apply(&Event::RecipientGone, 4);
        assert_eq!(entry.held_until(Access::Take, 4), None);
    }
}
