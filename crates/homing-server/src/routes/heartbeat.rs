//! `POST /v1/tasks/{ref}/heartbeat`: whoever runs an external task says that it goes on.

use homing_api::HeartbeatRequest;

use crate::http::answer::{Answer, json};
use crate::http::call::Call;

/// Serves it. Another owner's task is answered as one that is not there.
pub(crate) async fn renew(call: Call) -> Answer {
    let request = if call.body.trim_ascii().is_empty() {
        HeartbeatRequest::default()
    } else {
        call.json::<HeartbeatRequest>()?
    };
    let owner = match &request.owner {
        Some(owner) => owner,
        None => call.owner()?,
    };
    let reference = call.own_external(owner).await?;
    json(&call.app.engine.heartbeat(&reference, owner).await?)
}
