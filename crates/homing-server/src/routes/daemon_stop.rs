//! `POST /v1/daemon/stop`: ends the daemon on purpose; its tasks run on.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::answer::{Answer, json_with};
use crate::http::call::Call;

/// Answer of a stop of the daemon.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DaemonStopAnswer {
    /// Always true; it has not ended yet when this is read.
    stopping: bool,
}

/// Serves it.
pub(crate) async fn stop(call: Call) -> Answer {
    call.may_configure()?;
    call.app.asked.notify_one();
    json_with(StatusCode::ACCEPTED, &DaemonStopAnswer { stopping: true })
}
