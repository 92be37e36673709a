//! `GET /metrics`: figures for Prometheus. Behind the same gate as everything else.

use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::IntoResponse as _;

use crate::http::answer::Answer;
use crate::http::call::Call;
use crate::log;
use crate::metrics::{Figured, MEDIA_TYPE, Process, render};

/// Serves it.
pub(crate) async fn show(call: Call) -> Answer {
    let app = &call.app;
    let page = render(&Figured {
        figures: app.engine.figures().await?,
        traffic: &app.traffic,
        listener: app.listener.info().await.unwrap_or_default(),
        process: Process::look(),
        configuration: app.settings.as_ref().map_or((true, 0), |settings| settings.standing()),
        log_bytes: log::bytes(app.engine.home()),
    });
    Ok(([(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))], page).into_response())
}
