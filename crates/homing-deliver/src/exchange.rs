//! One request and its answer over a connection that serves nothing else.

use std::pin::pin;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::endpoint::Endpoint;

/// So much of a body is read, and no more, where nobody wants more.
pub(crate) const MAX_BODY_BYTES: usize = 16 * 1024;

/// So much of a head is taken, in fields and in bytes.
const MAX_HEADERS: usize = 64;
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Where the work was when time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Looking the name up.
    Resolve,
    /// Reaching the address.
    Connect,
    /// Agreeing on keys.
    Handshake,
    /// Sending the request and waiting for the head of the answer.
    Head,
    /// Reading the answer's body.
    Body,
}

impl Phase {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Resolve => "looking the name up",
            Self::Connect => "connecting",
            Self::Handshake => "shaking hands for TLS",
            Self::Head => "waiting for the answer",
            Self::Body => "reading the answer's body",
        }
    }
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// `Retry-After`, as it came.
    pub retry_after: Option<String>,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

/// How far a delivery came; read when time runs out.
pub(crate) struct Progress {
    pub(crate) phase: Phase,
    /// As much of it as there is.
    pub(crate) answer: Option<Answer>,
    /// So much of its body is read.
    pub(crate) most: usize,
}

/// A request to this endpoint.
pub(crate) fn request(
    method: Method,
    to: &Endpoint,
    headers: HeaderMap,
    body: Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from(to.target().clone());
    *request.headers_mut() = headers;
    let authority = to.authority().parse().expect("invariant: a checked host is a header's value");
    request.headers_mut().insert(header::HOST, authority);
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    request
}

/// Sends it, reads the answer, and closes.
pub(crate) async fn talk(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
    progress: &mut Progress,
) -> hyper::Result<()> {
    progress.phase = Phase::Head;
    let mut builder = http1::Builder::new();
    builder.max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD_BYTES);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        progress.phase = Phase::Body;
        read(response, &mut progress.answer, progress.most).await;
        Ok(())
    };
    // The connection moves only while it is polled, and is dropped with this future: nothing goes on after the deadline.
    let (mut exchange, mut connection) = (pin!(exchange), pin!(connection));
    tokio::select! {
        biased;
        done = &mut exchange => done,
        _ = &mut connection => exchange.await,
    }
}

/// Reads as much as is kept. A body that breaks off has ended: the status was said, and nothing more can come.
async fn read(response: Response<Incoming>, answer: &mut Option<Answer>, most: usize) {
    let (head, mut incoming) = response.into_parts();
    let retry_after = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.map(str::to_owned);
    let body = &mut answer.insert(Answer { status: head.status, retry_after, body: Vec::new() }).body;
    while body.len() < most {
        let Some(Ok(frame)) = incoming.frame().await else { break };
        if let Some(data) = frame.data_ref() {
            body.extend_from_slice(&data[..data.len().min(most - body.len())]);
        }
    }
}
