//! The guarded HTTP client: one POST, one answer, and no way to be led astray.
//!
//! # Theory of operation
//!
//! The name is looked up once; the addresses are filtered by the guard; a connection goes to one of those that are left and to nothing
//! else. So there is no moment between check and connection in which a name could change its meaning. Redirects are answers like any
//! other, and no variable of the environment names a proxy. One deadline spans everything, from the look-up to the last byte of the body,
//! and of the body no more is read than is kept. Each delivery has a connection of its own: what would be saved by keeping one is less than
//! the attempt that a connection closed by the other side at the wrong moment would cost.

use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use homing_sys::tcp_owner::require_own;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::Full;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::endpoint::{self, Endpoint};
use crate::exchange::{Answer, MAX_BODY_BYTES, Phase, Progress, request, talk};
use crate::guard::{self, Policy};
use crate::resolver::{self, Resolver};
use crate::tls::{self, Roots, Tls};

/// From the look-up to the last byte of the body.
pub const DEADLINE: Duration = Duration::from_secs(15);

/// So many addresses of a name are tried, and each but the last has this share of the deadline to answer.
const MAX_ADDRESSES: usize = 4;
const CONNECT_SHARE: u32 = 4;

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The endpoint is not allowed, or no longer.
    #[error(transparent)]
    Refused(#[from] endpoint::Refusal),
    /// The name is not known.
    #[error("looking up {host} failed")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// The name has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// Every address of the name is closed; this is why the first one is.
    #[error("{host} is not allowed: {reason}")]
    Guarded {
        /// The name.
        host: String,
        /// Why not.
        #[source]
        reason: guard::Refusal,
    },
    /// No process listens there.
    #[error("connecting to {to} failed")]
    Connect {
        /// The last address tried.
        to: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No encrypted connection.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// The exchange broke off, or was not HTTP.
    #[error("no answer in HTTP")]
    Http(#[source] hyper::Error),
    /// Time ran out.
    #[error("no whole answer within {} s: {}", .limit.as_secs_f64(), .phase.name())]
    Deadline {
        /// How much there was.
        limit: Duration,
        /// Where it ran out.
        phase: Phase,
        /// What was answered before it did.
        status: Option<StatusCode>,
    },
}

impl Error {
    /// The whole chain on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = self.to_string();
        let mut source = self.source();
        while let Some(error) = source {
            let text = error.to_string();
            if !line.ends_with(&text) {
                line.push_str(": ");
                line.push_str(&text);
            }
            source = error.source();
        }
        line
    }
}

/// Sends webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    policy: Arc<Policy>,
    resolver: Arc<dyn Resolver>,
    tls: Arc<Tls>,
    deadline: Duration,
    most_body: usize,
    only_own: bool,
}

impl Client {
    /// A client with the system's resolver and certificates.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy: Arc::new(policy),
            resolver: Arc::new(resolver::System::default()),
            tls: Arc::new(Tls::default()),
            deadline: DEADLINE,
            most_body: MAX_BODY_BYTES,
            only_own: false,
        }
    }

    /// The same with another policy: the configuration has changed.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// The same with another resolver.
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl Resolver + 'static) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// The same with other certificates to trust.
    #[must_use]
    pub fn with_roots(mut self, roots: Roots) -> Self {
        self.tls = Arc::new(Tls::new(roots));
        self
    }

    /// The same with another deadline.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same where more of an answer is wanted, or less.
    #[must_use]
    pub(crate) const fn with_most_body(mut self, most: usize) -> Self {
        self.most_body = most;
        self
    }

    /// The same that sends nothing to a listener of another user of this machine.
    #[must_use]
    pub(crate) const fn with_only_own(mut self) -> Self {
        self.only_own = true;
        self
    }

    /// Sends one request and reads its answer, all within the deadline.
    ///
    /// # Errors
    /// If there is no answer. An answer that refuses is an answer.
    pub async fn post(&self, to: &Endpoint, headers: HeaderMap, body: Bytes) -> Result<Answer, Error> {
        self.send(Method::POST, to, headers, body).await
    }

    /// The same with any method.
    pub(crate) async fn send(
        &self,
        method: Method,
        to: &Endpoint,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, Error> {
        let mut progress = Progress { phase: Phase::Resolve, answer: None, most: self.most_body };
        let request = request(method, to, headers, body);
        let done = timeout(self.deadline, self.exchange(to, request, &mut progress)).await;
        let Progress { phase, answer, .. } = progress;
        match (done, answer) {
            (Ok(Err(error)), _) => Err(error),
            (Ok(Ok(())), Some(answer)) => Ok(answer),
            // A refusal is one before its text is whole. Consent is not: the receiver may still be at work.
            (Err(_), Some(answer)) if !answer.status.is_success() => Ok(answer),
            (Err(_) | Ok(Ok(())), answer) => {
                let status = answer.map(|answer| answer.status);
                Err(Error::Deadline { limit: self.deadline, phase, status })
            }
        }
    }

    async fn exchange(
        &self,
        to: &Endpoint,
        request: Request<Full<Bytes>>,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        let addresses = self.addresses(to).await?;
        progress.phase = Phase::Connect;
        let stream = self.connect(&addresses).await?;
        if to.is_tls() {
            progress.phase = Phase::Handshake;
            let stream = self.tls.connect(to.host(), stream).await?;
            talk(stream, request, progress).await.map_err(Error::Http)
        } else {
            talk(stream, request, progress).await.map_err(Error::Http)
        }
    }

    /// The addresses that a delivery may use now: looked up once, and filtered.
    ///
    /// # Errors
    /// If there is none.
    pub async fn addresses(&self, to: &Endpoint) -> Result<Vec<SocketAddr>, Error> {
        to.check(&self.policy)?;
        let host = to.host().to_owned();
        let mut found = to.known();
        if found.is_empty() {
            let looked_up = self.resolver.resolve(&host).await;
            found = looked_up.map_err(|source| Error::Resolve { host: host.clone(), source })?;
        }
        let mut open = Vec::new();
        let mut closed = None;
        for address in found {
            match to.admit(&self.policy, address) {
                Ok(()) => open.push(SocketAddr::new(address, to.port())),
                Err(reason) => closed = closed.or(Some(reason)),
            }
        }
        open.truncate(MAX_ADDRESSES);
        match closed {
            _ if !open.is_empty() => Ok(open),
            Some(reason) => Err(Error::Guarded { host, reason }),
            None => Err(Error::NoAddress(host)),
        }
    }

    /// Tries the addresses in order. One that swallows everything must not use up the time of the next.
    async fn connect(&self, addresses: &[SocketAddr]) -> Result<TcpStream, Error> {
        let mut failed = None;
        for (index, to) in addresses.iter().enumerate() {
            let last = index + 1 == addresses.len();
            let connecting = TcpStream::connect(*to);
            let tried = if last {
                connecting.await
            } else {
                let limit = self.deadline / CONNECT_SHARE;
                timeout(limit, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            };
            let tried = tried.and_then(|stream| match self.only_own {
                true => require_own(stream.local_addr()?, *to).map(|()| stream),
                false => Ok(stream),
            });
            match tried {
                Ok(stream) => {
                    // A request is one small write: waiting for more to send with it only costs time.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(source) => failed = Some(Error::Connect { to: *to, source }),
            }
        }
        Err(failed.expect("invariant: there is an address to try"))
    }
}
