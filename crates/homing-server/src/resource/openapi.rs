//! `GET /openapi.json`: this surface, described.

use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::IntoResponse;

use crate::answer::Answer;
use crate::call::Call;
use crate::openapi::openapi_json;

/// Serves it.
pub(crate) async fn show(_: Call) -> Answer {
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], openapi_json()).into_response())
}
