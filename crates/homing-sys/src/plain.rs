//! Files of others, read by us: plain ones and no others, and never more of one than it may hold.
//!
//! What a caller names, and what lies in the folder of an agent, was put there by anybody who runs as the same user. A pipe under the name of a
//! file would be waited for by a thread of the daemon, for ever; a link to a device has no end.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file to read, if it is a plain one. Never waits for a writer.
///
/// # Errors
/// If it cannot be opened, or is something else.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"))
}

/// All of a small file; nothing if there is more in it.
///
/// # Errors
/// If it cannot be read, is no plain file, or has more in it.
pub fn small(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = open(path)?.take(most + 1).read_to_end(&mut text)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > most {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is too long"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_a_folder_and_a_device_are_not_read_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("plain"), "text").unwrap();
        assert_eq!(small(&path("plain"), 4).unwrap(), b"text");
        assert!(small(&path("plain"), 3).is_err(), "too long");
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("zeros")).unwrap();
        std::os::unix::fs::symlink(path("plain"), path("link")).unwrap();
        for name in ["pipe", "zeros", ".", "none"] {
            assert!(small(&path(name), 4).is_err(), "{name}");
        }
        assert_eq!(small(&path("link"), 4).unwrap(), b"text", "people link what they keep elsewhere");
    }
}
