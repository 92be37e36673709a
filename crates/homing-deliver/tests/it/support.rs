//! A notice, an endpoint and a client for the tests.

use std::time::{SystemTime, UNIX_EPOCH};

use homing_deliver::{AttemptResult, Caller, Client, Endpoint, Message, Policy, Secret, deliver};
use homing_model::Timestamp;
use homing_model::schedule::Verdict;
use homing_testkit::Receiver;
use serde_json::json;

/// A secret that passes, and another.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const OTHER: &str = "whsec_plJ3nmyCDGBKInavdOK15jsl1xHKtV0rbmV3b25lIQ==";

/// Verifiers look at the real time.
#[expect(clippy::disallowed_methods, reason = "the receiver's verifier looks at the real time too")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

/// A completion with everything in it that is awkward in transit.
pub(crate) fn message() -> Message {
    let at = "2026-11-15T12:00:00.123Z";
    let notice = json!({
        "id": "ntc_1", "type": "task.completed", "at": at,
        "task": { "id": "t1", "command": "printf '\u{1}\"\\'" }, "output_tail": "grün 🌲\n\u{1b}[31m…\u{2028}",
    });
    let body = json!({ "type": "task.completed", "timestamp": at, "data": notice });
    Message::kept("ntc_1", body.to_string().into()).unwrap()
}

pub(crate) fn secret() -> Secret {
    Secret::parse(SECRET).unwrap()
}

/// An endpoint for a caller on the Unix socket.
pub(crate) fn endpoint(url: &str) -> Endpoint {
    Endpoint::parse(url, Caller::Local, &Policy::default()).unwrap()
}

pub(crate) fn hook(receiver: &Receiver) -> Endpoint {
    endpoint(&format!("http://127.0.0.1:{}/hook", receiver.port()))
}

/// A client that is patient, for what must succeed on a loaded machine.
pub(crate) fn client() -> Client {
    Client::new(Policy::default())
}

/// One attempt with the one secret.
pub(crate) async fn attempt(client: &Client, to: &Endpoint) -> AttemptResult {
    deliver(client, to, &[secret()], &message(), now()).await
}

/// The same, from any client at a receiver's usual address.
pub(crate) async fn attempt_at(client: &Client, receiver: &Receiver) -> AttemptResult {
    attempt(client, &hook(receiver)).await
}

/// Why it failed; panics if it did not.
pub(crate) fn why(attempt: &AttemptResult) -> &str {
    match &attempt.verdict {
        Verdict::Failed { why, .. } => why,
        other => panic!("not failed but {other:?}"),
    }
}
