//! Reservations as operations of the store: by a waiter, and what was delivered.

use homing_model::reservation::Recipient;
use homing_model::{NoticeId, TaskId, Timestamp};

/// A wait for the ends of tasks: while it is open, no hook, waiter or wake gets those that are the owner's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Whose entries it reserves.
    pub owner: String,
    /// The tasks it waits for.
    pub tasks: Vec<TaskId>,
    /// The number of the call, above 0.
    pub call: u64,
    /// The end of the reservation, if nothing releases it before.
    pub until: Timestamp,
}

/// A delivery to an owner, which has to confirm it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// Where it went, and what confirms it.
    pub to: Recipient,
    /// Without a confirmation the entries are free again from then on.
    pub until: Timestamp,
}

/// Which entries of an inbox are given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// The oldest that are free, at most so many, held for the taker until then.
    Oldest {
        /// At most so many.
        limit: u32,
        /// The end of its lease.
        until: Timestamp,
    },
    /// These, whoever holds them: they were delivered.
    Delivered {
        /// Which.
        ids: Vec<NoticeId>,
        /// To whom.
        handed: Handed,
    },
}
