//! An entry of `[webhook] allow`: one receiver as `host:port`, or every address of a range.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::range::Range;

/// What an operator opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow(Entry);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    /// As it stands in an address: lower case, an IPv6 address in brackets.
    Receiver {
        host: String,
        port: u16,
    },
    Addresses(Range),
}

/// Why a text is no entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` allows nothing: write \"host:port\" (\"127.0.0.1:8080\", \"nas.lan:443\") or a range (\"10.0.0.0/8\")"
)]
pub struct Malformed(String);

impl Allow {
    /// Whether it opens this very host and port, whatever address is behind it.
    pub(crate) fn names(&self, host: &str, port: u16) -> bool {
        matches!(&self.0, Entry::Receiver { host: known, port: open } if known == host && *open == port)
    }

    /// Whether it opens this address, asked for by this host, which is bracketed where it is an IPv6 address.
    pub(crate) fn permits(&self, host: &str, to: SocketAddr) -> bool {
        match &self.0 {
            Entry::Receiver { port, .. } if *port != to.port() => false,
            // An address may be named by any of its spellings; a name only by itself.
            Entry::Receiver { host: known, .. } => known == host || literal(known) == Some(to.ip()),
            Entry::Addresses(range) => range.contains(to.ip()),
        }
    }
}

/// The address that a host is, if it is one.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok().filter(IpAddr::is_ipv4),
    }
}

impl FromStr for Allow {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed(text.to_owned());
        if let Ok(range) = text.parse() {
            return Ok(Self(Entry::Addresses(range)));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(malformed)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(malformed)?;
        let host = host.to_ascii_lowercase();
        let name = !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        if name || literal(&host).is_some() {
            Ok(Self(Entry::Receiver { host, port }))
        } else {
            Err(malformed())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(entry: &str, host: &str, to: &str) -> bool {
        entry.parse::<Allow>().unwrap().permits(host, to.parse().unwrap())
    }

    #[test]
    fn a_receiver_is_one_host_and_one_port() {
        assert!(permits("nas.lan:8080", "nas.lan", "192.168.1.5:8080"));
        assert!(permits("NAS.lan:8080", "nas.lan", "192.168.1.5:8080"));
        assert!(!permits("nas.lan:8080", "nas.lan", "192.168.1.5:22"));
        assert!(!permits("nas.lan:8080", "evil.example", "192.168.1.5:8080"));
        assert!(permits("127.0.0.1:8080", "127.0.0.1", "127.0.0.1:8080"));
        assert!(permits("[fd00::1]:443", "[fd00:0::1]", "[fd00::1]:443"));
    }

    #[test]
    fn a_range_is_every_port_of_its_addresses() {
        assert!(permits("10.0.0.0/8", "build.corp", "10.200.3.4:9999"));
        assert!(!permits("10.0.0.0/8", "build.corp", "11.0.0.1:9999"));
        assert!(permits("fd00::/8", "[fd12::1]", "[fd12::1]:80"));
        assert!(permits("192.168.1.5", "192.168.1.5", "192.168.1.5:1"));
    }

    #[test]
    fn what_allows_nothing_is_refused() {
        for text in [
            "",
            "nas.lan",
            "nas.lan:",
            "nas.lan:0",
            "nas.lan:99999",
            ":80",
            "https://nas.lan:80",
            "a b:80",
            "fd00::1:x",
            "*:80",
        ] {
            assert!(text.parse::<Allow>().is_err(), "{text}");
        }
    }
}
