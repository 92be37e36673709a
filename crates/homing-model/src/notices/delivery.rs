//! A delivery: one notice on its way to one target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{DeliveryId, NoticeId, TaskId};
use crate::time::Timestamp;
use crate::words::words;

/// Where a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Waiting for its next attempt, or in one.
    Pending,
    /// The target has it.
    Delivered,
    /// A wake that is not needed: the owner has the notice by a hook, a waiter or the inbox.
    Superseded,
    /// Given up; `redeliver` begins anew.
    Dead,
}

words! {
    DeliveryState is "a state of a delivery: expected `pending`, `delivered`, `superseded` or `dead`":
    Pending = "pending",
    Delivered = "delivered",
    Superseded = "superseded",
    Dead = "dead",
}

/// One attempt that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub took_ms: u64,
    /// What the target answered, if it speaks HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What came of it, in words.
    pub result: String,
}

/// One delivery, as every surface shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// Which notice.
    pub notice_id: NoticeId,
    /// What that is about: `task.completed`. Absent where its text is gone or damaged.
    #[serde(default)]
    pub notice_type: Option<String>,
    /// Of which task.
    pub task_id: TaskId,
    /// Whose.
    pub owner: String,
    /// Where to; what follows the `?` of an address is not shown.
    pub target: String,
    /// Where it is.
    pub state: DeliveryState,
    /// Attempts that count, those before it was sent again included; a busy target spends none.
    pub attempts: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When the next attempt is due.
    pub next_at: Option<Timestamp>,
    /// When it came to its end.
    pub ended_at: Option<Timestamp>,
    /// Why it is dead or superseded, or waits longer than its schedule says, or ended without an attempt.
    pub reason: Option<String>,
    /// The command that has it now, or had it last: `homing output` shows what it printed.
    #[serde(default)]
    pub hook: Option<TaskId>,
    /// Every attempt, oldest first.
    pub history: Vec<Tried>,
}
