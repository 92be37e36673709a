//! The transition table: every (state, event), in one place, total and pure.
//!
//! Keeps P1. The store applies it inside the transaction that changes the row, as a compare-and-set on (task, attempt, status),
//! so two finishers can both ask and only the first is answered with a new state. A rejected event is a typed error.

use crate::outcome::Verdict;
use crate::status::Status;

/// What can happen to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// Its turn has come.
    Claimed,
    /// The shim reports that the command was executed.
    Started,
    /// Somebody asked for its end.
    StopRequested,
    /// The tree was frozen.
    Paused,
    /// The tree was thawed.
    Resumed,
    /// The attempt ended, and no further one follows.
    Ended(Verdict),
    /// The attempt ended, and another follows.
    Retried,
}

/// Why an event does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The task has ended; the first finisher won.
    #[error("the task has already ended as {0}")]
    AlreadyEnded(Status),
    /// The event makes no sense in this state.
    #[error("{event:?} does not apply to a task that is {status}")]
    NotApplicable {
        /// The state.
        status: Status,
        /// The event.
        event: Transition,
    },
}

/// The state after `event` in state `status`.
///
/// # Errors
/// Where the event does not apply; the task is then unchanged.
pub const fn next(status: Status, event: Transition) -> Result<Status, Rejected> {
    use Status::{
        Failed, Lost, Paused, Queued, Running, StartFailed, Starting, Stopped, Stopping, Succeeded, TimedOut,
    };
    use Transition as On;

    let rejected = Err(Rejected::NotApplicable { status, event });
    match (status, event) {
        (Queued, On::Claimed) => Ok(Starting),
        // Nothing runs yet, so a stop is an end at once.
        (Queued, On::StopRequested) => Ok(Stopped),
        (Queued, On::Started | On::Paused | On::Resumed | On::Ended(_) | On::Retried) => rejected,

        (Starting, On::Started) => Ok(Running),
        (Starting | Running | Paused, On::StopRequested) => Ok(Stopping),
        // A daemon that was away may hear of the end before it heard of the start.
        (Starting | Running | Paused | Stopping, On::Ended(verdict)) => Ok(verdict.status()),
        (Starting | Running | Paused, On::Retried) => Ok(Queued),
        (Starting, On::Claimed | On::Paused | On::Resumed) => rejected,

        (Running, On::Paused) => Ok(Paused),
        (Running, On::Claimed | On::Started | On::Resumed) => rejected,

        (Paused, On::Resumed) => Ok(Running),
        (Paused, On::Claimed | On::Started | On::Paused) => rejected,

        // The stop overtook the report of the start: the pid is news, the state is not.
        (Stopping, On::Started) => Ok(Stopping),
        // What was stopped on purpose is not tried again.
        (Stopping, On::Claimed | On::StopRequested | On::Paused | On::Resumed | On::Retried) => rejected,

        (
            Succeeded | Failed | Stopped | TimedOut | StartFailed | Lost,
            On::Claimed
            | On::Started
            | On::StopRequested
            | On::Paused
            | On::Resumed
            | On::Ended(_)
            | On::Retried,
        ) => Err(Rejected::AlreadyEnded(status)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events() -> Vec<Transition> {
        let mut events = vec![
            Transition::Claimed,
            Transition::Started,
            Transition::StopRequested,
            Transition::Paused,
            Transition::Resumed,
            Transition::Retried,
        ];
        events.extend(Verdict::ALL.map(Transition::Ended));
        events
    }

    #[test]
    fn p1_a_terminal_state_never_changes() {
        for status in Status::ALL.into_iter().filter(|status| status.is_terminal()) {
            for event in events() {
                assert_eq!(next(status, event), Err(Rejected::AlreadyEnded(status)));
            }
        }
    }

    #[test]
    fn every_active_state_can_end_in_every_way() {
        for status in Status::ALL.into_iter().filter(|status| status.is_active()) {
            for verdict in Verdict::ALL {
                assert_eq!(next(status, Transition::Ended(verdict)), Ok(verdict.status()));
            }
        }
    }

    #[test]
    fn only_what_runs_is_paused_and_only_what_is_paused_goes_on() {
        for status in Status::ALL {
            let (paused, resumed) = (next(status, Transition::Paused), next(status, Transition::Resumed));
            assert_eq!(paused.ok(), (status == Status::Running).then_some(Status::Paused), "{status}");
            assert_eq!(resumed.ok(), (status == Status::Paused).then_some(Status::Running), "{status}");
        }
        assert_eq!(next(Status::Paused, Transition::StopRequested), Ok(Status::Stopping));
    }

    proptest! {
        #[test]
        fn p1_any_history_ends_at_most_once(picks in proptest::collection::vec(0usize..12, 0..200)) {
            let events = events();
            let (mut status, mut ends) = (Status::Queued, 0);
            for pick in picks {
                if let Ok(after) = next(status, events[pick]) {
                    ends += usize::from(after.is_terminal());
                    status = after;
                }
            }
            prop_assert_eq!(ends, usize::from(status.is_terminal()));
        }
    }
}
