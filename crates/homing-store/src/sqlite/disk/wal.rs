//! How long the write-ahead log may become before it is copied into the database.
//!
//! On a roomy disk copying back is put off for the sake of speed; on a small one the log would take the room of what it logs. What SQLite
//! does by itself at a number of pages ignores errors, and on a full disk it needs some of the [reserve](super::reserve), so the writer
//! does it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;

use crate::sqlite::threads::failure;
use crate::store::Error;

/// The log takes at most this part of the filesystem, within the bounds below.
const SHARE: u64 = 32;
const SHORTEST: u64 = 512 << 10;
const LONGEST: u64 = 16 << 20;

/// A log that once grew is cut back to this when it starts over.
const KEPT: u64 = 8 << 20;

/// What the header of a frame adds is left out: a hundredth.
const PAGE: u64 = 4096;

/// How to copy the log back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum CopyBack {
    /// As far as no reader is in the way.
    Passive,
    /// Waits for readers for a moment, so that the log is certain to start over.
    Restart,
}

/// The log of one database, as its writer sees it.
#[derive(Debug)]
pub(in crate::sqlite) struct Log {
    /// Frames after the last commit.
    used: Arc<AtomicU32>,
    /// Frames that it may have.
    limit: u32,
    /// Frames at which it is copied back next.
    next: u32,
}

impl Log {
    /// Follows the commits of the connection that writes.
    pub(in crate::sqlite) fn follow(conn: &mut Connection, folder: &Path) -> Result<Self, Error> {
        let bytes = limit(folder)?;
        conn.pragma_update(None, "journal_size_limit", bytes.min(KEPT).cast_signed())?;
        let used = Arc::new(AtomicU32::new(0));
        let frames = Arc::clone(&used);
        // It takes the place of SQLite's own.
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            frames.store(u32::try_from(pages).unwrap_or_default(), Ordering::Relaxed);
            Ok(())
        }))?;
        let limit = u32::try_from(bytes / PAGE).unwrap_or(u32::MAX);
        Ok(Self { used, limit, next: limit })
    }

    /// The length, in bytes, that it is kept below.
    pub(in crate::sqlite) fn bytes(&self) -> u64 {
        u64::from(self.limit) * PAGE
    }

    /// Whether it is to be copied back now. The next time is some way on: what is in the way of it may be for a while.
    pub(in crate::sqlite) fn due(&mut self) -> Option<CopyBack> {
        let used = self.used.load(Ordering::Relaxed);
        if used < self.limit {
            self.next = self.limit;
        }
        if used < self.next {
            return None;
        }
        self.next = used.saturating_add(self.limit / 4);
        Some(if used > self.limit { CopyBack::Restart } else { CopyBack::Passive })
    }
}

/// By the size of the filesystem.
fn limit(folder: &Path) -> Result<u64, Error> {
    let disk = rustix::fs::statvfs(folder)
        .map_err(|errno| failure::io(&folder.display().to_string(), &errno.into()))?;
    Ok((disk.f_blocks.saturating_mul(disk.f_frsize) / SHARE).clamp(SHORTEST, LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_at_its_limit_and_again_some_way_on() {
        let used = Arc::new(AtomicU32::new(0));
        let mut log = Log { used: Arc::clone(&used), limit: 100, next: 100 };
        let mut due = |frames| {
            used.store(frames, Ordering::Relaxed);
            log.due()
        };
        assert_eq!(due(99), None);
        assert_eq!(due(100), Some(CopyBack::Passive));
        assert_eq!(due(124), None);
        assert_eq!(due(125), Some(CopyBack::Restart));
        assert_eq!(due(3), None);
        assert_eq!(due(140), Some(CopyBack::Restart));
    }
}
