//! One request as it will be sent, possibly more than once, and its answer.

use bytes::Bytes;
use homing_api::{Code, Problem};
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::transport::error::Error;
use crate::transport::query::Target;

const OWNER: HeaderName = HeaderName::from_static("homing-owner");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request that can be sent again: the body is shared, not consumed.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) target: Target,
    body: Bytes,
    content_type: &'static str,
    idempotency_key: Option<HeaderValue>,
}

impl Call {
    pub(crate) fn get(target: Target) -> Self {
        Self::new(Method::GET, target)
    }

    pub(crate) fn delete(target: Target) -> Self {
        Self::new(Method::DELETE, target)
    }

    pub(crate) fn post(target: Target) -> Self {
        Self::new(Method::POST, target)
    }

    fn new(method: Method, target: Target) -> Self {
        Self { method, target, body: Bytes::new(), content_type: "", idempotency_key: None }
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let json = serde_json::to_vec(body).map_err(|source| Error::Json { what: self.what(), source })?;
        self.body = json.into();
        self.content_type = "application/json";
        Ok(self)
    }

    pub(crate) fn bytes(mut self, body: Bytes) -> Self {
        self.body = body;
        self.content_type = "application/octet-stream";
        self
    }

    /// Makes a submit repeatable; a key that no header can carry is left out.
    pub(crate) fn idempotent(mut self, key: Option<&str>) -> Self {
        self.idempotency_key = key.and_then(|key| HeaderValue::from_bytes(key.as_bytes()).ok());
        self
    }

    /// Whether hearing it twice is the same as hearing it once.
    pub(crate) fn is_safe(&self) -> bool {
        self.method == Method::GET || self.idempotency_key.is_some()
    }

    /// For messages.
    pub(crate) fn what(&self) -> String {
        let path = self.target.as_str();
        format!("{} {}", self.method, path.split('?').next().unwrap_or(path))
    }

    pub(crate) fn request(&self, owner: Option<&HeaderValue>) -> Result<Request<Full<Bytes>>, Error> {
        let kind = (!self.content_type.is_empty()).then(|| HeaderValue::from_static(self.content_type));
        let fields = [
            (HOST, Some(HeaderValue::from_static("homing"))),
            (OWNER, owner.cloned()),
            (CONTENT_TYPE, kind),
            (IDEMPOTENCY_KEY, self.idempotency_key.clone()),
        ];
        let mut request = Request::builder().method(self.method.clone()).uri(self.target.as_str());
        for (name, value) in fields {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        request.body(Full::new(self.body.clone())).map_err(|_| too_long().into())
    }
}

/// All that goes into the head of a request is what the caller named.
fn too_long() -> Problem {
    let detail = "an id, name, owner or label is too long to be asked for";
    let mut problem = Problem::new(Code::TooLarge, detail);
    problem.advice = "Shorten it; if you typed none, look at HOMING_OWNER.".to_owned();
    problem
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) what: String,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The answer, if it is not a refusal.
    pub(crate) fn accepted(self) -> Result<Self, Error> {
        if self.status.is_success() {
            return Ok(self);
        }
        match serde_json::from_slice::<Problem>(&self.body) {
            Ok(problem) => Err(problem.into()),
            Err(_) if self.status == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Err(too_long().into()),
            Err(_) if self.status == StatusCode::URI_TOO_LONG => Err(too_long().into()),
            Err(_) => Err(Error::Protocol { why: format!("status {}", self.status), what: self.what }),
        }
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|source| Error::Json { what: self.what.clone(), source })
    }

    /// A number from a header; 0 if it is not there.
    pub(crate) fn number(&self, name: &str) -> Result<u64, Error> {
        let Some(value) = self.headers.get(name) else { return Ok(0) };
        value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(|| Error::Protocol {
            what: self.what.clone(),
            why: format!("the header {name} is not a number"),
        })
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.headers.get(name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
    }
}
