//! `POST /v1/tasks/{ref}/rerun`: the same again, as a new task.

use homing_api::RerunRequest;
use homing_engine::IdempotencyKey;
use homing_model::digest::sha256;
use homing_model::nesting::TaskAccess;

use super::tasks;
use crate::http::answer::Answer;
use crate::http::call::Call;

/// Serves it. An empty body asks for nothing special. Whoever runs a task again reads what it was, so it has to be theirs to look at.
pub(crate) async fn rerun(call: Call) -> Answer {
    let request = if call.body.trim_ascii().is_empty() {
        RerunRequest::default()
    } else {
        call.json::<RerunRequest>()?
    };
    tasks::confirm(&call, request.owner.as_deref()).await?;
    let named = call.named()?;
    let id = call.certain(named, TaskAccess::Read).await?;
    let idempotency = tasks::idempotency_key(&call)?.map(|key| {
        // The same key for another task is another request. By the word for it: after the first one, `@last` is the new task.
        let body = [named.as_bytes(), b"\n", &call.body].concat();
        IdempotencyKey { key: key.to_owned(), body_hash: sha256(&body) }
    });
    tasks::submitted(&call.app.engine.rerun(&id, request, call.caller()?, idempotency).await?)
}
