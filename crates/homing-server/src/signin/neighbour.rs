//! Whose program is at the other end of a connection on this machine, and which processes hold it: the kernel keeps a list of sockets with
//! their users and inodes, and shows each process's descriptors by inode.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use homing_shim::process::{self, Process};

use crate::connection::is_shortage;

/// Where the list is.
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// A socket on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub(crate) uid: u32,
    /// 0 if no process holds it any more.
    pub(crate) inode: u64,
}

/// The connected sockets of this network namespace, by both addresses.
#[derive(Debug, Default)]
pub(crate) struct Sockets(HashMap<(String, String), Neighbour>);

impl Sockets {
    /// All that there are now.
    pub(crate) fn read() -> Self {
        let mut found = Self::default();
        for list in LISTS {
            found.add(&std::fs::read_to_string(Path::new(list)).unwrap_or_default());
        }
        found
    }

    fn add(&mut self, list: &str) {
        for line in list.lines().skip(1) {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (Some(from), Some(to)) = (fields.next(), fields.next()) else { continue };
            let uid = fields.nth(4).and_then(|text| text.parse().ok());
            let inode = fields.nth(1).and_then(|text| text.parse().ok());
            if let (Some(uid), Some(inode)) = (uid, inode) {
                self.0.insert((from.to_owned(), to.to_owned()), Neighbour { uid, inode });
            }
        }
    }

    /// The socket at `theirs` that is connected to `ours`; none if it is on another machine.
    pub(crate) fn find(&self, ours: SocketAddr, theirs: SocketAddr) -> Option<Neighbour> {
        let names = |at: SocketAddr| [spelled(at), spelled(mapped(at))];
        let remotes = names(ours);
        let pairs =
            names(theirs).into_iter().flat_map(|local| remotes.clone().map(|remote| (local.clone(), remote)));
        pairs.into_iter().find_map(|pair| self.0.get(&pair).copied())
    }

    /// Whether the socket at `theirs` belongs to the user that we run as.
    pub(crate) fn is_kin(&self, ours: SocketAddr, theirs: SocketAddr) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.find(ours, theirs).is_some_and(|found| found.uid == own)
    }
}

/// Whether the socket at `theirs`, connected to `ours`, belongs to the user that we run as. Somebody on another machine belongs to nobody here.
pub(crate) fn is_kin(ours: SocketAddr, theirs: SocketAddr) -> bool {
    Sockets::read().is_kin(ours, theirs)
}

/// The processes that hold a socket, of those whose descriptors we may see.
///
/// # Errors
/// If the system is short of descriptors or memory.
pub(crate) fn holders(inode: u64) -> io::Result<Vec<Process>> {
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
pub(crate) fn holds(pid: u32, inode: u64) -> io::Result<bool> {
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
            let found = Sockets::read().find(ours, theirs).unwrap();
            let holders = holders(found.inode).unwrap();
            assert!(holders.iter().any(|process| process.pid == std::process::id()), "{host}: {holders:?}");
            assert!(!holds(std::process::id(), u64::MAX).unwrap());
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
        let mut sockets = Sockets::default();
        sockets.add(list);
        let find = |ours: &str, theirs: &str| sockets.find(at(ours), at(theirs));
        assert_eq!(find("127.0.0.1:8080", "127.0.0.1:49153"), Some(Neighbour { uid: 65534, inode: 2 }));
        assert_eq!(find("127.0.0.1:8080", "127.0.0.1:49154"), None);
        assert_eq!(find("127.0.0.1:49153", "127.0.0.1:8080"), None, "not the other way round");
        assert_eq!(spelled(mapped(at("127.0.0.1:80"))), "0000000000000000FFFF00000100007F:0050");
    }
}
