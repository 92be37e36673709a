//! `POST /v1/tasks/{ref}/progress`: how far a task is, by its own word.

use homing_api::ProgressRequest;
use homing_model::nesting::TaskAccess;

use crate::http::answer::{Answer, json};
use crate::http::call::Call;

/// Serves it. Another owner's task is answered as one that is not there; inside a task, only what the caller may steer is reached.
pub(crate) async fn note(call: Call) -> Answer {
    let request = call.json::<ProgressRequest>()?;
    let reference = call.named()?;
    if call.scope.limited_to().is_some() {
        call.resolve(reference, TaskAccess::Control).await?;
    }
    json(&call.app.engine.progress(reference, call.owner()?, request).await?)
}
