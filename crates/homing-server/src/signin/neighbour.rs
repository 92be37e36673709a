//! Who is at the other end of a TCP connection on this machine. Keeps P11.
//!
//! The kernel is asked for one socket by its addresses (`sock_diag`), which takes as long whatever
//! else is connected; so it can be done for every connection. A socket that its process has closed
//! has no inode any more, whatever user the kernel names for it then: it belongs to nobody.
//!
//! Only a connection that came in at an address beyond loopback can come from another machine. A
//! program of this machine may connect from any of its addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;

use homing_shim::process::{self, Process};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use rustix::net::{recv, send, socket_with};

use crate::connection::is_shortage;

/// A socket that a process of this machine holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub(crate) uid: u32,
    pub(crate) inode: u32,
}

impl Neighbour {
    /// Whether it belongs to the user that we run as.
    pub(crate) fn is_kin(self) -> bool {
        self.uid == rustix::process::geteuid().as_raw()
    }
}

/// The socket at `theirs` that is connected to `ours`; none if its process has closed it, or is on
/// another machine or in another network namespace.
///
/// # Errors
/// If the system is short of descriptors or memory, or cannot say.
pub(crate) fn find(ours: SocketAddr, theirs: SocketAddr) -> io::Result<Option<Neighbour>> {
    let diag =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    send(&diag, &request(theirs, ours), SendFlags::empty())?;
    let mut answer = [0; 1024];
    // Complete before `send` has returned.
    let (_, length) = recv(&diag, &mut answer, RecvFlags::DONTWAIT)?;
    read(answer.get(..length).unwrap_or_default())
}

/// Whether a connection between these addresses may come from another machine.
pub(crate) fn may_be_elsewhere(ours: SocketAddr, theirs: SocketAddr) -> bool {
    let (ours, theirs) = (ours.ip().to_canonical(), theirs.ip().to_canonical());
    // Only an address of this machine can be bound.
    !ours.is_loopback() && !theirs.is_loopback() && UdpSocket::bind((theirs, 0)).is_err()
}

/// Of `linux/netlink.h`, `linux/sock_diag.h` and `linux/inet_diag.h`.
const HEADER: usize = 16;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const IPPROTO_TCP: u8 = 6;
const ANY_STATE: u32 = u32::MAX;
const NO_COOKIE: u32 = u32::MAX;
const ENOENT: i32 = 2;
const TCP_LISTEN: u8 = 10;
/// Where state, user and inode stand in an `inet_diag_msg`, behind the header.
const STATE: usize = HEADER + 1;
const UID: usize = HEADER + 64;
const INODE: usize = HEADER + 68;

/// Asks for the socket at `at` that is connected to `to`.
fn request(at: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let (at, to) = (canonical(at), canonical(to));
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut body = vec![u8::try_from(family.as_raw()).unwrap_or_default(), IPPROTO_TCP, 0, 0];
    body.extend(ANY_STATE.to_ne_bytes());
    body.extend(at.port().to_be_bytes());
    body.extend(to.port().to_be_bytes());
    for address in [at.ip(), to.ip()] {
        let mut words = [0; 16];
        match address {
            IpAddr::V4(address) => words[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => words.copy_from_slice(&address.octets()),
        }
        body.extend(words);
    }
    // Any interface.
    body.extend(0_u32.to_ne_bytes());
    body.extend(NO_COOKIE.to_ne_bytes());
    body.extend(NO_COOKIE.to_ne_bytes());
    let length = u32::try_from(HEADER + body.len()).unwrap_or_default();
    let mut message = Vec::from(length.to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

fn read(answer: &[u8]) -> io::Result<Option<Neighbour>> {
    let short = || io::Error::other("the kernel's answer about a socket is too short");
    let word = |at: usize| {
        let bytes = answer.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
        bytes.map(|bytes| u32::from_ne_bytes(*bytes)).ok_or_else(short)
    };
    let kind = answer.get(4..6).and_then(|bytes| bytes.first_chunk::<2>()).ok_or_else(short)?;
    if u16::from_ne_bytes(*kind) == NLMSG_ERROR {
        return match -word(HEADER)?.cast_signed() {
            ENOENT => Ok(None),
            error => Err(io::Error::from_raw_os_error(error)),
        };
    }
    let (uid, inode) = (word(UID)?, word(INODE)?);
    // Where no connection has these addresses, the kernel answers with who listens at the first.
    let listens = answer.get(STATE).copied().ok_or_else(short)? == TCP_LISTEN;
    Ok((inode != 0 && !listens).then_some(Neighbour { uid, inode }))
}

/// An IPv4 address as such, also where a socket of IPv6 has it.
fn canonical(at: SocketAddr) -> SocketAddr {
    SocketAddr::new(at.ip().to_canonical(), at.port())
}

/// The processes that hold a socket, of those whose descriptors we may see.
///
/// # Errors
/// If the system is short of descriptors or memory.
pub(crate) fn holders(inode: u32) -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // Its start is read first: should the number be another's later, that shows.
        if let Some(process) = process::stat(pid)
            && holds(pid, inode)?
        {
            found.push(process);
        }
    }
    Ok(found)
}

/// Whether a process holds a socket now.
///
/// # Errors
/// If the system is short of descriptors or memory.
pub(crate) fn holds(pid: u32, inode: u32) -> io::Result<bool> {
    let name = format!("socket:[{inode}]");
    let open = match std::fs::read_dir(format!("/proc/{pid}/fd")) {
        Err(error) if is_shortage(&error) => return Err(error),
        // Another user's, or gone.
        Err(_) => return Ok(false),
        Ok(open) => open,
    };
    let is_it =
        |path: &Path| std::fs::read_link(path).is_ok_and(|target| target.as_os_str() == name.as_str());
    Ok(open.flatten().any(|entry| is_it(&entry.path())))
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    /// A listener, a connection to it, and both addresses as the listener has them.
    fn connected(host: &str) -> Option<(TcpStream, TcpStream, SocketAddr, SocketAddr)> {
        let listener = TcpListener::bind(host).ok()?;
        let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (here, theirs) = listener.accept().unwrap();
        let ours = here.local_addr().unwrap();
        Some((here, there, ours, theirs))
    }

    #[test]
    fn p11_a_peer_is_found_by_both_addresses() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Some((_here, there, ours, theirs)) = connected(host) else { continue };
            let found = find(ours, theirs).unwrap().unwrap();
            assert!(found.is_kin(), "{host}");
            let link = std::fs::read_link(format!("/proc/self/fd/{}", there.as_raw_fd())).unwrap();
            assert_eq!(link.to_str().unwrap(), format!("socket:[{}]", found.inode));
            let holders = holders(found.inode).unwrap();
            assert!(holders.iter().any(|process| process.pid == std::process::id()), "{host}: {holders:?}");
            assert!(!holds(std::process::id(), u32::MAX).unwrap());
            let other = SocketAddr::new(theirs.ip(), theirs.port() ^ 1);
            assert_eq!(find(ours, other).unwrap(), None, "{host}");
            there.shutdown(Shutdown::Write).unwrap();
            assert_eq!(find(ours, theirs).unwrap(), Some(found), "one that still reads");
        }
    }

    #[test]
    fn p11_a_closed_socket_belongs_to_nobody() {
        let (here, there, ours, theirs) = connected("127.0.0.1:0").unwrap();
        drop(there);
        assert_eq!(find(ours, theirs).unwrap(), None, "waiting for our end");
        drop(here);
        assert_eq!(find(ours, theirs).unwrap(), None, "closed by both");
    }

    #[test]
    fn p11_a_listener_at_the_address_is_not_the_peer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let nobody = "127.0.0.1:9".parse().unwrap();
        assert_eq!(find(nobody, listener.local_addr().unwrap()).unwrap(), None);
    }

    #[test]
    fn p11_only_another_address_than_those_of_this_machine_is_elsewhere() {
        let at = |text: &str| -> SocketAddr { text.parse().unwrap() };
        for (ours, theirs, elsewhere) in [
            ("127.0.0.1:80", "127.0.0.1:9", false),
            ("127.0.0.1:80", "192.0.2.77:9", false),
            ("[::ffff:127.0.0.1]:80", "192.0.2.77:9", false),
            ("192.0.2.1:80", "[::1]:9", false),
            ("192.0.2.1:80", "192.0.2.77:9", true),
        ] {
            assert_eq!(may_be_elsewhere(at(ours), at(theirs)), elsewhere, "{ours} {theirs}");
        }
    }

    #[test]
    fn an_answer_that_makes_no_sense_is_an_error() {
        assert!(read(&[]).is_err() && read(&[0; 20]).is_err());
        let error = |number: i32| {
            let mut answer = vec![0; 20];
            answer[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
            answer[16..20].copy_from_slice(&(-number).to_ne_bytes());
            read(&answer)
        };
        assert_eq!(error(ENOENT).unwrap(), None);
        assert_eq!(error(1).unwrap_err().raw_os_error(), Some(1));
    }
}
