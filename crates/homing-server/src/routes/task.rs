//! `/v1/tasks/{ref}`: one task, and forgetting it.

use homing_model::nesting::TaskAccess;

use crate::app::to_the_end;
use crate::http::answer::{Answer, json};
use crate::http::call::Call;

/// `GET /v1/tasks/{ref}`.
pub(crate) async fn show(call: Call) -> Answer {
    let id = call.task(TaskAccess::Read).await?;
    json(&call.app.engine.detail(&id).await?)
}

/// `DELETE /v1/tasks/{ref}`.
pub(crate) async fn forget(call: Call) -> Answer {
    let id = call.task(TaskAccess::Dispose).await?;
    let engine = call.app.engine.clone();
    json(&to_the_end(async move { engine.forget(&id).await }).await?)
}
