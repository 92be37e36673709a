//! What goes into the ledger of notices, and what comes out of it.

use homing_model::agent::Heard;
use homing_model::answer;
use homing_model::notify::{SigningKey, When};
use homing_model::operator::TargetKind;
use homing_model::schedule::{self, Tries, Verdict};
use homing_model::wake::Budget;
use homing_model::{
    Delivery, DeliveryId, DeliveryState, Masks, Notice, NoticeId, Route, Target, TaskId, Timestamp, Tried,
};

/// What the notice of an end says beyond the ending itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// Random bits, from which the ids of the notice and its deliveries are drawn.
    pub entropy: u64,
    /// The end of the output, fit for any screen.
    pub output_tail: String,
    /// Whether there is more.
    pub output_truncated: bool,
    /// The operator's limit on what is notified; none if absent.
    pub at_most: Option<When>,
    /// The file with the first bytes.
    pub output_path: Option<String>,
    /// What an external task was completed with, or an agent answered; of one that failed, why.
    pub answer: Option<String>,
    /// What an agent said of itself.
    pub agent: Option<Heard>,
    /// Matches of a watch that no notice reports.
    pub held_back: Option<u64>,
}

/// Characters of the end of the output in the notice of an end on a full disk.
const SHORT_TAIL: usize = 500;

impl Report {
    /// What the reserve of a full disk has room for: the beginning of the answer and the end of the output.
    #[must_use]
    pub(crate) fn shortened(mut self, masks: &Masks) -> Self {
        self.answer = self.answer.map(|mut text| {
            // Before the cut, which would leave a part of a secret unrecognized.
            masks.cover(&mut text);
            answer::shortened(text)
        });
        if let Some((cut, _)) =
            self.output_tail.char_indices().nth_back(SHORT_TAIL - 1).filter(|(cut, _)| *cut > 0)
        {
            self.output_tail.drain(..cut);
            self.output_truncated = true;
        }
        self
    }
}

/// An owner with something in the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Whose inbox.
    pub owner: String,
    /// Entries that are not acknowledged, those under a lease included.
    pub open: u64,
}

/// What an owner can take now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Available {
    /// Oldest first.
    pub notices: Vec<Notice>,
    /// Whether there are more: an answer is bounded in entries and in bytes.
    pub more: bool,
    /// When the first of those under a lease is free again.
    pub free_at: Option<Timestamp>,
}

/// A delivery that was claimed for an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// Its id.
    pub id: DeliveryId,
    /// Fences the answer of an attempt whose lease ran out.
    pub fence: u64,
    /// Which notice.
    pub notice_id: NoticeId,
    /// Of which task.
    pub task_id: TaskId,
    /// Whose.
    pub owner: String,
    /// Where to.
    pub target: Target,
    /// The same, as people may see it.
    pub shown: String,
    /// The way of a wake.
    pub route: Option<Route>,
    /// Signs it, instead of the configured keys.
    pub secret: Option<SigningKey>,
    /// Whether the task was submitted over the network, not by the socket.
    pub network: bool,
    /// Attempts that count, since it was last sent again.
    pub attempts: u32,
    /// Times in a row that the target was busy.
    pub busy: u32,
    /// It was sent again on request, and so is delivered though its owner may have it.
    pub again: bool,
    /// A hook task had it since it was last sent again, and may have delivered it, however it ended.
    pub said: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// The notice as JSON: the same bytes at every attempt.
    pub notice: String,
}

/// What the configuration says of wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How often one owner is woken.
    pub budget: Budget,
    /// The operator's limit on what is notified.
    pub at_most: When,
}

/// A hand-over that spends a wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// Whom.
    pub owner: String,
    /// How often that may be.
    pub budget: Budget,
    /// For a turn of an agent: how long the inbox entries of its notices are held at most. This is
    /// the time limit of the hook task.
    pub until: Option<Timestamp>,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// For the history; a busy target leaves none.
    pub tried: Option<Tried>,
    /// What follows.
    pub next: Next,
}

impl Settled {
    /// What the schedule makes of an attempt, after those before it. `entropy` are random bits.
    #[must_use]
    pub fn after(before: Tries, verdict: &Verdict, tried: Tried, entropy: u64, now: Timestamp) -> Self {
        let busy = *verdict == Verdict::Busy;
        let tries = Tries {
            attempts: before.attempts.saturating_add(u32::from(!busy)),
            busy: if busy { before.busy.saturating_add(1) } else { 0 },
        };
        #[expect(clippy::cast_precision_loss, reason = "a chance needs no 64 bits")]
        let chance = (entropy >> 11) as f64 / (1_u64 << 53) as f64;
        let next = match schedule::after(tries, verdict, now, chance) {
            schedule::Next::Delivered => Next::Delivered,
            schedule::Next::At(at) => Next::At(at),
            schedule::Next::Dead(reason) => Next::Dead(reason.to_string()),
        };
        Self { tried: (!busy).then_some(tried), next }
    }
}

/// What follows an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the target has it.
    Delivered,
    /// Another attempt.
    At(Timestamp),
    /// Nothing: its owner has the notice by another way.
    Superseded(String),
    /// Nothing: it is given up.
    Dead(String),
}

/// Which deliveries to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryFilter {
    /// In this state.
    pub state: Option<DeliveryState>,
    /// Of this task.
    pub task: Option<TaskId>,
    /// Of this owner.
    pub owner: Option<String>,
    /// In the hands of this command, now or last.
    pub hook: Option<TaskId>,
    /// At most so many.
    pub limit: u32,
    /// Made before this one, where the last page ended.
    pub before: Option<u64>,
}

/// Deliveries, newest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeliveryPage {
    /// Those that could be read.
    pub items: Vec<Delivery>,
    /// The place of the last that was looked at, if there are more before it.
    pub next: Option<u64>,
}

/// Which deliveries begin anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redeliver {
    /// This one, whatever its state.
    Delivery(DeliveryId),
    /// All of this task.
    Task(TaskId),
    /// All in this state.
    State(DeliveryState),
}

/// What begins anew, and what may not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redelivered {
    /// What is due.
    pub due: Vec<DeliveryId>,
    /// What stays as it is, because nothing goes to targets of its kind.
    pub closed: Vec<(DeliveryId, TargetKind)>,
    /// What stays as it is, because its owner has the notice by another way.
    pub superseded: Vec<DeliveryId>,
}
