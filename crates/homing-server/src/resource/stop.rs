//! `POST /v1/tasks/{ref}/stop`: ends the whole tree.

use homing_model::api::StopRequest;
use homing_model::environment::is_agent_session;
use homing_model::nesting::Act;
use homing_shim::process::signal_number;

use crate::answer::{Answer, json};
use crate::app::to_the_end;
use crate::call::Call;
use crate::refusal::Refusal;

/// Serves it. An empty body asks for nothing special.
pub(crate) async fn stop(call: Call) -> Answer {
    let mut request =
        if call.body.trim_ascii().is_empty() { StopRequest::default() } else { call.json::<StopRequest>()? };
    if let Some(signal) = &request.signal {
        signal_number(signal).map_err(|error| Refusal::invalid(format!("`signal`: {error}")))?;
    }
    let owner = call.owner()?;
    request.by.get_or_insert_with(|| owner.to_owned());
    let id = call.task(Act::Steer).await?;
    let told = call.permit(Act::Dispose, &id).await.is_ok();
    let (engine, owner, standing) = (call.app.engine.clone(), owner.to_owned(), call.standing.clone());
    let stopped = async move {
        let waits = request.wait;
        let answer = engine.stop(&id, request).await?;
        // An agent that waited for the end is told of it by the answer; a person may be elsewhere when it comes.
        let ends = waits && told && answer.task.status.is_terminal();
        if ends && answer.task.owner == owner && is_agent_session(&owner) {
            match standing.limited_to() {
                Some(inside) => engine.told_inside(inside, &owner, vec![id]).await?,
                None => engine.told(&owner, vec![id]).await?,
            }
        }
        Ok(answer)
    };
    json(&to_the_end(stopped).await?)
}
