//! What every request on the loopback listener has to show, whatever it asks for. Keeps P11.
//!
//! A page in a browser can send requests to this machine, and by a name that it makes mean this machine (DNS rebinding) it could even
//! read the answers. So each request must come by a name that can mean nothing else, from no other site, with a body that no form can
//! send; and with the token, which no page has, or with the cookie of a browser that was signed in ([`crate::auth::signin`]). A cookie is sent by the browser, not
//! by whoever wrote the page: with one, whatever changes something must also name our own origin and be JSON. All of it is judged before anything
//! looks at the address that is asked for: a route cannot be left out. One address is answered here: that where a code becomes a cookie.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use axum::http::header::{HeaderName, HeaderValue, LOCATION, SET_COOKIE, TRANSFER_ENCODING, UPGRADE};
use axum::response::{IntoResponse, Response};
use homing_api::{Code, Problem};
use homing_engine::Ancestry;
use homing_model::Timestamp;
use homing_sys::process::ProcessId;
use hyper::{HeaderMap, Method, Request};
use tokio::sync::{OnceCell, Semaphore};

use crate::auth::signin::{self, Codes, GivenCookies, Seal};
use crate::auth::token::Token;
use crate::http::refusal::Refusal;
use crate::net::connection_limits::Holder;
use crate::page::refused;

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

/// What opens it.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) token: Arc<Token>,
    pub(crate) codes: Arc<Codes>,
    pub(crate) given: Arc<GivenCookies>,
    pub(crate) now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Permits to look up the process of a connection ([`LOOKUPS`]).
    pub(crate) lookups: Arc<Semaphore>,
}

/// Processes that are looked up at once. Each look reads all of `/proc` on a thread: without a bound
/// a program that opens connections without end takes all threads that others' requests need.
pub(crate) const LOOKUPS: usize = 2;

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(…)")
    }
}

/// The tasks that the process at the other end runs in, and whom its connection counts for.
pub(crate) type Known = (Ancestry, Holder);

/// How the process at the other end is judged, and which one may be confined. May take a while.
pub(crate) type Judge = Arc<dyn Fn(Option<ProcessId>) -> Result<Known, Box<Problem>> + Send + Sync>;

/// The gate of one connection.
pub(crate) struct Gate {
    /// The names that mean us, each with the port.
    names: Vec<String>,
    keys: Keys,
    counts: Arc<Counts>,
    /// Where the connection came in, and from where.
    ends: (SocketAddr, SocketAddr),
    /// Whether it belongs to our user, or comes from another machine.
    kin: bool,
    judge: Judge,
    /// The process at the other end, once it was let in.
    let_in: OnceCell<Known>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("at", &self.ends.0).finish_non_exhaustive()
    }
}

/// What a request has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    Token,
    /// A cookie that is sealed with the token; the process that got it for a code, if one did.
    Cookie(Option<ProcessId>),
}

/// How a request comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// It is served, if its process may call.
    Enter(Proof),
    /// It has spent a code, and gets a cookie for it.
    SignIn,
    /// Its code is worth nothing, and it needs none: it has a cookie.
    SignedIn,
}

/// What a request lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offence {
    Host,
    Origin,
    Site,
    Media,
    Token,
    /// The code of the address.
    Code,
    /// A cookie that is good.
    Session,
    /// A user who may show a code or a cookie.
    User,
}

impl Offence {
    /// Whether somebody may be guessing.
    const fn is_guess(self) -> bool {
        matches!(self, Self::Token | Self::Code | Self::Session)
    }
}

impl Gate {
    /// Of a connection between an address of ours and one of theirs; from our user or another
    /// machine (`kin`), or from another user of this one.
    pub(crate) fn new(
        ends: (SocketAddr, SocketAddr),
        kin: bool,
        keys: Keys,
        counts: Arc<Counts>,
        judge: Judge,
    ) -> Self {
        let at = ends.0;
        let (address, port) = (at.ip().to_canonical(), at.port());
        let mut names =
            vec![format!("127.0.0.1:{port}"), format!("[::1]:{port}"), format!("localhost:{port}")];
        if !address.is_loopback() {
            names.push(SocketAddr::new(address, port).to_string());
        }
        Self { names, keys, counts, ends, kin, judge, let_in: OnceCell::new() }
    }

    /// Lets a request in, with what is known of its process, or says how else it is answered. Who has not got what opens it waits for
    /// that answer.
    pub(crate) async fn admit<B>(&self, request: &Request<B>) -> Result<Known, Response> {
        let page = wants_a_page(request);
        let offence = match self.judge(request) {
            Ok(Pass::Enter(proof)) => {
                let problem = match self.look(proof).await {
                    Ok(known) => return Ok(known),
                    Err(problem) => problem,
                };
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                tracing::info!(
                    code = problem.code,
                    reason = problem.detail,
                    "a caller on the listener was refused"
                );
                // A browser that is confined needs a cookie that was given to this process.
                let again = matches!(proof, Proof::Cookie(_)) && problem.known() == Some(Code::Confined);
                return Err(if again {
                    self.refusal(Offence::Session, page)
                } else {
                    answer(*problem, page)
                });
            }
            Ok(Pass::SignIn) => return Err(self.signed_in().await),
            Ok(Pass::SignedIn) => return Err(to_the_page()),
            Err(offence) => offence,
        };
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        if offence.is_guess() {
            self.counts.failed_auth.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(DELAY).await;
        }
        // What was sent is not repeated, here or to whoever sent it.
        tracing::info!(?offence, method = %request.method(), "a request on the listener was refused");
        Err(self.refusal(offence, page))
    }

    /// Which process calls, looked up once for a connection.
    async fn look(&self, proof: Proof) -> Result<Known, Box<Problem>> {
        let looking = || async {
            // The semaphore is never closed.
            let _permit = self.keys.lookups.acquire().await;
            let judge = Arc::clone(&self.judge);
            let vouched = match proof {
                Proof::Token => None,
                Proof::Cookie(receiver) => receiver,
            };
            let judged = tokio::task::spawn_blocking(move || judge(vouched)).await;
            judged.unwrap_or_else(|error| Err(Box::new(Problem::new(Code::Internal, error.to_string()))))
        };
        self.let_in.get_or_try_init(looking).await.cloned()
    }

    fn judge<B>(&self, request: &Request<B>) -> Result<Pass, Offence> {
        let headers = request.headers();
        let host = only(headers, &HOST)?.ok_or(Offence::Host)?;
        let known = |name: &str| self.names.iter().any(|ours| ours == name);
        // An address that names a host of its own must name the same.
        if !known(host) || request.uri().authority().is_some_and(|named| named.as_str() != host) {
            return Err(Offence::Host);
        }
        let origin = only(headers, &ORIGIN)?;
        if origin.is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
            return Err(Offence::Origin);
        }
        if only(headers, &SEC_FETCH_SITE)?.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Err(Offence::Site);
        }
        if has_body(headers) && !media_type(headers).is_some_and(|kind| MEDIA.contains(&kind.as_str())) {
            return Err(Offence::Media);
        }
        if let Some(given) = only(headers, &AUTHORIZATION)? {
            let given = bearer(given).ok_or(Offence::Token)?;
            return if self.keys.token.is(given.as_bytes()) {
                Ok(Pass::Enter(Proof::Token))
            } else {
                Err(Offence::Token)
            };
        }
        let name = signin::cookie_name(self.ends.0.port());
        let cookie = only(headers, &COOKIE).map(|header| signin::cookie(header?, &name));
        if request.method() == Method::GET
            && request.uri().path() == signin::PATH
            && let Some(code) = signin::code(request.uri().query())
        {
            // Whoever opens an old address, or reloads one, is not shut out where it is in already.
            return self.spend(code).or_else(|offence| match cookie {
                Ok(Some(cookie)) if offence == Offence::Code => {
                    self.session(request, cookie, origin).map_or(Err(offence), |_| Ok(Pass::SignedIn))
                }
                _ => Err(offence),
            });
        }
        self.session(request, cookie?.ok_or(Offence::Token)?, origin)
    }

    fn spend(&self, code: &str) -> Result<Pass, Offence> {
        if !self.kin {
            return Err(Offence::User);
        }
        if self.keys.codes.spend(code) { Ok(Pass::SignIn) } else { Err(Offence::Code) }
    }

    fn session<B>(&self, request: &Request<B>, cookie: &str, origin: Option<&str>) -> Result<Pass, Offence> {
        if !self.kin {
            return Err(Offence::User);
        }
        if !Seal(&self.keys.token).holds(cookie, (self.keys.now)()) {
            return Err(Offence::Session);
        }
        let headers = request.headers();
        let looks = request.method() == Method::GET || request.method() == Method::HEAD;
        if (!looks || headers.contains_key(UPGRADE)) && origin.is_none() {
            return Err(Offence::Origin);
        }
        if !looks && media_type(headers).as_deref() != Some(MEDIA[0]) {
            return Err(Offence::Media);
        }
        Ok(Pass::Enter(Proof::Cookie(self.keys.given.receiver(cookie))))
    }

    /// The cookie, and the way to the page: the address with the code is not what the browser remembers.
    async fn signed_in(&self) -> Response {
        let Some(value) = Seal(&self.keys.token).cookie((self.keys.now)()) else {
            return Refusal::new(Code::Internal, "the system has no randomness to give").into_response();
        };
        // Without a time: browsers write those that have one to the disk.
        let cookie =
            format!("{}={value}; Path=/; HttpOnly; SameSite=Strict", signin::cookie_name(self.ends.0.port()));
        let ends = self.ends;
        if let Ok(Some(process)) = tokio::task::spawn_blocking(move || signin::receiver(ends)).await {
            self.keys.given.add(&value, process);
        }
        tracing::info!("a browser was signed in");
        let Ok(cookie) = HeaderValue::try_from(cookie) else {
            return Refusal::new(Code::Internal, "the cookie cannot be sent").into_response();
        };
        let mut response = to_the_page();
        response.headers_mut().insert(SET_COOKIE, cookie);
        response
    }

    fn refusal(&self, offence: Offence, page: bool) -> Response {
        let names = || self.names.join(", ");
        let problem = match offence {
            Offence::Host => {
                Problem::new(Code::ForeignSite, format!("the header `Host` must be one of {}", names()))
            }
            Offence::Origin => Problem::new(
                Code::ForeignSite,
                "the header `Origin` names another origin than ours, or is missing where a cookie is to change something",
            ),
            Offence::Site => Problem::new(
                Code::ForeignSite,
                "the header `Sec-Fetch-Site` says that another site sent the request",
            ),
            Offence::Media => Problem {
                status: 415,
                ..Problem::new(Code::MalformedBody, format!("a body must be `Content-Type: {}`", MEDIA[0]))
            },
            Offence::Token if page => {
                Problem::new(Code::NotSignedIn, "nothing shows that this browser is yours")
            }
            Offence::Token => Problem::new(Code::Unauthorized, "no token, or not the right one"),
            Offence::Code => {
                Problem::new(Code::CodeSpent, "the code was used, is older than a minute, or was never given")
            }
            Offence::Session => Problem::new(
                Code::NotSignedIn,
                "the cookie is not good here: it is too old, another token was made since, or this browser is confined and was started anew",
            ),
            Offence::User => {
                Problem::new(Code::ForeignUser, "the connection comes from a program of another user")
            }
        };
        let mut response = answer(problem, page);
        if offence.is_guess() && !page {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// What is wrong, for a browser or for a program.
fn answer(problem: Problem, page: bool) -> Response {
    if page { refused::page(&problem) } else { Refusal::from(problem).into_response() }
}

/// The way to the page.
fn to_the_page() -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, HeaderValue::from_static("/"))]).into_response()
}

/// Whether somebody looks at the answer in a browser.
fn wants_a_page<B>(request: &Request<B>) -> bool {
    let accepted = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    request.method() == Method::GET && accepted.contains("text/html")
}

impl From<Repeated> for Offence {
    fn from(Repeated(name): Repeated) -> Self {
        match name {
            name if name == HOST => Self::Host,
            name if name == ORIGIN => Self::Origin,
            name if name == AUTHORIZATION || name == COOKIE => Self::Token,
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

    fn keys() -> Keys {
        Keys {
            token: Arc::new(Token::new("secret".into())),
            codes: Arc::default(),
            given: Arc::default(),
            now: Arc::new(|| Timestamp::from_millis(1_000_000)),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
        }
    }

    fn gate_with(at: &str, keys: Keys, judge: Judge) -> Gate {
        Gate::new((at.parse().unwrap(), at.parse().unwrap()), true, keys, Arc::default(), judge)
    }

    fn gate(at: &str) -> Gate {
        gate_with(at, keys(), Arc::new(|_| Ok((Ancestry::default(), Holder::User))))
    }

    #[tokio::test]
    async fn p11_few_processes_are_looked_up_at_once() {
        let (keys, (begun, begins)) = (keys(), std::sync::mpsc::channel());
        let (open, opens) = std::sync::mpsc::channel::<()>();
        let opens = Arc::new(parking_lot::Mutex::new(opens));
        let judge: Judge = {
            Arc::new(move |_| {
                begun.send(()).unwrap();
                let _ = opens.lock().recv();
                Ok((Ancestry::default(), Holder::User))
            })
        };
        let mut looks = tokio::task::JoinSet::new();
        for _ in 0..LOOKUPS + 3 {
            let gate = gate_with("127.0.0.1:80", keys.clone(), Arc::clone(&judge));
            looks.spawn(async move { gate.look(Proof::Token).await.is_ok() });
        }
        while keys.lookups.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..LOOKUPS {
            begins.recv().unwrap();
        }
        assert!(begins.try_recv().is_err(), "the others wait");
        drop(open);
        assert_eq!(looks.join_all().await, [true; LOOKUPS + 3]);
    }

    const GOOD: [(&str, &str); 2] = [("host", "127.0.0.1:80"), ("authorization", "Bearer secret")];

    fn judge(gate: &Gate, headers: &[(&str, &str)]) -> Result<(), Offence> {
        let mut request = Request::builder().uri("/v1/tasks");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        gate.judge(&request.body(()).unwrap()).map(drop)
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
            let judged = gate("127.0.0.1:80").judge(&request.body(()).unwrap()).map(drop);
            assert_eq!(judged, expected, "{uri}");
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

    /// A request with the cookie that this gate gives.
    fn by_cookie(method: Method, more: &[(&str, &str)]) -> Result<Pass, Offence> {
        let gate = gate("127.0.0.1:80");
        let cookie = Seal(&gate.keys.token).cookie(Timestamp::from_millis(1_000_000)).unwrap();
        let mut request = Request::builder().method(method).uri("/v1/tasks").header("host", "127.0.0.1:80");
        request = request.header("cookie", format!("other=1; homing-80={cookie}"));
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        gate.judge(&request.body(()).unwrap())
    }

    #[test]
    fn p11_a_cookie_lets_look_and_changes_something_only_from_our_own_origin_and_with_json() {
        let (origin, json) = (("origin", "http://127.0.0.1:80"), ("content-type", "application/json"));
        assert_eq!(by_cookie(Method::GET, &[]), Ok(Pass::Enter(Proof::Cookie(None))));
        for method in [Method::POST, Method::DELETE, Method::PUT] {
            assert_eq!(by_cookie(method.clone(), &[origin, json]), Ok(Pass::Enter(Proof::Cookie(None))));
            assert_eq!(by_cookie(method.clone(), &[json]), Err(Offence::Origin), "{method}");
            assert_eq!(by_cookie(method.clone(), &[origin]), Err(Offence::Media), "{method}");
            let bytes = ("content-type", "application/octet-stream");
            assert_eq!(by_cookie(method.clone(), &[origin, bytes]), Err(Offence::Media), "{method}");
            let foreign = ("origin", "http://127.0.0.1:81");
            assert_eq!(by_cookie(method, &[foreign, json]), Err(Offence::Origin));
        }
        assert_eq!(by_cookie(Method::GET, &[("upgrade", "websocket")]), Err(Offence::Origin));
        assert_eq!(
            by_cookie(Method::GET, &[("upgrade", "websocket"), origin]),
            Ok(Pass::Enter(Proof::Cookie(None)))
        );
        assert_eq!(by_cookie(Method::GET, &[("sec-fetch-site", "same-site")]), Err(Offence::Site));
        assert_eq!(by_cookie(Method::GET, &[("cookie", "homing-80=again")]), Err(Offence::Token));
        assert_eq!(by_cookie(Method::GET, &[("authorization", "Bearer wrong")]), Err(Offence::Token));
    }

    #[test]
    fn p11_a_cookie_that_is_none_of_ours_or_comes_from_another_user_is_refused() {
        for value in ["", "x", "1.1000000.00.00"] {
            let cookie = format!("homing-80={value}");
            assert_eq!(judge(&gate("127.0.0.1:80"), &[GOOD[0], ("cookie", &cookie)]), Err(Offence::Session));
        }
        let stranger = Gate { kin: false, ..gate("127.0.0.1:80") };
        assert_eq!(judge(&stranger, &[GOOD[0], ("cookie", "homing-80=x")]), Err(Offence::User));
        let code = stranger.keys.codes.issue();
        assert!(code.is_none() || stranger.spend(&code.unwrap()) == Err(Offence::User));
        assert_eq!(judge(&stranger, &GOOD), Ok(()), "who has the token may be anybody");
    }

    #[tokio::test]
    async fn p11_a_code_is_spent_by_a_get_of_its_own_address_alone() {
        let gate = gate("127.0.0.1:80");
        let code = gate.keys.codes.issue().unwrap();
        let ask = |method: Method, uri: String| {
            let request = Request::builder().method(method).uri(uri).header("host", "127.0.0.1:80");
            gate.judge(&request.body(()).unwrap())
        };
        for method in [Method::POST, Method::HEAD, Method::PUT] {
            assert_eq!(ask(method, format!("/signin?code={code}")), Err(Offence::Token));
        }
        assert_eq!(ask(Method::GET, format!("/?code={code}")), Err(Offence::Token));
        assert_eq!(ask(Method::GET, "/signin?code=00".into()), Err(Offence::Code));
        assert_eq!(ask(Method::GET, format!("/signin?code={code}")), Ok(Pass::SignIn));
        assert_eq!(ask(Method::GET, format!("/signin?code={code}")), Err(Offence::Code), "once");
    }
    #[tokio::test]
    async fn p11_a_spent_code_shuts_out_nobody_who_is_signed_in_and_lets_in_nobody_else() {
        let gate = gate("127.0.0.1:80");
        let good = Seal(&gate.keys.token).cookie(Timestamp::from_millis(1_000_000)).unwrap();
        let code = gate.keys.codes.issue().unwrap();
        let ask = |headers: &[(&str, &str)]| {
            let mut request =
                Request::builder().uri(format!("/signin?code={code}")).header("host", GOOD[0].1);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            gate.judge(&request.body(()).unwrap())
        };
        let cookie = format!("homing-80={good}");
        assert_eq!(ask(&[("cookie", &cookie)]), Ok(Pass::SignIn), "a good code is spent all the same");
        assert_eq!(ask(&[("cookie", &cookie)]), Ok(Pass::SignedIn));
        let (other, twice) = ("homing-80=1.1000000.00.00", format!("{cookie}; {cookie}"));
        for wrong in [
            &[][..],
            &[("cookie", other)],
            &[("cookie", &twice)],
            &[("cookie", &cookie), ("cookie", &cookie)],
        ] {
            assert_eq!(ask(wrong), Err(Offence::Code), "{wrong:?}");
        }
        assert_eq!(ask(&[("cookie", &cookie), ("sec-fetch-site", "cross-site")]), Err(Offence::Site));
        let passed = gate
            .admit(
                &Request::builder()
                    .uri(format!("/signin?code={code}"))
                    .header("host", GOOD[0].1)
                    .header("cookie", &cookie)
                    .body(())
                    .unwrap(),
            )
            .await;
        let answer = passed.unwrap_err();
        assert_eq!(
            (answer.status(), answer.headers()[LOCATION].as_bytes()),
            (StatusCode::SEE_OTHER, &b"/"[..])
        );
        assert!(!answer.headers().contains_key(SET_COOKIE));
        assert_eq!(gate.counts.refused(), 0);
    }
}
