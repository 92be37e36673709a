//! Answers that are JSON.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use homing_api::Code;
use serde::Serialize;

use crate::http::refusal::Refusal;

/// What a handler gives.
pub(crate) type Answer = Result<Response, Refusal>;

/// A JSON answer with another status than 200.
pub(crate) fn json_with(status: StatusCode, value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value)
        .map_err(|error| Refusal::new(Code::Internal, format!("the answer could not be written: {error}")))?;
    Ok((status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response())
}

/// A JSON answer.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    json_with(StatusCode::OK, value)
}
