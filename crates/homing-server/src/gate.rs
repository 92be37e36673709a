//! What every request on the loopback listener has to show, whatever it asks for. Keeps P11.
//!
//! A page in a browser can send requests to this machine, and by a name that it makes mean this machine (DNS rebinding) it could even
//! read the answers. So each request must come by a name that can mean nothing else, from no other site, with a body that no form can
//! send; and with the token, which no page has. All of it is judged before anything looks at the address that is asked for: a route cannot
//! be left out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING};
use axum::http::header::{HeaderName, HeaderValue, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use homing_model::{Code, Problem};
use hyper::{HeaderMap, Request};

use crate::refusal::Refusal;
use crate::token::Token;

/// What whoever guesses has to wait for each guess.
const DELAY: Duration = Duration::from_millis(500);

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What is sent with a body: neither can come from a form of another site.
const MEDIA: [&str; 2] = ["application/json", "application/octet-stream"];

/// How often somebody was not let in.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    refused: AtomicU64,
    failed_auth: AtomicU64,
}

impl Counts {
    /// For whatever reason.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// For want of the token.
    pub(crate) fn failed_auth(&self) -> u64 {
        self.failed_auth.load(Ordering::Relaxed)
    }
}

/// The gate of one connection.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The names that mean us, each with the port.
    names: Vec<String>,
    token: Arc<Token>,
    counts: Arc<Counts>,
}

/// What a request lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offence {
    Host,
    Origin,
    Site,
    Media,
    Token,
}

impl Gate {
    /// Of a connection that came in at this address of ours.
    pub(crate) fn new(at: SocketAddr, token: Arc<Token>, counts: Arc<Counts>) -> Self {
        let (address, port) = (at.ip().to_canonical(), at.port());
        let mut names =
            vec![format!("127.0.0.1:{port}"), format!("[::1]:{port}"), format!("localhost:{port}")];
        if !address.is_loopback() {
            names.push(SocketAddr::new(address, port).to_string());
        }
        Self { names, token, counts }
    }

    /// Lets a request in, or says why not. Who has not got the token waits for that answer.
    pub(crate) async fn admit<B>(&self, request: &Request<B>) -> Result<(), Response> {
        let Err(offence) = self.judge(request) else { return Ok(()) };
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        if offence == Offence::Token {
            self.counts.failed_auth.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(DELAY).await;
        }
        // What was sent is not repeated, here or to whoever sent it.
        tracing::info!(?offence, method = %request.method(), "a request on the listener was refused");
        Err(self.refusal(offence))
    }

    fn judge<B>(&self, request: &Request<B>) -> Result<(), Offence> {
        let headers = request.headers();
        let host = only(headers, &HOST)?.ok_or(Offence::Host)?;
        let known = |name: &str| self.names.iter().any(|ours| ours == name);
        // An address that names a host of its own must name the same.
        if !known(host) || request.uri().authority().is_some_and(|named| named.as_str() != host) {
            return Err(Offence::Host);
        }
        if only(headers, &ORIGIN)?.is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
            return Err(Offence::Origin);
        }
        if only(headers, &SEC_FETCH_SITE)?.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Err(Offence::Site);
        }
        if has_body(headers) && !media_type(headers).is_some_and(|kind| MEDIA.contains(&kind.as_str())) {
            return Err(Offence::Media);
        }
        let given = only(headers, &AUTHORIZATION)?.and_then(bearer).ok_or(Offence::Token)?;
        if self.token.is(given.as_bytes()) { Ok(()) } else { Err(Offence::Token) }
    }

    fn refusal(&self, offence: Offence) -> Response {
        let names = || self.names.join(", ");
        let problem = match offence {
            Offence::Host => {
                Problem::new(Code::ForeignSite, format!("the header `Host` must be one of {}", names()))
            }
            Offence::Origin => {
                Problem::new(Code::ForeignSite, "the header `Origin` names another origin than ours")
            }
            Offence::Site => Problem::new(
                Code::ForeignSite,
                "the header `Sec-Fetch-Site` says that another site sent the request",
            ),
            Offence::Media => Problem {
                status: 415,
                ..Problem::new(Code::MalformedBody, format!("a body must be `Content-Type: {}`", MEDIA[0]))
            },
            Offence::Token => Problem::new(Code::Unauthorized, "no token, or not the right one"),
        };
        let mut response = Refusal::from(problem).into_response();
        if offence == Offence::Token {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Repeated> for Offence {
    fn from(Repeated(name): Repeated) -> Self {
        match name {
            name if name == HOST => Self::Host,
            name if name == ORIGIN => Self::Origin,
            name if name == AUTHORIZATION => Self::Token,
            _ => Self::Site,
        }
    }
}

/// A header that was sent twice, or is no text: two readers might take two different things from it.
struct Repeated(HeaderName);

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Repeated> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Repeated(name.clone())),
        (Some(_), Some(_)) => Err(Repeated(name.clone())),
    }
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
        || headers.get(CONTENT_LENGTH).is_some_and(|length| length.as_bytes() != b"0")
}

/// What a body is said to be, without its parameters; nothing if that is said twice.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = only(headers, &CONTENT_TYPE).ok()??;
    Some(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(at: &str) -> Gate {
        Gate::new(at.parse().unwrap(), Arc::new(Token::new("secret".into())), Arc::default())
    }

    const GOOD: [(&str, &str); 2] = [("host", "127.0.0.1:80"), ("authorization", "Bearer secret")];

    fn judge(gate: &Gate, headers: &[(&str, &str)]) -> Result<(), Offence> {
        let mut request = Request::builder().uri("/v1/tasks");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        gate.judge(&request.body(()).unwrap())
    }

    /// A good request with something else in place of, or beside, what it has.
    fn with(more: &[(&str, &str)]) -> Result<(), Offence> {
        let kept = GOOD.into_iter().filter(|(name, _)| !more.iter().any(|(other, _)| other == name));
        judge(&gate("127.0.0.1:80"), &kept.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    #[test]
    fn p11_only_names_that_mean_nothing_else_are_served() {
        for host in ["127.0.0.1:80", "[::1]:80", "localhost:80"] {
            assert_eq!(with(&[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:80",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:81",
            "127.0.0.1:80.",
            "",
            "0.0.0.0:80",
        ] {
            assert_eq!(with(&[("host", host)]), Err(Offence::Host), "{host}");
        }
        assert_eq!(with(&[("host", "127.0.0.1:80"), ("host", "127.0.0.1:80")]), Err(Offence::Host));
        assert_eq!(judge(&gate("127.0.0.1:80"), &GOOD[1..]), Err(Offence::Host));
    }

    #[test]
    fn p11_an_address_that_names_another_host_is_refused() {
        for (uri, expected) in
            [("http://evil.example/", Err(Offence::Host)), ("http://127.0.0.1:80/healthz", Ok(()))]
        {
            let request = Request::builder().uri(uri).header("host", GOOD[0].1).header(GOOD[1].0, GOOD[1].1);
            assert_eq!(gate("127.0.0.1:80").judge(&request.body(()).unwrap()), expected, "{uri}");
        }
    }

    #[test]
    fn p11_a_dangerous_address_is_served_by_its_own_name_and_no_other() {
        let wide = gate("10.1.2.3:80");
        let at = |host| judge(&wide, &[("host", host), GOOD[1]]);
        assert_eq!(at("10.1.2.3:80"), Ok(()));
        assert_eq!(at("10.1.2.4:80"), Err(Offence::Host));
        assert_eq!(judge(&gate("[::ffff:127.0.0.1]:80"), &GOOD), Ok(()));
    }

    #[test]
    fn p11_no_other_site_is_served() {
        assert_eq!(with(&[("origin", "http://127.0.0.1:80")]), Ok(()));
        for origin in [
            "null",
            "http://127.0.0.1",
            "http://127.0.0.1:81",
            "https://127.0.0.1:80",
            "http://localhost:80",
            "http://evil.example",
            "",
        ] {
            assert_eq!(with(&[("origin", origin)]), Err(Offence::Origin), "{origin}");
        }
        for site in ["same-origin", "none"] {
            assert_eq!(with(&[("sec-fetch-site", site)]), Ok(()));
        }
        for site in ["cross-site", "same-site", "", "None"] {
            assert_eq!(with(&[("sec-fetch-site", site)]), Err(Offence::Site), "{site}");
        }
    }

    #[test]
    fn p11_a_body_that_a_form_could_send_is_refused() {
        let json = ("content-type", "application/json; charset=utf-8");
        assert_eq!(with(&[("content-length", "5"), json]), Ok(()));
        assert_eq!(with(&[("content-length", "5"), ("content-type", "application/octet-stream")]), Ok(()));
        assert_eq!(with(&[("content-length", "0")]), Ok(()));
        assert_eq!(with(&[("content-length", "5")]), Err(Offence::Media));
        assert_eq!(with(&[("transfer-encoding", "chunked")]), Err(Offence::Media));
        for kind in ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded", ""] {
            assert_eq!(
                with(&[("content-length", "5"), ("content-type", kind)]),
                Err(Offence::Media),
                "{kind}"
            );
        }
        assert_eq!(
            with(&[("content-length", "5"), json, ("content-type", "text/plain")]),
            Err(Offence::Media)
        );
    }

    #[test]
    fn p11_nothing_is_served_without_the_token() {
        assert_eq!(with(&[("authorization", "bearer secret")]), Ok(()));
        for wrong in ["Bearer wrong", "Bearer", "Bearer ", "secret", "Basic secret", "Bearer secret ", ""] {
            assert_eq!(with(&[("authorization", wrong)]), Err(Offence::Token), "{wrong}");
        }
        let twice = [("authorization", "Bearer secret"), ("authorization", "Bearer secret")];
        assert_eq!(with(&twice), Err(Offence::Token));
        assert_eq!(judge(&gate("127.0.0.1:80"), &GOOD[..1]), Err(Offence::Token));
    }
}
