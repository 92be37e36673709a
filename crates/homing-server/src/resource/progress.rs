//! `POST /v1/tasks/{ref}/progress`: how far a task is, by its own word.

use homing_model::Code;
use homing_model::api::ProgressRequest;

use crate::answer::{Answer, json};
use crate::call::Call;
use crate::refusal::Refusal;

/// Serves it. Another owner's task is answered as one that is not there.
pub(crate) async fn note(call: Call) -> Answer {
    let request = call.json::<ProgressRequest>()?;
    let Some(reference) = &call.reference else {
        return Err(Refusal::new(Code::Internal, "this address names no task"));
    };
    json(&call.app.engine.progress(reference, call.owner()?, request).await?)
}
