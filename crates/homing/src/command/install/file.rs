//! The files of an agent: read whole, replaced in one step.
//!
//! A link is followed, and stays. A crash leaves the old file or the new one; the backup is there before the new one is. It may also leave a
//! draft that never came to its place, which holds what the file holds: whoever writes or removes that file next takes it away.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use homing_shim::process;
use rustix::fs::OFlags;

/// A configuration that is larger is none.
const MOST: u64 = 64 << 20;
/// New files of a user are nobody else's.
const PRIVATE: u32 = 0o600;

/// Reads a file; `None` if there is none.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    // Not waiting for a writer: what has the name of a file need not be one.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let mut file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => return Ok(None),
        Err(error) => return Err(error),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if meta.len() > MOST {
        return Err(io::Error::other("it is too large"));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Puts a text in the place of a file, in one step; the mode stays, and so does a link.
pub(super) fn write(path: &Path, text: &str, shared: bool) -> io::Result<()> {
    let place = if path.is_symlink() { fs::canonicalize(path)? } else { path.to_owned() };
    let folder = place.parent().unwrap_or_else(|| Path::new("/"));
    fs::create_dir_all(folder)?;
    let mode = fs::metadata(&place).map(|meta| meta.permissions().mode() & 0o7777).ok();
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    sweep(&place);
    let temporary = folder.join(format!("{}{}", draft(&name), std::process::id()));
    let written = (|| {
        let first = if shared { 0o666 } else { PRIVATE };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(first).open(&temporary)?;
        if let Some(mode) = mode {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &place)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    File::open(folder)?.sync_all()
}

/// How the drafts of a file begin; the process that makes one follows.
fn draft(name: &str) -> String {
    format!(".{name}.homing-")
}

/// Removes drafts whose makers were killed.
fn sweep(place: &Path) {
    let start = draft(&place.file_name().unwrap_or_default().to_string_lossy());
    for entry in place.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(&start)?.parse::<u32>().ok());
        if maker.is_some_and(|pid| process::stat(pid).is_none()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes a file, and folders above it that are empty then: as many as these.
pub(super) fn remove(path: &Path, folders: usize) -> io::Result<()> {
    sweep(path);
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
    fn a_draft_whose_maker_was_killed_goes_with_the_next_change_and_no_other_does() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let live = format!(".x.homing-{}", std::process::id());
        let kept = [".x.homing-backup", ".xy.homing-4200000", &live];
        let all = [&kept[..], &[".x.homing-4200000", ".x.homing-4200001"]].concat();
        let change: [fn(&Path); 2] =
            [|path| write(path, "new", false).unwrap(), |path| remove(path, 0).unwrap()];
        for change in change {
            all.iter().for_each(|name| fs::write(at(name), "draft").unwrap());
            fs::remove_file(at(&live)).unwrap();
            change(&at("x"));
            assert!(!at(".x.homing-4200000").exists() && !at(".x.homing-4200001").exists());
            assert!(kept[..2].iter().all(|name| at(name).exists()));
        }
        fs::write(at(&live), "draft").unwrap();
        remove(&at("x"), 0).unwrap();
        assert!(at(&live).exists(), "its maker lives");
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
