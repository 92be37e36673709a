//! Who asks for an end, and who has heard one.

use homing_model::{TaskId, Timestamp};

/// An owner waits for the ends of tasks by a call whose answer tells them: while it is open, nobody else tells those that are its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Who asks.
    pub owner: String,
    /// For what.
    pub tasks: Vec<TaskId>,
    /// Which call it is, above 0.
    pub call: u64,
    /// If nobody takes it back, it ends here.
    pub until: Timestamp,
}

/// Who was told something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearer {
    /// The process that the owner, a session, is bound to; or somebody who is no session.
    Known,
    /// A process of a session that is bound to none which lives: whatever was told to the one before is no business of this one.
    Unknown,
}

/// What proves that an owner has read what it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Its next call: it has had the answer that told it.
    Call,
    /// The end of a turn: a hook printed it, and only then had a model all of it in its context.
    TurnEnd,
}

impl Hearer {
    /// As it is kept, with what proves it.
    #[must_use]
    pub(crate) const fn number(self, proof: Proof) -> i64 {
        match (self, proof) {
            (Self::Known, Proof::Call) => 1,
            (Self::Unknown, Proof::Call) => 2,
            (Self::Known, Proof::TurnEnd) => 3,
            (Self::Unknown, Proof::TurnEnd) => 4,
        }
    }
}
