//! A notice as a webhook, by the Standard Webhooks scheme.
//!
//! The body is made once and is the same, byte for byte, at every attempt; so is `webhook-id`, by which a receiver knows a
//! repetition (P5). `webhook-timestamp` and with it the signature are those of the attempt, because receivers refuse old ones.

use bytes::Bytes;
use homing_engine::AttemptResult;
use homing_model::schedule::Verdict;
use homing_model::{Notice, NoticeId, Timestamp, sanitize, turn};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP};
use tokio::time::Instant;

use crate::client::{Client, Error};
use crate::endpoint::Endpoint;
use crate::exchange::Answer;
use crate::retry_after;
use crate::secret::Secret;

/// So much of an answer is kept for people.
const MAX_EXCERPT_CHARS: usize = 300;

/// What is sent: the same at every attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    id: HeaderValue,
    body: Bytes,
}

/// Why something cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// An id that cannot stand in a header, or that would make what is signed ambiguous.
    #[error("`{0}` cannot be a webhook's id: visible ASCII without a dot can")]
    Id(String),
    /// A kept body that is not text.
    #[error("the kept body is not UTF-8")]
    Body(#[source] std::str::Utf8Error),
}

impl Message {
    /// A body that was made before: `{"type","timestamp","data"}`.
    ///
    /// # Errors
    /// If id or body cannot be sent.
    pub fn kept(id: &str, body: Bytes) -> Result<Self, Malformed> {
        std::str::from_utf8(&body).map_err(Malformed::Body)?;
        let sound = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'.');
        let value = HeaderValue::from_str(id).ok().filter(|_| sound);
        Ok(Self { id: value.ok_or_else(|| Malformed::Id(id.to_owned()))?, body })
    }

    /// A notice as the ledger keeps it, so that every attempt sends the same bytes. `text` is the
    /// notice in words, fit for a model; a notice of a later release may have none.
    ///
    /// # Errors
    /// If the notice is damaged.
    pub(crate) fn of_notice(id: &NoticeId, notice: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            r#type: String,
            at: Timestamp,
        }
        let head: Head =
            serde_json::from_str(notice).map_err(|error| format!("its notice is damaged: {error}"))?;
        let (kind, at) = (serde_json::json!(head.r#type), serde_json::json!(head.at));
        let text = serde_json::from_str::<Notice>(notice)
            .map(|notice| format!(",\"text\":{}", serde_json::json!(turn::compose(&[notice], 0).text)));
        let text = text.unwrap_or_default();
        let body = format!("{{\"type\":{kind},\"timestamp\":{at},\"data\":{notice}{text}}}");
        Self::kept(id.as_str(), Bytes::from(body)).map_err(|error| error.to_string())
    }

    /// The bytes that are sent.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// The headers of an attempt made at this time; one signature per secret, and none without one.
    fn headers(&self, secrets: &[Secret], now: Timestamp) -> HeaderMap {
        const AGENT: &str = concat!("homing/", env!("CARGO_PKG_VERSION"));
        let seconds = now.as_millis().div_euclid(1_000);
        let id = self.id.to_str().unwrap_or_default();
        let signatures: Vec<_> =
            secrets.iter().filter_map(|secret| secret.sign(id, seconds, &self.body)).collect();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(HEADER_WEBHOOK_ID, self.id.clone());
        headers.insert(HEADER_WEBHOOK_TIMESTAMP, seconds.into());
        if let Ok(value) = HeaderValue::from_str(&signatures.join(" "))
            && !signatures.is_empty()
        {
            headers.insert(HEADER_WEBHOOK_SIGNATURE, value);
        }
        headers
    }
}

/// Makes one attempt. Never fails otherwise than in what it says.
pub async fn deliver(
    client: &Client,
    to: &Endpoint,
    secrets: &[Secret],
    message: &Message,
    now: Timestamp,
) -> AttemptResult {
    let begun = Instant::now();
    let outcome = client.post(to, message.headers(secrets, now), message.body.clone()).await;
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let ended = now.after_millis(took_ms);
    let (verdict, status, detail) = match outcome {
        Ok(answer) => {
            let detail = describe(&answer, to);
            (verdict_of(&answer, &detail, ended), Some(answer.status), detail)
        }
        Err(error) => {
            let status = match &error {
                Error::Deadline { status, .. } => *status,
                _ => None,
            };
            let detail = sanitize::line(&error.line());
            (Verdict::Failed { why: detail.clone(), retry_after: None }, status, detail)
        }
    };
    AttemptResult { verdict, status: status.map(|status| status.as_u16()), detail, took_ms }
}

/// 2xx delivers, 410 ends, everything else is tried again.
fn verdict_of(answer: &Answer, detail: &str, now: Timestamp) -> Verdict {
    match answer.status {
        status if status.is_success() => Verdict::Delivered,
        StatusCode::GONE => Verdict::Gone,
        _ => {
            let wish = answer.retry_after.as_deref().and_then(|text| retry_after::parse(text, now));
            Verdict::Failed { why: detail.to_owned(), retry_after: wish }
        }
    }
}

/// The answer on one line: the status, what it means here, and how the body begins.
fn describe(answer: &Answer, to: &Endpoint) -> String {
    let mut line = answer.status.to_string();
    if answer.status.is_redirection() {
        line.push_str(" (redirects are not followed; give the address it leads to)");
    }
    // The body was cut at a number of bytes; half a character at its end is nothing that the receiver sent.
    let text = String::from_utf8_lossy(&answer.body);
    let text = to.conceal(&text);
    let text = sanitize::line(text.trim_end_matches(char::REPLACEMENT_CHARACTER).trim());
    let mut excerpt: String = text.chars().take(MAX_EXCERPT_CHARS).collect();
    if excerpt.len() < text.len() {
        excerpt.pop();
        excerpt.push('…');
    }
    if !excerpt.is_empty() {
        line.push_str(": ");
        line.push_str(&excerpt);
    }
    line
}
