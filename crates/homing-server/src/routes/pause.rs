//! `POST /v1/tasks/{ref}/pause` and `/resume`: the whole tree stands still, and goes on.

use homing_model::nesting::TaskAccess;

use crate::app::to_the_end;
use crate::http::answer::{Answer, json};
use crate::http::call::Call;

/// Serves the one. Answers once the tree stands still.
pub(crate) async fn pause(call: Call) -> Answer {
    let id = call.task(TaskAccess::Control).await?;
    let engine = call.app.engine.clone();
    json(&to_the_end(async move { engine.pause(&id).await }).await?)
}

/// Serves the other.
pub(crate) async fn resume(call: Call) -> Answer {
    let id = call.task(TaskAccess::Control).await?;
    let engine = call.app.engine.clone();
    json(&to_the_end(async move { engine.resume(&id).await }).await?)
}
