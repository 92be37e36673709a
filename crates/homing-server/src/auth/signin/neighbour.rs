//! The processes that hold a TCP socket of this machine, and where a connection may come from.
//! Keeps P11.
//!
//! Only a connection that came in at an address beyond loopback can come from another machine. A
//! program of this machine may connect from any of its addresses.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

use homing_sys::process::{self, Process};
pub(crate) use homing_sys::tcp_owner::{Neighbour, find};

use crate::net::connection::is_shortage;

/// Whether a connection between these addresses may come from another machine.
pub(crate) fn may_be_elsewhere(ours: SocketAddr, theirs: SocketAddr) -> bool {
    let (ours, theirs) = (ours.ip().to_canonical(), theirs.ip().to_canonical());
    // Only an address of this machine can be bound.
    !ours.is_loopback() && !theirs.is_loopback() && UdpSocket::bind((theirs, 0)).is_err()
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
    use super::*;

    #[test]
    fn p11_the_holders_of_a_socket_are_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let there = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (here, theirs) = listener.accept().unwrap();
        let found = find(here.local_addr().unwrap(), theirs).unwrap().unwrap();
        let holders = holders(found.inode).unwrap();
        assert!(holders.iter().any(|process| process.pid == std::process::id()), "{holders:?}");
        assert!(!holds(std::process::id(), u32::MAX).unwrap());
        drop(there);
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
}
