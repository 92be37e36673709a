//! `/v1/session`, `/v1/sessions`: which session of an agent a process is in.
//!
//! Only processes on this machine are in one: who calls over the network is told of none and binds none.

use homing_api::Code;
use homing_model::binding::{BindRequest, SessionInfo};
use homing_sys::process::ProcessId;
use serde_json::json;

use crate::http::answer::{Answer, json as answer};
use crate::http::call::{Call, Peer};
use crate::http::refusal::Refusal;

/// `GET /v1/session`.
pub(crate) async fn own(call: Call) -> Answer {
    let session: Option<SessionInfo> = match call.peer {
        Peer::Local { process: Some(process) } => call.app.engine.session_of_process(process).await?,
        Peer::Local { process: None } | Peer::Network => None,
    };
    answer(&session)
}

/// `POST /v1/sessions`.
pub(crate) async fn bind(mut call: Call) -> Answer {
    let request = call.json::<BindRequest>()?;
    let caller = local(&call);
    if let Ok(process) = caller {
        let scope = call.scope.clone();
        call.scope = call.app.engine.claim_bound_session(scope, process, &request).await?;
    }
    call.scope.may_use_inbox(call.name, &format!("{}:{}", request.agent, request.session))?;
    answer(&call.app.engine.bind_session(&call.scope, caller?, &request).await?)
}

/// `GET /v1/sessions/{owner}`.
pub(crate) async fn show(call: Call) -> Answer {
    call.scope.may_use_inbox(call.name, owner(&call)?)?;
    answer(&call.app.engine.session(owner(&call)?).await?)
}

/// `DELETE /v1/sessions/{owner}`.
pub(crate) async fn unbind(call: Call) -> Answer {
    let caller = local(&call)?;
    let owner = owner(&call)?;
    call.scope.may_use_inbox(call.name, owner)?;
    call.app.engine.unbind_session(caller, owner).await?;
    answer(&json!({}))
}

fn local(call: &Call) -> Result<ProcessId, Refusal> {
    match call.peer {
        Peer::Local { process: Some(process) } => Ok(process),
        Peer::Local { process: None } | Peer::Network => Err(Refusal::new(
            Code::NoAncestor,
            "which process calls cannot be seen, so it can speak for no session",
        )),
    }
}

fn owner(call: &Call) -> Result<&str, Refusal> {
    call.reference.as_deref().ok_or_else(|| Refusal::invalid("this address names no owner"))
}
