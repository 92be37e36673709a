//! `GET /openapi.json`: this surface, described.

use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::IntoResponse;

use crate::http::answer::Answer;
use crate::http::call::Call;
use crate::http::openapi::openapi_json;

/// Serves it.
pub(crate) async fn show(_: Call) -> Answer {
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], openapi_json()).into_response())
}
