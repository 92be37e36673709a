//! Input that was given to this process and that nobody takes: said, and never read.
//!
//! `while read -r x; do homing run …; done < list` gives every `homing` the loop's own input, which is not meant for it and must not be consumed.
//! So nothing is read here, and nothing is said of what the process above has on its input as well.

use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{FileType, SeekFrom};

/// Whether there are bytes on this input, and it was made for this process alone: what a shell makes of `|` and `<`. Where that cannot be told
/// without reading, there are none.
pub(crate) fn is_there(input: BorrowedFd<'_>) -> bool {
    is_waiting(input) && is_own(input)
}

/// Bytes in a pipe, or beyond the place in a file.
fn is_waiting(input: BorrowedFd<'_>) -> bool {
    let Ok(found) = rustix::fs::fstat(input) else { return false };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Fifo => rustix::io::ioctl_fionread(input).is_ok_and(|bytes| bytes > 0),
        FileType::RegularFile => {
            let place = rustix::fs::seek(input, SeekFrom::Current(0)).ok();
            place.zip(u64::try_from(found.st_size).ok()).is_some_and(|(place, size)| place < size)
        }
        _ => false,
    }
}

/// Whether the process above has another input. Where it cannot be asked, it may have the same.
fn is_own(input: BorrowedFd<'_>) -> bool {
    let Some(above) = rustix::process::getppid() else { return false };
    let theirs = std::fs::metadata(format!("/proc/{}/fd/0", above.as_raw_nonzero()));
    match (rustix::fs::fstat(input), theirs) {
        (Ok(ours), Ok(theirs)) => (ours.st_dev, ours.st_ino) != (theirs.dev(), theirs.ino()),
        // Its input is closed.
        (Ok(_), Err(error)) => error.kind() == std::io::ErrorKind::NotFound,
        (Err(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn bytes_that_wait_are_seen_and_stay() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        assert!(!is_waiting(reader.as_fd()), "nothing yet, and nobody waits for it");
        writer.write_all(b"data").unwrap();
        drop(writer);
        assert!(is_waiting(reader.as_fd()) && is_there(reader.as_fd()));
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "data");
        assert!(!is_waiting(reader.as_fd()));
    }

    #[test]
    fn a_file_has_something_until_it_was_read_to_its_end() {
        let mut file = tempfile::tempfile().unwrap();
        assert!(!is_waiting(file.as_fd()));
        file.write_all(b"data").unwrap();
        assert!(!is_waiting(file.as_fd()));
        file.rewind().unwrap();
        assert!(is_waiting(file.as_fd()) && is_there(file.as_fd()));
        assert_eq!(file.stream_position().unwrap(), 0);
        for nothing in ["/dev/null", "/dev/zero", "/"] {
            assert!(!is_waiting(File::open(nothing).unwrap().as_fd()), "{nothing}");
        }
    }
}
