//! `GET /v1/status`: how the daemon is.

use std::sync::Arc;

use crate::http::answer::{Answer, json};
use crate::http::call::Call;
use homing_engine::run_blocking;

/// Serves it.
pub(crate) async fn show(call: Call) -> Answer {
    let engine = &call.app.engine;
    let mut status = engine.status().await?;
    if call.scope.limited_to().is_some() {
        // From inside a task the tasks of others are not to be seen.
        status.failures.clear();
    }
    status.listener = call.app.listener.info().await.ok();
    if let Some(settings) = call.app.settings.as_ref().map(Arc::clone) {
        let config = engine.config();
        // The file is read, which may take as long as its disk does. One that cannot be looked at is left out.
        let looked = run_blocking(move || settings.info(&config)).await;
        status.configuration = looked.ok();
    }
    json(&status)
}
