//! What is said of the process that a session of an agent is in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::NoticeId;
use crate::session::Agent;

/// Body of `POST /v1/sessions`: an agent's hook says which session its process is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BindRequest {
    /// Which agent.
    pub agent: Agent,
    /// Its id for the conversation.
    pub session: String,
    /// The agent's process: an ancestor of the caller. If absent, the nearest that is no shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// At the end of a turn: whether that turn was itself the going on after an end that was put off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued: Option<bool>,
    /// Whether the agent polls for the ends of MCP tasks that it has begun, also after a restart: those are then held for it for a while.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polls: bool,
}

/// How long the end of a task is held for the client that polls for it; one that does not come in this time is not there.
pub const POLLED_MS: i64 = 30_000;

/// How much longer than the time of a question its end is held for whoever asks: as long as a daemon may take to be back, and be asked again.
pub const GRACE_MS: i64 = 10_000;

/// No task is awaited longer by the word of its submit alone.
pub const LONGEST_AWAITED_MS: u64 = 600_000;

/// A session, and where it is. Answer of `GET /v1/session` (or `null`), `POST /v1/sessions` and `GET /v1/sessions/{owner}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// Whom its tasks belong to: `claude:ID`.
    pub owner: String,
    /// Which agent.
    pub agent: Agent,
    /// Its id for the conversation.
    pub session: String,
    /// The living process that it is in, as far as it is known.
    pub pid: Option<u32>,
    /// Whether a hook waits for its results, and will wake it.
    pub waiter: bool,
    /// How often in a row the end of its turn was put off.
    pub streak: u32,
}

/// Body of `POST /v1/inbox/{owner}/told`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToldRequest {
    /// Notices that the owner was handed.
    pub ids: Vec<NoticeId>,
    /// How long the owner may take to call again, or to end its turn (`in_turn`), which acknowledges them; then they are back. 60 s if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// A hook of an agent printed them: no call acknowledges them, only the end of a turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
}

/// Answer of `POST /v1/inbox/{owner}/told`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToldAnswer {
    /// What was there, and is now held.
    pub told: Vec<NoticeId>,
}
