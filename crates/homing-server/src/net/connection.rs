//! One connection: who is at the other end, and its requests one after the other.

use std::any::Any;
use std::io::{self, Write};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use homing_api::{Code, Problem};
use homing_engine::{Ancestry, Engine, Unplaced};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Method, Request};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::auth::request_auth::Gate;
use crate::http::body_drain::{Patience, Unread};
use crate::http::call::Peer;
use crate::http::peer_closed::Hangup;
use crate::http::refusal::Refusal;
use crate::http::upgrade::Handover;
use crate::net::connection_limits::{Holder, Place, until_sent};
use crate::net::server::no_place;
use crate::page;
use homing_sys::confine::Confinement;
use homing_sys::peer::PeerProcess;
use homing_sys::process;

/// How long a client may take to say what it wants, and how long it may say nothing between two requests.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// The same on the listener, where anybody on this machine can connect.
pub(crate) const STRANGER_TIME: Duration = Duration::from_secs(10);

/// The same there for other users, while many are connected.
pub(crate) const CROWD_TIME: Duration = Duration::from_secs(2);

/// What is still done for a client that is gone.
const LAST_WORDS: Duration = Duration::from_millis(10);

/// The largest request head: an address of the longest kind (64 KiB) and its headers.
const HEAD_SIZE: usize = 96 * 1024;

/// What is held for a client that does not read, beyond one piece of a stream.
const BUFFER: usize = 128 * 1024;

/// Whether the system has no descriptor or memory left for us: it will pass, and trying again at once would only spin.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    error.raw_os_error().is_some_and(|code| shortages.iter().any(|known| known.raw_os_error() == code))
}

/// Whether a connection is served.
#[derive(Debug)]
pub(crate) enum Admission {
    Welcome(Peer, Ancestry),
    /// Every request has to show that it may come in, and be begun within this time.
    Gated(Gate, Duration),
    /// Every request is answered with this.
    Refused(Problem),
}

impl Admission {
    /// Whom a connection on the socket counts for.
    pub(crate) fn holder(&self) -> Holder {
        match self {
            Self::Welcome(peer, ancestry) => match (ancestry.outermost(), peer) {
                (Some(task), _) => Holder::Task(task.clone()),
                (None, Peer::Local { process: Some(process) }) => Holder::Process(*process),
                (None, Peer::Local { process: None } | Peer::Network) => Holder::Unseen,
            },
            Self::Refused(_) | Self::Gated(..) => Holder::Refused,
        }
    }
}

/// Answers a connection that gets no place, and closes it.
pub(crate) fn turn_away(stream: UnixStream, problem: &Problem) {
    let body = serde_json::to_string(problem).unwrap_or_default();
    let text = format!(
        "HTTP/1.1 {} Too Many Connections\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        problem.status,
        body.len()
    );
    // A new connection has room for so little, or is gone.
    let _ = stream.into_std().and_then(|mut stream| stream.write_all(text.as_bytes()));
}

/// Looks at who connected: the same user, alive, and no more confined than we are (P11). True beside it
/// where only `[confined] allow` lets them in.
pub(crate) fn admit(stream: &UnixStream, own: &Confinement, engine: &Engine) -> (Admission, bool) {
    judge(stream, own, engine).unwrap_or_else(|problem| (Admission::Refused(*problem), false))
}

/// Waits until `[confined] allow` is no longer set.
pub(crate) async fn confined_are_refused(engine: Engine) {
    let mut config = engine.configured();
    drop(engine);
    if config.wait_for(|config| !config.confined.allow).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn judge(stream: &UnixStream, own: &Confinement, engine: &Engine) -> Result<(Admission, bool), Box<Problem>> {
    let refused = |code, detail: String| Box::new(Problem::new(code, detail));
    // Our own want, not the caller's doing.
    let short = |detail: String| refused(Code::SystemLimit, detail);
    let peer = PeerProcess::of(stream).map_err(|error| match is_shortage(&error) {
        true => short(format!("which process calls cannot be seen now: {error}")),
        false => refused(Code::Forbidden, format!("the caller cannot be told: {error}")),
    })?;
    if peer.uid() != rustix::process::geteuid().as_raw() {
        let detail = format!("user {} may not use the daemon of another", peer.uid());
        return Err(refused(Code::Forbidden, detail));
    }
    let allow_confined = engine.config().confined.allow;
    let Some(pid) = peer.pid() else {
        if allow_confined {
            return Ok((Admission::Welcome(Peer::Local { process: None }, Ancestry::default()), true));
        }
        return Err(refused(
            Code::Confined,
            "the caller is refused: it is in another pid namespace than the daemon".into(),
        ));
    };
    let confinement = Confinement::of(pid);
    let (process, ancestry) = (process::stat(pid), engine.ancestry(pid));
    // Whatever was read above was read of its number: only if the process has not ended was all of it about this process.
    if !peer.is_alive() {
        return Err(refused(Code::Forbidden, format!("the caller (pid {pid}) has ended")));
    }
    let confined = match confinement {
        Ok(theirs) => theirs
            .beyond(own)
            .map(|reason| refused(Code::Confined, format!("the caller (pid {pid}) is refused: {reason}"))),
        Err(error) if is_shortage(&error) => {
            Some(short(format!("whether the caller (pid {pid}) is confined cannot be seen now: {error}")))
        }
        Err(error) => {
            let detail =
                format!("the caller (pid {pid}) is refused: whether it is confined cannot be seen: {error}");
            Some(refused(Code::Confined, detail))
        }
    };
    let is_allowed = confined.is_some();
    if let Some(problem) = confined.filter(|_| !allow_confined) {
        return Err(problem);
    }
    let Some(process) = process else { return Err(unseen(pid)) };
    let ancestry = ancestry.map_err(|unplaced| unplaced_caller(pid, unplaced))?;
    Ok((Admission::Welcome(Peer::Local { process: Some(process.id()) }, ancestry), is_allowed))
}

fn unseen(pid: u32) -> Box<Problem> {
    Box::new(Problem::new(
        Code::SystemLimit,
        format!("what started the caller (pid {pid}) cannot be seen now"),
    ))
}

/// What is said to a process of which it is not known in which tasks it runs.
pub(crate) fn unplaced_caller(pid: u32, unplaced: Unplaced) -> Box<Problem> {
    match unplaced {
        Unplaced::Unseen => unseen(pid),
        Unplaced::Orphan => Box::new(Problem::new(
            Code::OrphanCaller,
            format!("the caller (pid {pid}) was left behind by a task whose shim was killed"),
        )),
    }
}

/// The daemon leaves: whoever only waits is cut off, and asks the next daemon.
#[derive(Debug, thiserror::Error)]
#[error("the daemon is leaving")]
struct CutOff;

async fn answer(
    router: TowerToHyperService<Router>,
    (peer, ancestry): (Peer, Ancestry),
    mut request: Request<Body>,
    handover: Handover,
    shutdown: CancellationToken,
) -> Result<Response, CutOff> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    request.extensions_mut().insert(peer);
    request.extensions_mut().insert(ancestry);
    request.extensions_mut().insert(handover);
    let answered = AssertUnwindSafe(router.call(request)).catch_unwind();
    let result = if method == Method::GET || method == Method::HEAD {
        tokio::select! {
            biased;
            result = answered => result,
            () = shutdown.cancelled() => return Err(CutOff),
        }
    } else {
        answered.await
    };
    let response = match result {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(payload) => {
            let panic = panic_message(payload.as_ref());
            tracing::error!(%method, path, panic, "a request made us panic");
            Refusal::new(Code::Internal, format!("{method} {path} failed: {panic}")).into_response()
        }
    };
    tracing::debug!(%method, path, status = response.status().as_u16(), "answered");
    Ok(response)
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// What is answered over TCP is for the caller alone: no browser keeps it, guesses at it, frames it, or shows it to another site.
fn fenced(mut response: Response) -> Response {
    page::fence(response.headers_mut());
    response
}

/// Who was refused begins anew, with a new connection.
fn closing(response: Response) -> Response {
    let mut response = fenced(response);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Lets a request on the listener in, and counts its connection for the process or the task that it
/// comes from.
async fn let_in<B>(gate: &Gate, place: &Place, request: &Request<B>) -> Result<Ancestry, Response> {
    let (ancestry, holder) = gate.admit(request).await?;
    if place.count_for(&holder) {
        return Ok(ancestry);
    }
    Err(Refusal::from(no_place(&holder, place.is_full_for(&holder))).into_response())
}

/// Serves a connection to its end. On leaving it finishes what changes something and takes no more. Where it cannot be seen whether anybody is
/// there, who has said everything counts as gone.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    admission: Admission,
    router: TowerToHyperService<Router>,
    shutdown: CancellationToken,
    hangup: Option<Hangup>,
    place: Place,
) {
    let over = shutdown.clone();
    let mut http = http1::Builder::new();
    let head_time = match admission {
        Admission::Gated(_, head_time) => head_time,
        Admission::Welcome(..) | Admission::Refused(_) => HEAD_TIME,
    };
    http.timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_header_size(HEAD_SIZE)
        .max_buf_size(BUFFER);
    http.keep_alive(!matches!(admission, Admission::Refused(_)));
    http.half_close(hangup.is_some());
    let gone = async {
        match &hangup {
            Some(hangup) => hangup.happened().await,
            None => std::future::pending().await,
        }
    };
    let (admission, place, handover) = (&admission, &place, Handover::default());
    let hands = handover.clone();
    let service = service_fn(|request: Request<Incoming>| {
        let (router, shutdown, hands) = (router.clone(), shutdown.clone(), hands.clone());
        let (head, body) = request.into_parts();
        let (body, unread) = Unread::of(body, &head.headers);
        let request = Request::from_parts(head, body);
        async move {
            let peer = match admission {
                Admission::Welcome(peer, ancestry) => Ok((*peer, ancestry.clone())),
                Admission::Refused(problem) => Err(problem),
                // Until it is known whose the connection is, it is idle, and makes room for others.
                Admission::Gated(gate, _) => match let_in(gate, place, &request).await {
                    Ok(ancestry) => Ok((Peer::Network, ancestry)),
                    Err(refusal) => {
                        drop(request);
                        unread.hear(Patience::STRANGER).await;
                        return Ok(closing(refusal));
                    }
                },
            };
            // It makes room for another; whoever asked finds it closed, as any connection that is kept open may be.
            let Some(under_way) = place.begin() else { return Err(CutOff) };
            let answered = match peer {
                Ok(peer) => {
                    let fence = if peer.0 == Peer::Network { fenced } else { |response| response };
                    answer(router, peer, request.map(Body::new), hands, shutdown).await.map(fence)
                }
                Err(problem) => {
                    drop(request);
                    Ok(Refusal::from(problem.clone()).into_response())
                }
            };
            if answered.is_ok() {
                unread.hear(Patience::FRIEND).await;
            }
            answered.map(|response| response.map(|body| until_sent(body, under_way)))
        }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let result = tokio::select! {
        biased;
        () = over.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        result = connection.as_mut() => result,
        // What it said before it left is heard, and begun.
        () = gone => timeout(LAST_WORDS, connection).await.unwrap_or(Ok(())),
    };
    if let Err(error) = result {
        // A client that went away, or that speaks something else.
        tracing::debug!(%error, "a connection broke");
    }
    // What it has become is served here too, and ends with whatever ends this.
    if let Some(rest) = handover.take()
        && let Some(_under_way) = place.begin()
    {
        rest.await;
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::{get, post};

    use super::*;

    async fn ask(method: Method, path: &str, shutdown: CancellationToken) -> Result<Response, CutOff> {
        let router = Router::new()
            .route(
                "/panic",
                get(|| async { [0; 1].iter().position(|_| panic!("by mistake")).map_or("", |_| "") }),
            )
            .route("/wait", get(std::future::pending::<()>))
            .route("/change", post(|| async { tokio::task::yield_now().await }));
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let peer = (Peer::Local { process: None }, Ancestry::default());
        answer(TowerToHyperService::new(router), peer, request, Handover::default(), shutdown).await
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_answered_for() {
        let shutdown = CancellationToken::new();
        let response = ask(Method::GET, "/panic", shutdown).await.unwrap();
        assert_eq!(response.status(), 500);
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let problem: Problem = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem.code, "HM0029");
        assert!(problem.detail.contains("by mistake"), "{problem}");
    }

    #[tokio::test]
    async fn on_leaving_a_wait_is_cut_off_and_a_change_is_finished() {
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        assert!(ask(Method::GET, "/wait", shutdown.clone()).await.is_err());
        assert_eq!(ask(Method::POST, "/change", shutdown).await.unwrap().status(), 200);
    }
}
