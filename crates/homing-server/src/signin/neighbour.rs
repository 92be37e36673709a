//! Whose program is at the other end of a connection on this machine: the kernel keeps a list of sockets with their users.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Where the list is.
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Whether the socket at `theirs`, connected to `ours`, belongs to the user that we run as. Somebody on another machine belongs to nobody here.
pub(crate) fn is_kin(ours: SocketAddr, theirs: SocketAddr) -> bool {
    let own = rustix::process::geteuid().as_raw();
    LISTS.iter().any(|list| {
        std::fs::read_to_string(Path::new(list)).is_ok_and(|text| user(&text, ours, theirs) == Some(own))
    })
}

/// The user of a socket, by the kernel's list.
fn user(list: &str, ours: SocketAddr, theirs: SocketAddr) -> Option<u32> {
    let names = |at: SocketAddr| [spelled(at), spelled(mapped(at))];
    let (local, remote) = (names(theirs), names(ours));
    list.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (from, to) = (fields.next()?, fields.next()?);
        let user = fields.nth(4)?;
        (local.iter().any(|name| name == from) && remote.iter().any(|name| name == to))
            .then(|| user.parse().ok())?
    })
}

/// An IPv4 address as a socket of IPv6 has it.
fn mapped(at: SocketAddr) -> SocketAddr {
    match at.ip() {
        IpAddr::V4(address) => SocketAddr::new(address.to_ipv6_mapped().into(), at.port()),
        IpAddr::V6(_) => SocketAddr::new(at.ip().to_canonical(), at.port()),
    }
}

/// An address as the list has it: words of four bytes in the machine's order, then the port.
fn spelled(at: SocketAddr) -> String {
    let bytes = match at.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let mut text = String::new();
    for word in bytes.as_chunks::<4>().0 {
        let _ = write!(text, "{:08X}", u32::from_ne_bytes(*word));
    }
    let _ = write!(text, ":{:04X}", at.port());
    text
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn p11_the_user_at_the_other_end_is_found_by_both_addresses() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else { continue };
            let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (here, theirs) = listener.accept().unwrap();
            let ours = here.local_addr().unwrap();
            assert!(is_kin(ours, theirs), "{host}");
            assert!(!is_kin(ours, SocketAddr::new(theirs.ip(), theirs.port() ^ 1)), "{host}");
            drop(there);
        }
    }

    #[test]
    fn p11_another_users_socket_is_not_ours() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0\n   \
            1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 65534        0 2 1 0 100 0 0 10 0\n";
        let at = |text: &str| text.parse().unwrap();
        assert_eq!(user(list, at("127.0.0.1:8080"), at("127.0.0.1:49153")), Some(65534));
        assert_eq!(user(list, at("127.0.0.1:8080"), at("127.0.0.1:49154")), None);
        assert_eq!(user(list, at("127.0.0.1:49153"), at("127.0.0.1:8080")), None, "not the other way round");
        assert_eq!(spelled(mapped(at("127.0.0.1:80"))), "0000000000000000FFFF00000100007F:0050");
    }
}
