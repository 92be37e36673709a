//! The loopback listener and the page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Body of `POST /v1/listener`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListenerRequest {
    /// The port to listen at: any if it is 0; the one it has, or had, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// The loopback listener.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListenerInfo {
    /// Whether it is open.
    pub enabled: bool,
    /// Its port, while it is open.
    pub port: Option<u16>,
    /// Where it listens: `http://127.0.0.1:PORT`, `http://[::1]:PORT`.
    pub addresses: Vec<String>,
    /// Why it is not open, though it should be.
    pub problem: Option<String>,
    /// Connections now.
    pub connections: u64,
    /// Requests since the daemon's start that were not let in.
    pub refused: u64,
    /// Of those, requests without the token.
    pub failed_auth: u64,
}

/// Answer of `POST /v1/token/rotate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RotateAnswer {
    /// Always true: the old token is worth nothing.
    pub rotated: bool,
}

/// Answer of `POST /v1/page`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PageAnswer {
    /// Opens the page in a browser and signs it in. Good once.
    pub url: String,
    /// For how long.
    pub valid_ms: u64,
}
