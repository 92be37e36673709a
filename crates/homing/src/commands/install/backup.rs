//! How a file was before anything of ours was in it, kept until that is taken out again.
//!
//! For the user it lies beside the file, where they find it. For a project it lies in the home, by the file's path: what is in a project's
//! folder gets committed. It says first which file it is of, for whoever has moved that folder. Earlier releases kept it beside the file there
//! too, and without that line, and both are still understood.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use homing_model::digest::sha256;

use super::file::{read, remove, write};

/// The folder in the home.
const FOLDER: &str = "backups";

/// How a file was before anything of ours was in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Before {
    /// It was not there, and so many folders above it neither.
    Absent(usize),
    /// It said this.
    Text(String),
}

/// How a backup in the home says of which file it is, in its first line.
const OF: &str = "homing: how this file was before `homing install`: ";
const ABSENT: &str = "homing: there was no such file; missing folders: ";

/// Where backups are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shelf {
    /// Beside the files.
    Beside,
    /// In this home.
    Home(PathBuf),
}

impl Shelf {
    /// Where that of a file is kept.
    pub(super) fn place(&self, path: &Path) -> PathBuf {
        let name = path.file_name().unwrap_or_default();
        match self {
            Self::Beside => {
                let mut name = name.to_owned();
                name.push(".homing-backup");
                path.with_file_name(name)
            }
            Self::Home(home) => {
                let key = sha256(real(path).as_os_str().as_bytes());
                let key = key.get(..16).unwrap_or(&key);
                home.join(FOLDER).join(format!("{key}-{}", name.to_string_lossy()))
            }
        }
    }

    /// What is kept of a file.
    pub(super) fn load(&self, path: &Path) -> io::Result<Option<Before>> {
        let kept = match (read(&self.place(path))?, self) {
            (None, Self::Home(_)) => read(&Self::Beside.place(path))?,
            (kept, _) => kept,
        };
        let Some(text) = kept else { return Ok(None) };
        let said = text.strip_prefix(OF).and_then(|rest| rest.split_once('\n'));
        let text = said.map(|(_, text)| text.to_owned()).unwrap_or(text);
        let absent = text.strip_prefix(ABSENT).and_then(|count| count.trim().parse().ok());
        Ok(Some(absent.map_or(Before::Text(text), Before::Absent)))
    }

    /// Keeps it, with the mode of the file.
    pub(super) fn keep(&self, before: &Before, path: &Path) -> io::Result<()> {
        let text = match before {
            Before::Absent(folders) => &format!("{ABSENT}{folders}\n"),
            Before::Text(text) => text,
        };
        let mut kept = String::new();
        if let Self::Home(home) = self {
            // On one line, whatever is in the path.
            kept = format!("{OF}{:?}\n", real(path));
            DirBuilder::new().recursive(true).mode(0o700).create(home.join(FOLDER))?;
        }
        let place = self.place(path);
        kept.push_str(text);
        write(&place, &kept, false)?;
        match fs::metadata(path) {
            Ok(meta) => fs::set_permissions(&place, meta.permissions()),
            Err(_) => Ok(()),
        }
    }

    /// Keeps it no longer, wherever it is.
    pub(super) fn forget(&self, path: &Path) -> io::Result<()> {
        if let Self::Home(_) = self {
            remove(&self.place(path), 1)?;
        }
        remove(&Self::Beside.place(path), 0)
    }
}

/// A path without links, also where the end of it is not there yet.
fn real(path: &Path) -> PathBuf {
    for above in path.ancestors().skip(1) {
        if let (Ok(found), Ok(rest)) = (fs::canonicalize(above), path.strip_prefix(above)) {
            return found.join(rest);
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_tells_an_empty_file_from_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").join("b").join("settings.json");
        for shelf in [Shelf::Beside, Shelf::Home(folder.path().join("home"))] {
            for before in [Before::Absent(2), Before::Text(String::new()), Before::Text("{}\n".into())] {
                shelf.keep(&before, &path).unwrap();
                assert_eq!(shelf.load(&path).unwrap(), Some(before));
            }
            shelf.forget(&path).unwrap();
            assert_eq!(shelf.load(&path).unwrap(), None);
        }
        assert!(!folder.path().join("home").join(FOLDER).exists(), "nor is an empty folder left");
    }

    #[test]
    fn a_backup_in_the_home_says_of_which_file_it_is_and_one_of_an_earlier_release_need_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("two\nlines").join(".mcp.json");
        let shelf = Shelf::Home(folder.path().join("home"));
        let before = Before::Text("{}\n".into());
        shelf.keep(&before, &path).unwrap();
        let kept = fs::read_to_string(shelf.place(&path)).unwrap();
        let first = kept.lines().next().unwrap();
        assert!(first.contains(r"two\nlines/.mcp.json"), "{first}");
        for text in ["{}\n".to_owned(), kept] {
            fs::write(shelf.place(&path), text).unwrap();
            assert_eq!(shelf.load(&path).unwrap().as_ref(), Some(&before));
        }
    }

    #[test]
    fn what_an_earlier_release_kept_beside_a_file_is_understood_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".mcp.json");
        let home = Shelf::Home(folder.path().join("home"));
        Shelf::Beside.keep(&Before::Text("{}".into()), &path).unwrap();
        assert_eq!(home.load(&path).unwrap(), Some(Before::Text("{}".into())));
        home.forget(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_is_known_by_its_path_however_one_came_there() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::Home(folder.path().join("home"));
        let project = folder.path().join("project");
        fs::create_dir(&project).unwrap();
        std::os::unix::fs::symlink("project", folder.path().join("link")).unwrap();
        let (real, linked) = (project.join(".x/y.json"), folder.path().join("link/.x/y.json"));
        assert_eq!(shelf.place(&real), shelf.place(&linked));
        assert_ne!(shelf.place(&real), shelf.place(&folder.path().join(".x/y.json")));
        let before = shelf.place(&real);
        fs::create_dir(project.join(".x")).unwrap();
        assert_eq!(shelf.place(&real), before, "also once it is there");
    }
}
