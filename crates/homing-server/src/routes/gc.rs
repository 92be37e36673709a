//! `POST /v1/gc`: drops what is past its retention, now.

use crate::app::to_the_end;
use crate::http::answer::{Answer, json};
use crate::http::call::Call;

/// Serves it.
pub(crate) async fn gc(call: Call) -> Answer {
    call.may_configure()?;
    let engine = call.app.engine.clone();
    json(&to_the_end(async move { engine.gc().await }).await?)
}
