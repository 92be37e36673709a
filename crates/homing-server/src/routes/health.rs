//! `GET /healthz`: whether anybody serves.

use schemars::JsonSchema;
use serde::Serialize;

use crate::http::answer::{Answer, json};
use crate::http::call::Call;

/// Answer of the health check.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Health {
    /// Always true: who does not serve does not answer.
    ok: bool,
}

/// Serves it.
pub(crate) async fn show(_: Call) -> Answer {
    json(&Health { ok: true })
}
