//! Files that are written as a whole: a draft beside the file, synced, takes its place.
//!
//! A crash leaves the old file or the new one, and perhaps a draft, which the next write to that file
//! removes. A draft holds no more than the file does. It must be new, so that no link is followed.

use std::fs::{self, DirEntry, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use crate::process;

/// No draft is being written for so long: its thread's number is another one's by now.
const MAX_DRAFT_AGE: Duration = Duration::from_secs(3_600);

/// Replaces a file, or creates it, with this mode. A link is replaced itself. Durable when it returns.
///
/// # Errors
/// If it cannot be written; then the file is as it was before.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    put(path, bytes, mode, None, |draft| fs::rename(draft, path))
}

/// Replaces a file but for its mode, or creates it with this one. Durable when it returns.
///
/// # Errors
/// As of [`replace`].
pub fn replace_content(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file);
    let kept = found.map(|found| Permissions::from_mode(found.permissions().mode() & 0o7777));
    put(path, bytes, mode, kept, |draft| fs::rename(draft, path))
}

/// Creates a file with this mode. Of several processes at once, one succeeds. Durable when it returns.
///
/// # Errors
/// `AlreadyExists` if the file does, or another error if it cannot be written.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    put(path, bytes, mode, None, |draft| fs::hard_link(draft, path))
}

fn put(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    kept: Option<Permissions>,
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    remove_drafts(path);
    // Of this thread alone: several may write the same file at once.
    let draft = folder.join(format!("{}{}", draft_prefix(path), own_number()));
    let placed = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
        if let Some(kept) = kept {
            file.set_permissions(kept)?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        place(&draft)
    })();
    // A rename took it away, a link and a failure did not.
    let _ = fs::remove_file(&draft);
    placed?;
    File::open(folder)?.sync_all()
}

/// Removes the drafts of a file that crashes have left.
pub fn remove_drafts(path: &Path) {
    let prefix = draft_prefix(path);
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let writer = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse().ok());
        if writer.is_some_and(|writer| is_abandoned(writer, &entry)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn draft_prefix(path: &Path) -> String {
    format!(".{}.homing-", path.file_name().unwrap_or_default().to_string_lossy())
}

fn own_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// One with our own number was left by another thread before us: in a container the numbers repeat.
fn is_abandoned(writer: u32, entry: &DirEntry) -> bool {
    let written = entry.metadata().and_then(|found| found.modified()).ok();
    let age = written.and_then(|written| written.elapsed().ok());
    writer == own_number() || age.is_some_and(|age| age > MAX_DRAFT_AGE) || process::stat(writer).is_none()
}

/// Removes a name, if it is there.
///
/// # Errors
/// If it is there and cannot be removed.
pub fn remove_at(folder: impl std::os::fd::AsFd, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, rustix::fs::AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn abandoned_drafts_go_with_the_next_write_and_no_other_does() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let live = format!(".x.homing-{}", std::os::unix::process::parent_id());
        let own = format!(".x.homing-{}", own_number());
        let kept = [".x.homing-backup", ".xy.homing-4200000", &live];
        let gone = [".x.homing-4200000", ".x.homing-4200001", &own];
        for change in [|path: &Path| replace(path, b"new", 0o600).unwrap(), remove_drafts] {
            kept.iter().chain(&gone).for_each(|name| fs::write(at(name), "draft").unwrap());
            change(&at("x"));
            assert!(gone.iter().all(|name| !at(name).exists()));
            assert!(kept.iter().all(|name| at(name).exists()));
        }
        assert_eq!(fs::read_to_string(at("x")).unwrap(), "new", "also where our number was used before");
        let made = fs::metadata(at(&live)).unwrap().modified().unwrap();
        File::options().write(true).open(at(&live)).unwrap().set_modified(made - 2 * MAX_DRAFT_AGE).unwrap();
        remove_drafts(&at("x"));
        assert!(!at(&live).exists(), "its writer's number is another's by now");
    }

    #[test]
    fn no_link_is_followed_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("theirs"), "theirs").unwrap();
        for link in ["x".to_owned(), format!(".x.homing-{}", own_number())] {
            symlink("theirs", at(&link)).unwrap();
            replace_content(&at("x"), b"new", 0o600).unwrap();
            assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "theirs");
            assert!(!at("x").is_symlink());
            assert_eq!((mode(&at("x")), names(folder.path()).len()), (0o600, 2));
        }
    }

    #[test]
    fn the_mode_is_the_given_one_or_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        replace_content(&path, b"a", 0o600).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace_content(&path, b"b", 0o600).unwrap();
        assert_eq!(mode(&path), 0o640);
        replace(&path, b"c", 0o600).unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"c".to_vec()));
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"new", 0o600).is_err());
        assert_eq!(names(folder.path()), ["x"]);
        assert_eq!(create(&path, b"new", 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(names(folder.path()), ["x"]);
    }

    #[test]
    fn concurrent_writers_leave_one_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let contents: [&[u8]; 2] = [b"short", b"quite a bit longer"];
        let created: usize = std::thread::scope(|scope| {
            let writer = |number: usize| {
                let path = &path;
                scope.spawn(move || {
                    let created = create(path, contents[0], 0o600).is_ok();
                    for round in 0..25 {
                        replace(path, contents[(number + round) % 2], 0o600).unwrap();
                        assert!(contents.contains(&fs::read(path).unwrap().as_slice()));
                    }
                    usize::from(created)
                })
            };
            let writers: Vec<_> = (0..8).map(writer).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        assert_eq!((created, names(folder.path())), (1, vec!["x".to_owned()]));
    }
}
