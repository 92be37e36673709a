//! Where a webhook goes: an address that was read, checked, and can be shown.
//!
//! What is refused here is refused when a task is submitted, with the reason. Names are not looked up here: what they stand for can change,
//! so the client asks the guard about the addresses it is about to use. Checking is repeated before each delivery, because the configuration
//! can change too.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use homing_model::Target;
use homing_model::notify::TOKEN;
use homing_model::secret::SHORTEST_GIVEN;
use http::Uri;
use http::uri::PathAndQuery;

use crate::allow::literal;
use crate::guard::{self, Class, Policy, classify};

/// The longest address that is taken.
const MAX_ADDRESS_BYTES: usize = 4_096;

/// Who asked for the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// On the Unix socket: the user, who may reach this machine's own ports anyway.
    Local,
    /// Over a network listener: this machine's ports are closed to it unless the configuration opens them.
    Network,
}

impl Caller {
    /// Who a caller is that is, or is not, on the Unix socket.
    #[must_use]
    pub const fn of(local: bool) -> Self {
        if local { Self::Local } else { Self::Network }
    }
}

/// The other end of a webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    tls: bool,
    /// Lower case; an IPv6 address in brackets.
    host: String,
    kind: HostKind,
    port: u16,
    /// Path and query, as they go into the request.
    target: PathAndQuery,
    caller: Caller,
}

/// What a host is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HostKind {
    Address(IpAddr),
    /// `localhost` and what is below it: never looked up, so no name server decides where it leads (RFC 6761).
    Localhost,
    Name,
}

/// Why an address is not taken as a webhook. The text ends with what to do and never shows more than the host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not an absolute address.
    #[error(
        "the webhook address cannot be read; write https://HOST/PATH, with names in ASCII (xn--…) and spaces as %20"
    )]
    Malformed,
    /// Too long.
    #[error("the webhook address is longer than {MAX_ADDRESS_BYTES} bytes; shorten it")]
    TooLong,
    /// Another protocol.
    #[error("webhooks go over https, not {0}; write https://…")]
    Scheme(String),
    /// User and password.
    #[error(
        "the webhook address for {0} has a user or password in it; leave it out and check the signature instead"
    )]
    Credentials(String),
    /// What only a browser uses.
    #[error("the webhook address has a fragment (`#…`), which is never sent; leave it out, or write %23")]
    Fragment,
    /// A host that is no name and no address.
    #[error(
        "`{0}` is no host; write a name, an IPv4 address as four decimal numbers, or an IPv6 address in brackets"
    )]
    Host(String),
    /// Unencrypted, to another machine.
    #[error(
        "http is only for receivers on this machine; write https://{host}, or add \"{host}:{port}\" to `allow` under [webhook] in config.toml"
    )]
    Unencrypted {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// An address that the guard keeps closed.
    #[error(transparent)]
    Guarded(#[from] guard::Refusal),
}

impl Endpoint {
    /// Reads and checks an address.
    ///
    /// # Errors
    /// With the reason, if webhooks may not go there.
    pub fn parse(text: &str, caller: Caller, policy: &Policy) -> Result<Self, Refusal> {
        let endpoint = Self::read(text, caller)?;
        endpoint.check(policy)?;
        Ok(endpoint)
    }

    fn read(text: &str, caller: Caller) -> Result<Self, Refusal> {
        if text.len() > MAX_ADDRESS_BYTES {
            return Err(Refusal::TooLong);
        }
        if text.contains('#') {
            return Err(Refusal::Fragment);
        }
        if !text.is_ascii() {
            return Err(Refusal::Malformed);
        }
        let uri: Uri = text.parse().map_err(|_| Refusal::Malformed)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(Refusal::Malformed);
        };
        let tls = match scheme {
            "https" => true,
            "http" => false,
            other => return Err(Refusal::Scheme(other.to_owned())),
        };
        let host = authority.host().to_ascii_lowercase();
        if authority.as_str().contains('@') {
            return Err(Refusal::Credentials(host));
        }
        let (host, kind) = read_host(&host).ok_or_else(|| Refusal::Host(host.clone()))?;
        let port = match authority.port() {
            Some(port) if port.as_u16() == 0 => return Err(Refusal::Malformed),
            Some(port) => port.as_u16(),
            None if authority.as_str().len() > authority.host().len() => return Err(Refusal::Malformed),
            None if tls => 443,
            None => 80,
        };
        let target = uri.path_and_query().map_or("", PathAndQuery::as_str);
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        let target = target.parse().map_err(|_| Refusal::Malformed)?;
        Ok(Self { tls, host, kind, port, target, caller })
    }

    /// Checks what can be checked without looking a name up.
    ///
    /// # Errors
    /// With the reason, if webhooks may not go there.
    pub fn check(&self, policy: &Policy) -> Result<(), Refusal> {
        let known = self.known();
        for address in &known {
            self.admit(policy, *address)?;
        }
        let open = self.is_here()
            || policy.allow.iter().any(|entry| {
                entry.names(&self.host, self.port)
                    || known.iter().any(|to| entry.permits(&self.host, SocketAddr::new(*to, self.port)))
            });
        if self.tls || open {
            return Ok(());
        }
        Err(Refusal::Unencrypted { host: self.host.clone(), port: self.port })
    }

    /// Whether a connection may go to this address for the sake of this endpoint.
    pub(crate) fn admit(&self, policy: &Policy, address: IpAddr) -> Result<(), guard::Refusal> {
        let loopback = self.caller == Caller::Local && self.is_here();
        policy.decide(&self.host, SocketAddr::new(address, self.port), loopback)
    }

    /// The addresses that need no look-up; none for a name.
    pub(crate) fn known(&self) -> Vec<IpAddr> {
        match self.kind {
            HostKind::Address(address) => vec![address],
            HostKind::Localhost => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            HostKind::Name => Vec::new(),
        }
    }

    /// Whether it is this machine by its own words, not by what a name server says.
    fn is_here(&self) -> bool {
        match self.kind {
            HostKind::Address(address) => classify(address) == Class::Loopback,
            HostKind::Localhost => true,
            HostKind::Name => false,
        }
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.tls
    }

    /// The host: lower case, an IPv6 address in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as they stand in a request.
    pub(crate) fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// A text of the receiver's, without what is not shown of the address: many answer a wrong one by repeating it.
    pub(crate) fn conceal(&self, text: &str) -> String {
        let query = self.target.query().unwrap_or_default();
        let values = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
        let path = self.target.path().split('/').filter(|part| part.len() >= TOKEN);
        let parts =
            std::iter::once(query).chain(values).chain(path).filter(|part| part.len() >= SHORTEST_GIVEN);
        parts.fold(text.to_owned(), |text, part| text.replace(part, "…"))
    }

    /// Path and query: may hold tokens, for the request line only.
    pub(crate) const fn target(&self) -> &PathAndQuery {
        &self.target
    }
}

/// A host in its one spelling, and what it is.
fn read_host(host: &str) -> Option<(String, HostKind)> {
    if let Some(address) = literal(host) {
        let shown = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
        return Some((shown, HostKind::Address(address)));
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let letters =
        |label: &str| label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let sound =
        name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()) && letters(label));
    let last = name.rsplit('.').next()?;
    // `2130706433`, `0x7f.1` and `127.1` are addresses to some resolvers and names to others.
    let number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    if let Some(address) = literal(name) {
        return Some((name.to_owned(), HostKind::Address(address)));
    }
    if !sound || number {
        return None;
    }
    let kind = if last == "localhost" { HostKind::Localhost } else { HostKind::Name };
    Some((name.to_owned(), kind))
}

/// What may be shown: no query, and no part of the path that could be a token.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        let address = format!("{scheme}://{}{}", self.authority(), self.target);
        f.write_str(&Target::Webhook(address).shown())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}
