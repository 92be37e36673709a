//! `POST /v1/tasks/{ref}/progress`: how far a task is, by its own word.

use homing_model::api::ProgressRequest;
use homing_model::nesting::Act;

use crate::answer::{Answer, json};
use crate::call::Call;

/// Serves it.
pub(crate) async fn note(call: Call) -> Answer {
    let request = call.json::<ProgressRequest>()?;
    let id = call.task(Act::Steer).await?;
    json(&call.app.engine.progress(&id, request).await?)
}
