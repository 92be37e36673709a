//! `POST /v1/tasks/{ref}/stop`: ends the whole tree.

use homing_agents::registry::is_session;
use homing_api::StopRequest;
use homing_model::nesting::TaskAccess;
use homing_model::reservation::ConfirmedBy;
use homing_sys::process::signal_number;

use crate::app::to_the_end;
use crate::http::answer::{Answer, json};
use crate::http::call::Call;
use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};

const RESERVE: Parameter = Parameter::new(
    "reserve",
    Kind::Flag,
    "`true`: with `wait`, the end is held for the caller, and for 10 s after the answer: the answer itself delivers nothing. Without it, the answer to \
     a session of an agent delivers the end, and its next call confirms that.",
);

/// What may be asked for.
pub(crate) const QUERY: &[Parameter] = &[RESERVE];

/// Serves it. An empty body asks for nothing special.
pub(crate) async fn stop(call: Call) -> Answer {
    let mut request =
        if call.body.trim_ascii().is_empty() { StopRequest::default() } else { call.json::<StopRequest>()? };
    if let Some(signal) = &request.signal {
        signal_number(signal).map_err(|error| Refusal::invalid(format!("`signal`: {error}")))?;
    }
    let owner = call.owner()?;
    request.by.get_or_insert_with(|| owner.to_owned());
    let id = call.task(TaskAccess::Control).await?;
    let told = call.permit(TaskAccess::Dispose, &id).await.is_ok();
    let reserves = call.query.flag(RESERVE.name) == Some(true);
    let (engine, owner, scope) = (call.app.engine.clone(), owner.to_owned(), call.scope.clone());
    let stopped = async move {
        // An agent that waits for the end gets it by the answer, or by what its caller prints; a person may be elsewhere when it comes.
        if !(request.wait && told && is_session(&owner)) {
            return engine.stop(&id, request).await;
        }
        let mut reserved = engine.reserve(&owner, std::slice::from_ref(&id), None).await;
        let answer = reserved.during(Box::pin(engine.stop(&id, request))).await?;
        if reserves {
            reserved.linger().await;
        } else if answer.task.status.is_terminal() && answer.task.owner == owner {
            reserved.deliver(vec![id], ConfirmedBy::Call, scope.limited_to()).await?;
        }
        Ok(answer)
    };
    json(&to_the_end(stopped).await?)
}
