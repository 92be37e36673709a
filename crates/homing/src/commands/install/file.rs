//! The files of an agent: read whole, replaced in one step ([`atomic_file`]).
//!
//! A link is followed, and stays. A crash leaves the old file or the new one; the backup is there before the new one is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use homing_sys::{atomic_file, plain};

/// A configuration that is larger is none.
const MOST: u64 = 64 << 20;
/// New files of a user are nobody else's.
const PRIVATE: u32 = 0o600;

/// Reads a file; `None` if there is none.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    let bytes = match plain::small(path, MOST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => return Ok(None),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// Where a file is: what a link leads to.
fn place(path: &Path) -> io::Result<PathBuf> {
    if path.is_symlink() { fs::canonicalize(path) } else { Ok(path.to_owned()) }
}

/// Puts a text in the place of a file, in one step; the mode stays, and so does a link.
pub(super) fn write(path: &Path, text: &str, shared: bool) -> io::Result<()> {
    let place = place(path)?;
    fs::create_dir_all(place.parent().unwrap_or_else(|| Path::new("/")))?;
    atomic_file::replace_content(&place, text.as_bytes(), if shared { 0o666 } else { PRIVATE })
}

/// Removes a file, and folders above it that are empty then: as many as these.
pub(super) fn remove(path: &Path, folders: usize) -> io::Result<()> {
    // Drafts are beside what a link leads to.
    if let Ok(place) = place(path) {
        atomic_file::remove_drafts(&place);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for folder in path.ancestors().skip(1).take(folders) {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}

/// How many of the folders above a file are missing.
pub(super) fn missing_folders(path: &Path) -> usize {
    path.ancestors().skip(1).take_while(|folder| !folder.exists()).count()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_link_and_a_mode_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        write(&link, "new", false).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn a_draft_beside_what_a_link_leads_to_goes_with_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let draft = elsewhere.join(".real.homing-4200000");
        let link = folder.path().join("link");
        fs::write(elsewhere.join("real"), "text").unwrap();
        fs::write(&draft, "draft").unwrap();
        std::os::unix::fs::symlink("elsewhere/real", &link).unwrap();
        remove(&link, 0).unwrap();
        assert!(!draft.exists() && !link.is_symlink());
        assert!(elsewhere.join("real").exists(), "what it led to is not ours to remove");
    }

    #[test]
    fn what_is_no_file_of_text_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(read(&pipe).is_err(), "and not waited for");
        assert_eq!(read(&folder.path().join("none")).unwrap(), None);
        assert!(read(folder.path()).is_err());
        fs::write(folder.path().join("bytes"), b"\xff").unwrap();
        assert!(read(&folder.path().join("bytes")).is_err());
        std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).unwrap();
        assert!(read(&folder.path().join("dangling")).is_err());
    }
}
