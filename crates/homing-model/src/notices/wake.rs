//! Who is woken, how often, and for how long a notice is worth it: pure policy.
//!
//! A wake starts a turn of an agent, and what an agent does in its turn may end in another wake. So each owner has a budget: so many
//! hand-overs in any hour. What is beyond it waits in the inbox, and goes together once there is room again. A command (`exec:`) of a task
//! that belongs to an agent's session is a wake of that session; one of a person's task is not. But it may be there for anything: it is
//! run whatever its owner knows by then and however late it is, while a target that can only wake is not.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The stretch of time that a budget is for, in milliseconds.
pub const WINDOW_MS: i64 = 3_600_000;
/// A notice that is older wakes nobody, in milliseconds. It stays readable.
pub const LONGEST_MS: i64 = 48 * 3_600_000;
/// Hand-overs an hour, where the configuration does not say.
pub const PER_HOUR: u32 = 30;

/// Why a delivery ended without a wake: its owner knows.
pub const TOLD: &str = "its owner has it already, so nobody has to be woken";
/// Why a delivery ended without a wake: it came too late.
pub const EXPIRED: &str = "expired: notices older than 48 h wake nobody; `homing show` has what it said";
/// Why a delivery ended without a wake: nobody is to be woken at all.
pub const TURNED_OFF: &str =
    "wakes are turned off (wake.per_hour is 0); `homing redeliver` sends it once they are on";

/// How the reason of a delivery begins that waits because of the budget; the budget follows.
pub const SPENT: &str = "the owner's budget of ";

/// Why a delivery waits: nothing is typed into terminals.
pub const NO_TMUX: &str = "nothing is typed into panes of tmux (wake.tmux is false); it waits in the inbox";

/// `[wake]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Hand-overs to one owner in any hour; none at all if 0.
    pub per_hour: u32,
    /// Whether a session in which nobody sits is woken by running its agent for one more turn. Absent: one that was so when it submitted
    /// is, since that is how it works; one that a person had open and closed is not, since nobody expects it to go on by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headless: Option<bool>,
    /// Whether notices are typed into panes of tmux (`wake:tmux:%PANE`).
    pub tmux: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { per_hour: PER_HOUR, headless: None, tmux: false }
    }
}

impl Settings {
    /// How often one owner is woken.
    #[must_use]
    pub const fn budget(self) -> Budget {
        Budget { per_hour: self.per_hour }
    }

    /// Whether an agent may be run for one more turn of a session, which was without a person or not when it submitted.
    #[must_use]
    pub fn runs(self, was_headless: bool) -> bool {
        self.headless.unwrap_or(was_headless)
    }
}

/// How often one owner is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Hand-overs in any hour; none at all if 0.
    pub per_hour: u32,
}

impl Budget {
    /// Whether there is room for one more hand-over, or when there will be. `nth` is when the last but (`per_hour` - 1) was made, among
    /// those of the last hour: the one that has to be an hour old before another fits.
    #[must_use]
    pub fn room(self, nth: Option<Timestamp>, now: Timestamp) -> Room {
        match nth {
            _ if self.per_hour == 0 => Room::Never,
            Some(at) if counts(at, now) => {
                // A clock that was set back must not close it for longer than an hour.
                Room::At(at.plus_millis(WINDOW_MS).min(now.plus_millis(WINDOW_MS)))
            }
            Some(_) | None => Room::Now,
        }
    }

    /// Why a delivery waits.
    #[must_use]
    pub fn spent(self) -> String {
        format!("{SPENT}{} wakes an hour is spent; it waits in the inbox", self.per_hour)
    }
}

/// Whether there is room in a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// There is.
    Now,
    /// From this time on.
    At(Timestamp),
    /// There is no budget.
    Never,
}

/// Whether a hand-over of this time counts now. One from far in the future was made by a clock that was wrong, and does not.
#[must_use]
pub const fn counts(at: Timestamp, now: Timestamp) -> bool {
    let (at, now) = (at.as_millis(), now.as_millis());
    at > now.saturating_sub(WINDOW_MS) && at < now.saturating_add(WINDOW_MS)
}

/// Whether the owner is to be told anew that the budget is spent: once an hour.
#[must_use]
pub fn tells(told_at: Option<Timestamp>, now: Timestamp) -> bool {
    told_at.is_none_or(|at| !counts(at, now))
}

/// Whether a notice of this time is too old to wake anybody.
#[must_use]
pub const fn expired(at: Timestamp, now: Timestamp) -> bool {
    at.as_millis().saturating_add(LONGEST_MS) <= now.as_millis()
}

/// Whether it is time for a wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It is.
    Ready,
    /// The session is at work.
    Busy(String),
    /// No process has the session open.
    Closed(String),
}

impl Readiness {
    /// How long to wait before the next look, the `times`th in a row.
    #[must_use]
    pub fn pause(&self, times: u32) -> Duration {
        const MAX_CLOSED: Duration = Duration::from_secs(30);
        match self {
            Self::Ready => Duration::ZERO,
            Self::Busy(_) => Duration::from_secs(1),
            Self::Closed(_) => Duration::from_secs(1 << times.min(5)).min(MAX_CLOSED),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_789_000_000_000);

    fn ago(millis: i64) -> Timestamp {
        NOW.plus_millis(-millis)
    }

    #[test]
    fn there_is_room_again_when_the_nth_is_an_hour_old() {
        let budget = Budget { per_hour: 2 };
        assert_eq!(budget.room(None, NOW), Room::Now);
        assert_eq!(budget.room(Some(ago(WINDOW_MS)), NOW), Room::Now);
        assert_eq!(budget.room(Some(ago(WINDOW_MS - 1)), NOW), Room::At(NOW.plus_millis(1)));
        assert_eq!(Budget { per_hour: 0 }.room(None, NOW), Room::Never);
    }

    #[test]
    fn an_agent_is_run_where_it_was_run_before_or_where_it_is_said() {
        let runs = |headless, was| Settings { headless, ..Settings::default() }.runs(was);
        assert!(runs(None, true) && !runs(None, false));
        assert!(runs(Some(true), false) && !runs(Some(false), true));
    }

    #[test]
    fn a_notice_wakes_for_two_days() {
        assert!(!expired(ago(LONGEST_MS - 1), NOW));
        assert!(expired(ago(LONGEST_MS), NOW));
    }

    proptest! {
        #[test]
        fn nobody_waits_longer_than_an_hour(nth: Option<i64>, now in 0i64..4_000_000_000_000, per_hour in 1u32..100) {
            let (nth, now) = (nth.map(Timestamp::from_millis), Timestamp::from_millis(now));
            if let Room::At(at) = (Budget { per_hour }).room(nth, now) {
                prop_assert!(at > now && at <= now.plus_millis(WINDOW_MS));
            }
        }

        #[test]
        fn no_hour_holds_more_than_the_budget(per_hour in 1u32..6, steps in prop::collection::vec(0i64..2_000_000, 1..80)) {
            let budget = Budget { per_hour };
            let (mut now, mut made): (_, Vec<Timestamp>) = (NOW, Vec::new());
            for step in steps {
                now = now.plus_millis(step);
                let nth = made.iter().rev().nth(per_hour as usize - 1).copied();
                if budget.room(nth, now) == Room::Now {
                    made.push(now);
                }
                let last_hour = made.iter().filter(|at| counts(**at, now)).count();
                prop_assert!(last_hour <= per_hour as usize);
            }
        }
    }
}
