//! Which filesystems can hold the database.
//!
//! WAL needs locks that work and memory shared between processes; across a network neither can be relied upon, and the damage shows
//! only later. FUSE is let through: what is behind it cannot be told, and much of it is local.

use std::path::Path;

use crate::sqlite::threads::failure;
use crate::store::Error;

/// Refuses folders on a network.
pub(in crate::sqlite) fn check(folder: &Path) -> Result<(), Error> {
    let stat = rustix::fs::statfs(folder)
        .map_err(|errno| failure::io(&folder.display().to_string(), &errno.into()))?;
    // The magic numbers have 32 bits; the field is wider, or signed, on some machines.
    let magic = (stat.f_type as u64 & 0xffff_ffff) as u32;
    match network(magic) {
        None => Ok(()),
        Some(name) => Err(Error::Filesystem {
            path: folder.display().to_string(),
            why: format!(
                "{name} has no locks or shared memory that a database can rely on; choose a home on a local disk"
            ),
        }),
    }
}

/// The name of a network filesystem, by its magic number: a home on one is refused, on any other it is not.
#[must_use]
pub fn network(magic: u32) -> Option<&'static str> {
    match magic {
        0x6969 => Some("NFS"),
        0x517b | 0xfe53_4d42 | 0xff53_4d42 => Some("SMB"),
        0x0102_1997 => Some("9p"),
        0x5346_414f | 0x6b41_4653 => Some("AFS"),
        0x7375_7245 => Some("Coda"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_refused_and_local_disks_are_not() {
        assert_eq!(network(0x6969), Some("NFS"));
        assert_eq!(network(0xff53_4d42), Some("SMB"));
        for local in [0xef53, 0x0102_1994, 0x9123_683e, 0x5846_5342, 0x6573_5546] {
            assert_eq!(network(local), None, "{local:x}");
        }
    }
}
