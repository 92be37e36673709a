//! Which user a TCP socket of this machine belongs to. Keeps P11.
//!
//! The kernel is asked for one socket by its addresses (`sock_diag`), which takes as long whatever
//! else is connected; so it can be done for every connection. A socket that its process has closed
//! has no inode any more, whatever user the kernel names for it then: it belongs to nobody. Neither
//! has one that no process has accepted yet: it belongs to the listener.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use rustix::net::{recv, send, socket_with};

/// A socket that a process of this machine holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Its user.
    pub uid: u32,
    /// What its descriptors are known by.
    pub inode: u32,
}

impl Neighbour {
    /// Whether it belongs to the user that we run as.
    #[must_use]
    pub fn is_kin(self) -> bool {
        self.uid == rustix::process::geteuid().as_raw()
    }
}

/// The socket at `theirs` that is connected to `ours`; none if its process has closed it, or is on
/// another machine or in another network namespace.
///
/// # Errors
/// If the system is short of descriptors or memory, or cannot say.
pub fn find(ours: SocketAddr, theirs: SocketAddr) -> io::Result<Option<Neighbour>> {
    let found = ask(theirs, ours)?;
    // Where no connection has these addresses, the kernel answers with who listens at the first.
    Ok(found.filter(|(_, listens)| !listens).map(|(socket, _)| socket))
}

/// Requires that no other user than root or our own is at the other end of a new connection to
/// `theirs`, an address of this machine. Nothing secret may be sent before: any user can listen at
/// a port that our daemon, or an agent, has left.
///
/// # Errors
/// If another user is there, or the system cannot say.
pub fn require_own(ours: SocketAddr, theirs: SocketAddr) -> io::Result<()> {
    if !theirs.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let nowhere: IpAddr = match canonical(theirs) {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // The listener comes first. If it is gone by now, it has accepted the connection before, and the
    // second question finds that.
    let listener = ask(theirs, SocketAddr::new(nowhere, 0))?.map(|(socket, _)| socket);
    let accepted = find(ours, theirs)?;
    let foreign = |socket: &Neighbour| socket.uid != 0 && !socket.is_kin();
    match listener.into_iter().chain(accepted).find(foreign) {
        None => Ok(()),
        Some(Neighbour { uid, .. }) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("user {uid} listens there; nothing was sent"),
        )),
    }
}

/// The socket at `at` that is connected to `to`, or that listens there, and whether it listens.
fn ask(at: SocketAddr, to: SocketAddr) -> io::Result<Option<(Neighbour, bool)>> {
    let diag =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    send(&diag, &request(at, to), SendFlags::empty())?;
    let mut answer = [0; 1024];
    // Complete before `send` has returned.
    let (_, length) = recv(&diag, &mut answer, RecvFlags::DONTWAIT)?;
    read(answer.get(..length).unwrap_or_default())
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

fn read(answer: &[u8]) -> io::Result<Option<(Neighbour, bool)>> {
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
    let listens = answer.get(STATE).copied().ok_or_else(short)? == TCP_LISTEN;
    Ok((inode != 0).then_some((Neighbour { uid, inode }, listens)))
}

/// An IPv4 address as such, also where a socket of IPv6 has it.
fn canonical(at: SocketAddr) -> SocketAddr {
    SocketAddr::new(at.ip().to_canonical(), at.port())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

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
    fn p11_only_a_listener_of_our_own_is_spoken_to() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else { continue };
            let there = listener.local_addr().unwrap();
            let stream = TcpStream::connect(there).unwrap();
            let here = stream.local_addr().unwrap();
            require_own(here, there).expect("not accepted yet");
            let accepted = listener.accept().unwrap();
            require_own(here, there).expect("accepted");
            drop(listener);
            require_own(here, there).expect("it no longer listens");
            drop(accepted);
        }
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root can become another user");
            return;
        }
        const LISTENER: &str = "import socket, sys\ns = socket.create_server(('127.0.0.1', 0))\n\
             print(s.getsockname()[1], flush=True)\nsys.stdin.readline()\n\
             c, _ = s.accept()\ns.close()\nprint('accepted', flush=True)\nsys.stdin.readline()\n";
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c", LISTENER]);
        let other =
            other.env("PATH", "/usr/bin:/bin").current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut other = other.spawn().unwrap();
        let mut said = BufReader::new(other.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let there = SocketAddr::from((Ipv4Addr::LOCALHOST, line.trim().parse().unwrap()));
        let stream = TcpStream::connect(there).unwrap();
        let here = stream.local_addr().unwrap();
        let refused = require_own(here, there).unwrap_err();
        assert!(refused.to_string().contains("user 65534"), "{refused}");
        let mut stdin = other.stdin.take().unwrap();
        stdin.write_all(b"\n").unwrap();
        said.read_line(&mut line).unwrap();
        assert!(require_own(here, there).is_err(), "it has accepted, and listens no more");
        drop(stdin);
        other.wait().unwrap();
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
