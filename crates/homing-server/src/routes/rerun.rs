//! `POST /v1/tasks/{ref}/rerun`: the same again, as a new task.

use homing_api::RerunRequest;
use homing_engine::IdempotencyKey;
use homing_model::digest::sha256;
use homing_model::nesting::Act;
use homing_model::reservation::Confirmer;

use super::tasks;
use crate::app::to_the_end;
use crate::http::answer::Answer;
use crate::http::call::Call;

/// Serves it. An empty body asks for nothing special. Whoever runs a task again reads what it was, so it has to be theirs to look at.
pub(crate) async fn rerun(call: Call) -> Answer {
    let mut request = if call.body.trim_ascii().is_empty() {
        RerunRequest::default()
    } else {
        call.json::<RerunRequest>()?
    };
    let caller = call.caller()?;
    request.owner = request.owner.or_else(|| caller.owner.clone());
    if let (Some(owner), None) = (&request.owner, call.standing.limited_to()) {
        call.app.engine.confirm(Confirmer::Owner(owner.clone())).await;
    }
    let named = call.named()?;
    let id = call.certain(named, Act::Look).await?;
    let idempotency = tasks::idempotency_key(&call)?.map(|key| {
        // The same key for another task is another request. By the word for it: after the first one, `@last` is the new task.
        let body = [named.as_bytes(), b"\n", &call.body].concat();
        IdempotencyKey { key: key.to_owned(), body_hash: sha256(&body) }
    });
    let engine = call.app.engine.clone();
    let submission = to_the_end(async move { engine.rerun(&id, request, caller, idempotency).await }).await?;
    tasks::submitted(&submission)
}
