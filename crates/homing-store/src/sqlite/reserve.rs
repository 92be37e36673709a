//! Room for what must still be written on a full disk: ends, and the forgetting that makes room.
//!
//! A file of zeros beside the database, given up piece by piece when a write that must go through finds the disk full, and taken again when
//! there is room. Pieces, because whatever else writes to that disk takes from the room that was made.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::inspect;

/// All of it: the ends of some hundred tasks.
pub const WHOLE: u64 = 1 << 20;
/// Given up at a time: a few commits.
const PIECE: u64 = 32 << 10;

/// The reserve of one database.
#[derive(Debug)]
pub(super) struct Reserve {
    /// None where there was no room even for the file's name.
    file: Option<File>,
    held: u64,
}

impl Reserve {
    /// Takes it, as far as there is room.
    pub(super) fn open(database: &Path) -> Self {
        let path = inspect::beside(database, ".reserve");
        let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(path).ok();
        let held = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |found| found.len());
        let mut reserve = Self { file, held };
        reserve.refill();
        reserve
    }

    /// Makes some room; false if there is none left to make.
    pub(super) fn give_up_a_piece(&mut self) -> bool {
        let left = self.held.saturating_sub(PIECE);
        let given = self.held > 0 && self.file.as_ref().is_some_and(|file| file.set_len(left).is_ok());
        if given {
            self.held = left;
        }
        given
    }

    /// Takes again what was given up, if there is room for all of it.
    pub(super) fn refill(&mut self) {
        let Some(file) = self.file.as_ref().filter(|_| self.held < WHOLE) else { return };
        let taken = match fallocate(file, FallocateFlags::empty(), 0, WHOLE) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.write_all_at(&vec![0; WHOLE as usize], 0).is_ok(),
            taken => taken.is_ok(),
        };
        if taken {
            self.held = WHOLE;
        } else {
            // Whatever of it was taken is given back: somebody else may need just that.
            let _ = file.set_len(self.held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_up_in_pieces_and_taken_again() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("homing.db");
        let mut reserve = Reserve::open(&database);
        let length = || std::fs::metadata(folder.path().join("homing.db.reserve")).unwrap().len();
        assert_eq!(length(), WHOLE);
        assert!(reserve.give_up_a_piece() && reserve.give_up_a_piece());
        assert_eq!(length(), WHOLE - 2 * PIECE);
        reserve.refill();
        assert_eq!(length(), WHOLE);
        while reserve.give_up_a_piece() {}
        assert_eq!(length(), 0);
        assert_eq!(Reserve::open(&database).held, WHOLE, "what an earlier daemon gave up is taken again");
    }
}
