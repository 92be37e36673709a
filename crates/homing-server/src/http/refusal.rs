//! Whatever goes wrong, as the caller is told: `application/problem+json` with a stable code.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use homing_api::{Code, Problem};

/// A problem on its way to the caller.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Problem>);

impl Refusal {
    /// A problem of this kind, told in one sentence.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    /// A field or parameter that makes no sense.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// The problem inside.
    #[cfg(test)]
    pub(crate) fn problem(&self) -> &Problem {
        &self.0
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<homing_engine::Error> for Refusal {
    fn from(error: homing_engine::Error) -> Self {
        Problem::from(error).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self.0).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        (status, [(CONTENT_TYPE, kind)], body).into_response()
    }
}

/// Any address that is none of ours.
pub(crate) fn no_route(method: &str, path: &str) -> Refusal {
    Refusal::new(Code::NoRoute, format!("there is nothing at {method} {path}"))
}

/// An address of ours, asked in a way that it does not know.
pub(crate) fn no_method(method: &str, path: &str) -> Refusal {
    let detail = format!("{path} does not take {method}");
    Problem { status: StatusCode::METHOD_NOT_ALLOWED.as_u16(), ..Problem::new(Code::NoRoute, detail) }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_answered_with_its_own_status_and_type() {
        for code in Code::ALL {
            let response = Refusal::new(*code, "it happened").into_response();
            assert_eq!(response.status().as_u16(), code.http_status());
            assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        }
        assert_eq!(no_method("PUT", "/healthz").into_response().status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
