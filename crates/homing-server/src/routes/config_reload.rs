//! `POST /v1/config/reload`: reads the configuration again now, and says what came of it.

use std::sync::Arc;

use homing_api::{Code, Problem, ReloadAnswer};

use crate::http::answer::{Answer, json};
use crate::http::call::Call;
use crate::http::refusal::Refusal;

/// Serves it.
pub(crate) async fn reload(call: Call) -> Answer {
    call.may_configure()?;
    let Some(reloader) = call.app.reloader.as_ref().map(Arc::clone) else {
        return Err(Refusal::new(
            Code::NotApplicable,
            "this engine was given its configuration by its program",
        ));
    };
    let path = reloader.settings.file().display().to_string();
    match reloader.reload().await {
        Ok(changed) => json(&ReloadAnswer { path, changed }),
        Err(error) => Err(Refusal::from(Problem {
            status: 422,
            ..Problem::new(Code::BadConfig, format!("{error}; the last good configuration stays in force"))
        })),
    }
}
