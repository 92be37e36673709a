//! A refusal for somebody who looks at it in a browser: what it is and what to do, as a page without anything that runs.

use std::sync::LazyLock;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homing_api::Problem;
use homing_model::digest::sha256;

/// Who is refused gets no file of ours, so the style is in the page; the policy names it by its digest.
const STYLE: &str = ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}\
    body{max-width:34rem;margin:18vh auto 0;padding:0 1.5rem}h1{font-size:1.25rem;margin:0 0 .75rem}\
    p{margin:.5rem 0}code{font:.92em ui-monospace,monospace;padding:.1em .35em;border-radius:.3em;background:#8883}\
    small{opacity:.75}";

static POLICY: LazyLock<Option<HeaderValue>> = LazyLock::new(|| {
    let digest = sha256(STYLE.as_bytes());
    let bytes: Vec<u8> = digest
        .as_bytes()
        .as_chunks::<2>()
        .0
        .iter()
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    let digest = STANDARD.encode(bytes);
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).ok()
});

/// The page of a problem.
pub(crate) fn page(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN);
    let text = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>homing: {title}</title>\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><style>{STYLE}</style></head>\
         <body><main><h1>{heading}</h1><p>{advice}</p><p><small>{detail} ({code})</small></p></main></body></html>\n",
        title = escaped(&problem.title),
        heading = capital(&escaped(&problem.title)),
        advice = with_code(&escaped(&problem.advice)),
        detail = capital(&with_code(&escaped(&problem.detail))),
        code = escaped(&problem.code),
    );
    let mut response = (status, [(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], text)
        .into_response();
    if let Some(policy) = &*POLICY {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy.clone());
    }
    response
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What stands between backquotes is code. The text is escaped already.
fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(n, part)| if n % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() }).collect()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use homing_api::Code;

    use super::*;

    #[tokio::test]
    async fn a_refusal_says_what_to_do_and_nothing_in_it_becomes_markup() {
        let response = page(&Problem::new(Code::NotSignedIn, "<script>alert(1)</script> & more"));
        assert_eq!(response.status(), 401);
        let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.contains("style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        assert!(text.contains("<code>homing web</code>") && text.contains("HM0362"), "{text}");
        assert!(!text.contains("<script") && text.contains("&lt;script&gt;"), "{text}");
    }
}
