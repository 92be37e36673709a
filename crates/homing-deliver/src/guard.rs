//! Which addresses a webhook may go to.
//!
//! Every address has one [`Class`], found by a table of ranges; what is in no range of the table is public. A [`Policy`] says which of the
//! others may be reached. The client asks it about the very addresses that it connects to, so that between check and connection there is
//! no second look-up that could answer differently (P11).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::allow::Allow;
use crate::range::Range;

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Any host on the internet.
    Public,
    /// This machine.
    Loopback,
    /// A private network (RFC 1918, unique local, site local, the local form of NAT64).
    Private,
    /// A provider's shared network (CGNAT).
    Shared,
    /// This cable, and the services that clouds keep there for their machines.
    LinkLocal,
    /// "This host": Linux takes it for loopback.
    Unspecified,
    /// Many at once, or all.
    Multicast,
    /// Examples in books.
    Documentation,
    /// Measuring devices.
    Benchmarking,
    /// An IPv4 address wrapped into an IPv6 one by 6to4, Teredo or the old compatible form.
    Tunnel,
    /// Set aside for something else.
    Reserved,
}

impl Class {
    /// Whether no entry of the configuration can open it: no receiver can be there.
    const fn is_never(self) -> bool {
        matches!(self, Self::Unspecified | Self::Multicast)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::Shared => "an address of a provider's shared network",
            Self::LinkLocal => "a link-local address, where clouds keep their machines' credentials",
            Self::Unspecified => "an unspecified address",
            Self::Multicast => "a multicast or broadcast address",
            Self::Documentation => "an address for documentation",
            Self::Benchmarking => "an address for benchmarks",
            Self::Tunnel => "an IPv4 address hidden in an IPv6 one",
            Self::Reserved => "a reserved address",
        })
    }
}

/// First match wins: exceptions stand before the ranges they are in.
const V4: &[(Range, Class)] = &[
    (Range::v4([0, 0, 0, 0], 8), Class::Unspecified),
    (Range::v4([10, 0, 0, 0], 8), Class::Private),
    (Range::v4([100, 64, 0, 0], 10), Class::Shared),
    (Range::v4([127, 0, 0, 0], 8), Class::Loopback),
    // Azure's counterpart of 169.254.169.254 has a public number.
    (Range::v4([168, 63, 129, 16], 32), Class::LinkLocal),
    (Range::v4([169, 254, 0, 0], 16), Class::LinkLocal),
    (Range::v4([172, 16, 0, 0], 12), Class::Private),
    (Range::v4([192, 0, 0, 0], 24), Class::Reserved),
    (Range::v4([192, 0, 2, 0], 24), Class::Documentation),
    (Range::v4([192, 88, 99, 0], 24), Class::Tunnel),
    (Range::v4([192, 168, 0, 0], 16), Class::Private),
    (Range::v4([198, 18, 0, 0], 15), Class::Benchmarking),
    (Range::v4([198, 51, 100, 0], 24), Class::Documentation),
    (Range::v4([203, 0, 113, 0], 24), Class::Documentation),
    (Range::v4([224, 0, 0, 0], 4), Class::Multicast),
    (Range::v4([255, 255, 255, 255], 32), Class::Multicast),
    (Range::v4([240, 0, 0, 0], 4), Class::Reserved),
];

/// First match wins. Only 2000::/3 was ever given to the internet; the last line takes the rest.
const V6: &[(Range, Class)] = &[
    (Range::v6([0, 0, 0, 0, 0, 0, 0, 0], 128), Class::Unspecified),
    (Range::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Class::Loopback),
    (Range::v6([0, 0, 0, 0, 0, 0, 0, 0], 96), Class::Tunnel),
    (Range::v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), Class::Private),
    (Range::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Class::Private),
    (Range::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), Class::LinkLocal),
    (Range::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), Class::Private),
    (Range::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Class::Multicast),
    (Range::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), Class::Tunnel),
    (Range::v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48), Class::Benchmarking),
    (Range::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), Class::Documentation),
    (Range::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), Class::Reserved),
    (Range::v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), Class::Tunnel),
    (Range::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), Class::Documentation),
    (Range::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3), Class::Public),
    (Range::v6([0, 0, 0, 0, 0, 0, 0, 0], 0), Class::Reserved),
];

/// NAT64: networks without IPv4 reach every IPv4 address through it, so it is as public or private as what it carries.
const NAT64: Range = Range::v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

/// The address that is really meant: what a mapped (`::ffff:…`) or NAT64 form carries, else the address itself.
#[must_use]
pub fn effective(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match v6.to_canonical() {
            IpAddr::V4(mapped) => IpAddr::V4(mapped),
            IpAddr::V6(_) if NAT64.contains(address) => IpAddr::V4(last_four(v6)),
            IpAddr::V6(_) => address,
        },
    }
}

fn last_four(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

/// What an address is for.
#[must_use]
pub fn classify(address: IpAddr) -> Class {
    let address = effective(address);
    let table = if address.is_ipv4() { V4 } else { V6 };
    table.iter().find(|(range, _)| range.contains(address)).map_or(Class::Public, |(_, class)| *class)
}

/// What may be reached beyond the public internet.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// The entries of `[webhook] allow`.
    pub allow: Vec<Allow>,
    /// Where our own API listens, if it does: webhooks to it are refused.
    pub own: Option<SocketAddr>,
}

/// Why an address may not be reached. The text ends with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Homing's own listener.
    #[error("{0} is homing's own listener; send the webhook somewhere else")]
    Own(SocketAddr),
    /// An address that no receiver can have.
    #[error("{address} is {class}, which receives no webhooks; name the receiver's own address")]
    Never {
        /// The address.
        address: IpAddr,
        /// What it is.
        class: Class,
    },
    /// An address that is neither public nor allowed.
    #[error(
        "{address} is {class}; if it is meant, add \"{address}/{}\" or \"{host}:{port}\" to `allow` under [webhook] in config.toml",
        if address.is_ipv4() { 32 } else { 128 }
    )]
    Closed {
        /// The host that was asked for, bracketed where it is an IPv6 address.
        host: String,
        /// The port that was asked for.
        port: u16,
        /// The address behind it.
        address: IpAddr,
        /// What it is.
        class: Class,
    },
}

impl Policy {
    /// Whether this address may be reached for the sake of this host, which is bracketed where it is an IPv6 address.
    ///
    /// `loopback` says that the host is this machine by its own words and that the caller may reach it.
    ///
    /// # Errors
    /// With the reason, if not.
    pub fn decide(&self, host: &str, to: SocketAddr, loopback: bool) -> Result<(), Refusal> {
        let address = effective(to.ip());
        let class = classify(address);
        if self.is_own(SocketAddr::new(address, to.port()), class) {
            return Err(Refusal::Own(to));
        }
        if class.is_never() {
            return Err(Refusal::Never { address, class });
        }
        let open = class == Class::Public
            || (loopback && class == Class::Loopback)
            || self.allow.iter().any(|entry| entry.permits(host, SocketAddr::new(address, to.port())));
        if open {
            return Ok(());
        }
        Err(Refusal::Closed { host: host.to_owned(), port: to.port(), address, class })
    }

    /// A listener on every interface is behind each address of this machine, and those are not known here: all that are not public count.
    fn is_own(&self, to: SocketAddr, class: Class) -> bool {
        self.own.is_some_and(|own| {
            let here = class == Class::Loopback
                || class == Class::Unspecified
                || to.ip() == own.ip()
                || (own.ip().is_unspecified() && class != Class::Public);
            own.port() == to.port() && here
        })
    }
}
