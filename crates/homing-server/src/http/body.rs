//! Request bodies: bounded in size and in time, and JSON objects or refused by name.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use bytes::{Bytes, BytesMut};
use homing_api::{Code, Problem};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use tokio::time::timeout;

use crate::auth::request_auth::media_type;
use crate::http::refusal::Refusal;
use crate::http::route::Content;

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(body: Body, limit: usize) -> Result<Bytes, Refusal> {
    match timeout(PATIENCE, collect(body, limit)).await {
        Ok(result) => result,
        Err(_) => Err(Refusal::invalid(format!("the body did not arrive within {} s", PATIENCE.as_secs()))),
    }
}

async fn collect(mut body: Body, limit: usize) -> Result<Bytes, Refusal> {
    let too_large = || Refusal::new(Code::TooLarge, format!("the body is larger than {limit} bytes"));
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    // As long as it becomes: one that grows leaves copies behind.
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(0);
    let mut whole = BytesMut::with_capacity(expected);
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| Refusal::new(Code::MalformedBody, format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > limit.saturating_sub(whole.len()) {
            return Err(too_large());
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// Whether a body is said to be what the route takes. Asked of callers on the network alone: no form of a page sends these kinds.
pub(crate) fn check_kind(headers: &HeaderMap, taken: &[Content]) -> Result<(), Refusal> {
    let given = media_type(headers);
    if taken.iter().any(|content| given.as_deref() == Some(content.media_type())) {
        return Ok(());
    }
    let kinds: Vec<_> = taken.iter().map(|content| content.media_type()).collect();
    let detail = format!("the body must be `Content-Type: {}`", kinds.join("` or `"));
    Err(Problem { status: 415, ..Problem::new(Code::MalformedBody, detail) }.into())
}

/// Reads a JSON object. Broken JSON and JSON that makes no sense are told apart.
pub(crate) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    // serde would take an array for a struct, by position.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Refusal::new(Code::MalformedBody, "the body is not a JSON object"));
    }
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Io | Category::Syntax | Category::Eof => {
            Refusal::new(Code::MalformedBody, error.to_string())
        }
        Category::Data => {
            Refusal::new(Code::InvalidRequest, named::<T>(body).unwrap_or_else(|| error.to_string()))
        }
    })
}

/// What makes no sense, with the field that it is about. Read once more: only who is refused waits for that.
fn named<T: DeserializeOwned>(body: &[u8]) -> Option<String> {
    let mut text = serde_json::Deserializer::from_slice(body);
    let error = serde_path_to_error::deserialize::<_, T>(&mut text).err()?;
    let field = error.path().to_string();
    Some(if field == "." {
        error.into_inner().to_string()
    } else {
        format!("`{field}`: {}", error.into_inner())
    })
}

#[cfg(test)]
mod tests {
    use homing_model::Spec;

    use super::*;

    fn refused(text: &str) -> (String, String) {
        let refusal = json::<Spec>(text.as_bytes()).unwrap_err();
        (refusal.problem().code.clone(), refusal.problem().detail.clone())
    }

    #[test]
    fn broken_json_and_unknown_fields_are_told_apart() {
        for text in ["", "{", "nonsense", "[]", "[[\"true\"]]", "\"x\"", "{} {}"] {
            assert_eq!(refused(text).0, "HM0004", "{text}");
        }
        let (code, detail) = refused(r#"{"argv":["true"],"nonsense":1}"#);
        assert_eq!(code, "HM0003");
        assert!(detail.contains("nonsense"), "{detail}");
        for (text, field) in [
            (r#"{"argv":"true"}"#, "`argv`: "),
            (r#"{"argv":["true",1]}"#, "`argv[1]`: "),
            (r#"{"shell":"true","notify":"inbox"}"#, "`notify`: "),
            (r#"{"shell":"true","notify":{"targets":[7]}}"#, "`notify.targets[0]`: "),
            (r#"{"shell":"true","timeout_ms":"5s"}"#, "`timeout_ms`: "),
        ] {
            let (code, detail) = refused(text);
            assert!(code == "HM0003" && detail.starts_with(field), "{text}: {detail}");
        }
        assert!(json::<Spec>(b" \n{\"argv\":[\"true\"]}").is_ok());
    }

    #[tokio::test]
    async fn a_body_beyond_its_limit_is_refused_and_one_at_it_is_not() {
        assert_eq!(read(Body::from(vec![b'x'; 10]), 10).await.unwrap().len(), 10);
        for size in [11, 1000] {
            let refusal = read(Body::from(vec![b'x'; size]), 10).await.unwrap_err();
            assert_eq!(refusal.problem().code, "HM0027");
        }
    }
}
