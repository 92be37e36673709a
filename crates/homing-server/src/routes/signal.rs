//! `POST /v1/tasks/{ref}/signal`: a signal for the main process.

use homing_api::SignalRequest;
use homing_model::nesting::TaskAccess;
use homing_sys::process::signal_number;

use crate::app::to_the_end;
use crate::http::answer::{Answer, json};
use crate::http::call::Call;
use crate::http::refusal::Refusal;

/// Serves it.
pub(crate) async fn signal(call: Call) -> Answer {
    let request: SignalRequest = call.json()?;
    let number =
        signal_number(&request.signal).map_err(|error| Refusal::invalid(format!("`signal`: {error}")))?;
    let id = call.task(TaskAccess::Control).await?;
    let engine = call.app.engine.clone();
    json(&to_the_end(async move { engine.signal(&id, number).await }).await?)
}
