//! Room for what must still be written on a full disk: ends, and the forgetting that makes room.
//!
//! A file of zeros beside the database, given up piece by piece when a write that must go through finds the disk full, and taken again when
//! there is room. Pieces, because whatever else writes to that disk takes from the room that was made.
//!
//! It also covers the growth that the log holds for the database: pages that were committed and have no place in the database file yet.
//! A log whose pages cannot be copied back would itself be what fills the disk.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::sqlite::disk::inspect;

/// The least that it is, besides what the ends of live tasks will need.
pub const WHOLE: u64 = 1 << 20;
/// Given up at a time: a few commits.
const PIECE: u64 = 32 << 10;
/// The part of it that nothing but forgetting may take.
pub(in crate::sqlite) const FOR_FORGETTING: u64 = 256 << 10;
/// By so much at a time it follows the growth of the database, and of what is live.
pub(in crate::sqlite) const STEP: u64 = 256 << 10;

/// Gives up some of what an earlier daemon held, so that a database can be opened; false if there is nothing.
pub(in crate::sqlite) fn make_room(database: &Path) -> bool {
    let Ok(file) = File::options().write(true).open(inspect::beside(database, ".reserve")) else {
        return false;
    };
    let held = file.metadata().map_or(0, |found| found.len());
    held > 0 && file.set_len(held.saturating_sub(4 * PIECE)).is_ok()
}

/// The reserve of one database.
#[derive(Debug)]
pub(in crate::sqlite) struct Reserve {
    path: PathBuf,
    /// None where it could not be opened; that is tried again.
    file: Option<File>,
    held: u64,
    /// What it is to be.
    whole: u64,
}

impl Reserve {
    /// Takes it, as far as there is room.
    pub(in crate::sqlite) fn open(database: &Path) -> Self {
        let mut reserve =
            Self { path: inspect::beside(database, ".reserve"), file: None, held: 0, whole: WHOLE };
        reserve.refill();
        reserve
    }

    fn reopen(&mut self) -> std::io::Result<()> {
        if self.file.is_none() {
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(false).mode(0o600).open(&self.path)?;
            self.held = file.metadata()?.len();
            self.file = Some(file);
        }
        Ok(())
    }

    /// Makes some room; false if there is none left to make beyond what is kept.
    pub(in crate::sqlite) fn give_up_a_piece(&mut self, kept: u64) -> bool {
        let left = self.held.saturating_sub(PIECE);
        let given = self.held > kept && self.file.as_ref().is_some_and(|file| file.set_len(left).is_ok());
        if given {
            self.held = left;
        }
        given
    }

    /// Takes again what was given up, if there is room for all of it.
    pub(in crate::sqlite) fn refill(&mut self) {
        let _ = self.take(self.whole);
    }

    /// The same of what there is room for, if not for all: what a log that is closed leaves free.
    pub(in crate::sqlite) fn refill_in_part(&mut self) {
        let Some(file) = &self.file else { return };
        while self.held < self.whole && fallocate(file, FallocateFlags::empty(), self.held, PIECE).is_ok() {
            self.held += PIECE;
        }
    }

    /// Makes sure that it has what the ends of live tasks will need (`owed`), and that the database can
    /// grow by so many bytes besides; false where the disk has no room for that. What fails for another
    /// reason says nothing of the disk.
    pub(in crate::sqlite) fn cover(&mut self, growth: u64, owed: u64) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        self.whole = WHOLE + owed / STEP * STEP;
        let covered = self.take(self.whole + growth / STEP * STEP);
        !covered.is_err_and(|error| matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }

    fn take(&mut self, wanted: u64) -> std::io::Result<()> {
        self.reopen()?;
        let Some(file) = self.file.as_ref().filter(|_| self.held < wanted) else { return Ok(()) };
        let taken = match fallocate(file, FallocateFlags::empty(), 0, wanted) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let zeros = vec![0; usize::try_from(wanted - self.held).unwrap_or_default()];
                file.write_all_at(&zeros, self.held)
            }
            taken => taken.map_err(Into::into),
        };
        match taken {
            Ok(()) => self.held = wanted,
            // What was taken of it is given back: another write may need just that.
            Err(_) => file.set_len(self.held)?,
        }
        taken
    }

    /// Gives back what covered growth that the database has by now.
    pub(in crate::sqlite) fn uncover(&mut self) {
        if self.held > self.whole && self.file.as_ref().is_some_and(|file| file.set_len(self.whole).is_ok()) {
            self.held = self.whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_cannot_be_had_says_nothing_of_the_disk_and_is_had_later() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("homing.db.reserve");
        std::fs::create_dir(&name).unwrap();
        let mut reserve = Reserve::open(&folder.path().join("homing.db"));
        assert!(reserve.cover(0, 0) && reserve.held == 0);
        std::fs::remove_dir(&name).unwrap();
        assert!(reserve.cover(0, 0) && reserve.held == WHOLE);
    }

    #[test]
    fn it_follows_the_growth_of_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::open(&folder.path().join("homing.db"));
        let length = || std::fs::metadata(folder.path().join("homing.db.reserve")).unwrap().len();
        assert!(reserve.cover(STEP - 1, STEP - 1));
        assert_eq!(length(), WHOLE);
        assert!(reserve.cover(3 * STEP + 1, 0) && reserve.cover(STEP, 0));
        assert_eq!(length(), WHOLE + 3 * STEP);
        reserve.uncover();
        assert_eq!(length(), WHOLE);
        assert!(!reserve.cover(1 << 60, 0), "no disk has that much");
        assert_eq!(length(), WHOLE);
        assert!(reserve.cover(STEP, 2 * STEP));
        reserve.uncover();
        assert_eq!(length(), WHOLE + 2 * STEP, "what is live keeps its part");
        assert!(reserve.give_up_a_piece(0));
        reserve.refill();
        assert_eq!(length(), WHOLE + 2 * STEP);
    }

    #[test]
    fn it_is_given_up_in_pieces_and_taken_again() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("homing.db");
        let mut reserve = Reserve::open(&database);
        let length = || std::fs::metadata(folder.path().join("homing.db.reserve")).unwrap().len();
        assert_eq!(length(), WHOLE);
        assert!(reserve.give_up_a_piece(0) && reserve.give_up_a_piece(0));
        assert_eq!(length(), WHOLE - 2 * PIECE);
        reserve.refill();
        assert_eq!(length(), WHOLE);
        while reserve.give_up_a_piece(FOR_FORGETTING) {}
        assert_eq!(length(), FOR_FORGETTING);
        while reserve.give_up_a_piece(0) {}
        assert_eq!(length(), 0);
        assert_eq!(Reserve::open(&database).held, WHOLE, "what an earlier daemon gave up is taken again");
    }
}
