//! What is said of the process that a session of an agent is in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::AgentName;

/// Body of `POST /v1/sessions`: an agent's hook says which session its process is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BindRequest {
    /// Which agent.
    pub agent: AgentName,
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

/// A session, and where it is. Answer of `GET /v1/session` (or `null`), `POST /v1/sessions` and `GET /v1/sessions/{owner}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// Whom its tasks belong to: `AGENT:ID`.
    pub owner: String,
    /// Which agent.
    pub agent: AgentName,
    /// Its id for the conversation.
    pub session: String,
    /// The living process that it is in, as far as it is known.
    pub pid: Option<u32>,
    /// Whether a hook waits for its results, and will wake it.
    pub waiter: bool,
    /// How often in a row the end of its turn was put off.
    pub streak: u32,
}
