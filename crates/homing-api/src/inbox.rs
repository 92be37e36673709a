//! Inboxes and deliveries.

use homing_model::reservation::ConfirmedBy;
use homing_model::{DeliveryId, Notice, NoticeId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An owner with something in the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InboxOwner {
    /// Whose inbox.
    pub owner: String,
    /// Entries that are not acknowledged, those under a lease included.
    pub open: u64,
}

/// Answer of `GET /v1/inbox/{owner}` and of a take.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InboxAnswer {
    /// Oldest first.
    pub items: Vec<Notice>,
    /// Whether there is more: an answer has at most so many entries, and ends at a few megabytes.
    #[serde(default)]
    pub more: bool,
}

/// Body of `POST /v1/inbox/{owner}/take`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TakeRequest {
    /// At most so many; 100 if absent.
    pub max: Option<u32>,
    /// Nobody else gets them for so long; what is not acknowledged by then is available again. 60 s if absent.
    pub lease_ms: Option<u64>,
    /// If there is nothing, wait this long for something.
    pub wait_ms: Option<u64>,
    /// These notices, which are there for the caller whoever holds them, instead of the oldest that are free.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<NoticeId>,
    /// They are delivered, and acknowledged by the owner's next call (`call`) or the end of its turn (`turn`), if that comes before the lease
    /// ends. `call` if `ids` are given; else, if absent, only an acknowledgement removes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<ConfirmedBy>,
}

/// Body of `POST /v1/inbox/{owner}/ack`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckRequest {
    /// Ids of notices, or of tasks: all that is there of them.
    pub ids: Vec<String>,
}

/// Answer of an acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AckAnswer {
    /// What was there, and is now gone.
    pub acknowledged: Vec<NoticeId>,
}

/// Answer of a redelivery.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RedeliverAnswer {
    /// What goes out again.
    pub redelivered: Vec<DeliveryId>,
    /// What stays as it is: nothing may go to its target by now, or its owner has it by another way.
    #[serde(default)]
    pub refused: Vec<NotRedelivered>,
}

/// A delivery that does not go out again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotRedelivered {
    /// Its id.
    pub id: DeliveryId,
    /// Why.
    pub reason: String,
}
