//! The loopback listener of a daemon, by its address and its token, where the socket of the home is out of reach.

use std::fmt;
use std::net::SocketAddr;

use homing_sys::tcp_owner::require_own;
use http::header::{AUTHORIZATION, HOST, HeaderValue};
use http::{HeaderMap, Request};
use tokio::net::TcpStream;

use crate::transport::error::Error;

/// Where it is, and what opens it.
#[derive(Clone)]
pub(crate) struct Tcp {
    address: SocketAddr,
    /// The name that it must be called by.
    host: HeaderValue,
    authorization: HeaderValue,
}

/// The token is never shown.
impl fmt::Debug for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tcp({})", self.address)
    }
}

impl Tcp {
    /// A token that no header can carry is none of ours, and is refused as any other wrong one.
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        let host = HeaderValue::try_from(address.to_string()).unwrap_or(HeaderValue::from_static(""));
        let bearer = HeaderValue::try_from(format!("Bearer {}", token.trim()));
        let mut authorization = bearer.unwrap_or(HeaderValue::from_static("Bearer"));
        authorization.set_sensitive(true);
        Self { address, host, authorization }
    }

    pub(crate) async fn connect(&self) -> Result<TcpStream, Error> {
        let failed = |source| Error::NoListener { address: self.address, source };
        let stream = TcpStream::connect(self.address).await.map_err(failed)?;
        let here = stream.local_addr().map_err(failed)?;
        // The token is for our own daemon, and so is what comes after it.
        require_own(here, self.address).map_err(failed)?;
        // Requests are small, and their answers awaited.
        stream.set_nodelay(true).map_err(failed)?;
        Ok(stream)
    }

    /// Adds what a request has to show.
    pub(crate) fn dress<B>(&self, request: &mut Request<B>) {
        let headers: &mut HeaderMap = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(AUTHORIZATION, self.authorization.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_shows_the_address_and_the_token_and_nothing_else_does() {
        let tcp = Tcp::new("[::1]:80".parse().unwrap(), "secret\n");
        let mut request = Request::builder().header(HOST, "homing").body(()).unwrap();
        tcp.dress(&mut request);
        assert_eq!(request.headers()[HOST], "[::1]:80");
        assert_eq!(request.headers()[AUTHORIZATION], "Bearer secret");
        assert!(!format!("{tcp:?} {request:?}").contains("secret"));
    }

    #[tokio::test]
    async fn nobody_at_that_port_is_said_with_the_port() {
        // Held, so that nobody else gets it, and not listened at.
        let held = tokio::net::TcpSocket::new_v4().unwrap();
        held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = held.local_addr().unwrap();
        let error = Tcp::new(address, "x").connect().await.unwrap_err();
        assert!(error.is_nobody_there() && error.to_string().contains(&address.to_string()), "{error}");
    }
}
