//! A file that is replaced in one step: a draft is written beside it and takes its place.
//!
//! A crash leaves the old file or the new one, and perhaps a draft that never came to its place, which holds no more than the file does: whoever
//! writes or removes that file next takes it away. A draft is made anew or not at all, so that no link under its name is ever followed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use homing_shim::process;

/// Nobody writes a draft for so long: whoever has its maker's number now is somebody else.
const OLD: Duration = Duration::from_secs(3_600);

/// Puts bytes in the place of a file; its mode stays, and a new one has this. Durable when it returns. What is a link is replaced itself.
pub(crate) fn replace(place: &Path, bytes: &[u8], first: u32) -> io::Result<()> {
    let folder = place.parent().unwrap_or_else(|| Path::new("/"));
    let mode = fs::symlink_metadata(place).ok().filter(fs::Metadata::is_file);
    let mode = mode.map(|meta| meta.permissions().mode() & 0o7777);
    sweep(place);
    let draft = folder.join(format!("{}{}", start(place), std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(first).open(&draft)?;
        if let Some(mode) = mode {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, place)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written?;
    File::open(folder)?.sync_all()
}

/// How the drafts of a file begin; the process that makes one follows.
fn start(place: &Path) -> String {
    format!(".{}.homing-", place.file_name().unwrap_or_default().to_string_lossy())
}

/// Removes drafts whose makers are gone. One that has our own number is of somebody before us: in a container the numbers come again.
pub(crate) fn sweep(place: &Path) {
    let start = start(place);
    for entry in place.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(&start)?.parse::<u32>().ok());
        let Some(maker) = maker else { continue };
        let written = entry.metadata().and_then(|meta| meta.modified()).ok();
        let old = written.and_then(|written| written.elapsed().ok()).is_some_and(|age| age > OLD);
        if maker == std::process::id() || old || process::stat(maker).is_none() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_whose_maker_is_gone_goes_with_the_next_change_and_no_other_does() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let live = format!(".x.homing-{}", std::os::unix::process::parent_id());
        let own = format!(".x.homing-{}", std::process::id());
        let kept = [".x.homing-backup", ".xy.homing-4200000", &live];
        let gone = [".x.homing-4200000", ".x.homing-4200001", &own];
        for change in [|path: &Path| replace(path, b"new", 0o600).unwrap(), sweep] {
            kept.iter().chain(&gone).for_each(|name| fs::write(at(name), "draft").unwrap());
            change(&at("x"));
            assert!(gone.iter().all(|name| !at(name).exists()));
            assert!(kept.iter().all(|name| at(name).exists()));
        }
        assert_eq!(fs::read_to_string(at("x")).unwrap(), "new", "also where our number was another's before");
        let made = fs::metadata(at(&live)).unwrap().modified().unwrap();
        File::options().write(true).open(at(&live)).unwrap().set_modified(made - 2 * OLD).unwrap();
        sweep(&at("x"));
        assert!(!at(&live).exists(), "its maker's number is another's by now");
    }

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("theirs"), "theirs").unwrap();
        for link in ["x".to_owned(), format!(".x.homing-{}", std::process::id())] {
            std::os::unix::fs::symlink("theirs", at(&link)).unwrap();
            replace(&at("x"), b"new", 0o600).unwrap();
            assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "theirs");
            assert!(!at("x").is_symlink());
            assert_eq!(fs::metadata(at("x")).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
        }
    }
}
