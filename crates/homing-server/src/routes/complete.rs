//! `POST /v1/tasks/{ref}/complete`: somebody says how an external task ended.

use homing_api::CompleteRequest;

use crate::app::to_the_end;
use crate::http::answer::{Answer, json};
use crate::http::call::Call;

/// The largest body: the longest answer, were each of its bytes escaped.
pub(crate) const LIMIT: usize = 2 << 20;

/// Serves it. An empty body is a success without an answer. Another owner's task is answered as one that is not there.
pub(crate) async fn complete(call: Call) -> Answer {
    let mut request = if call.body.trim_ascii().is_empty() {
        CompleteRequest::default()
    } else {
        call.json::<CompleteRequest>()?
    };
    let owner = match request.owner.take() {
        Some(owner) => owner,
        None => call.owner()?.to_owned(),
    };
    let reference = call.own_external(&owner).await?;
    let engine = call.app.engine.clone();
    json(&to_the_end(async move { engine.complete(&reference, &owner, request).await }).await?)
}
