//! `GET /v1/status`: how the daemon is.

use crate::answer::{Answer, json};
use crate::call::Call;

/// Serves it.
pub(crate) async fn show(call: Call) -> Answer {
    json(&call.app.engine.status().await?)
}
