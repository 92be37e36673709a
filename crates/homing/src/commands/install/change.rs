//! What happens to each file: planned as a whole before anything is written.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use homing_api::{Code, Problem};

use super::backup::{Before, Shelf};
use super::edit::{self, Edit, Whose};
use super::file;
use super::wiring::Wiring;

/// What happens to one file.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    /// What it says now.
    pub(super) from: Option<String>,
    /// What it is to say; nothing if it is to go.
    pub(super) to: Option<String>,
    /// What is to be kept of it first.
    keep: Option<Before>,
    /// Whether that is kept although the file does not change: it shows later whose a server in it is.
    note: bool,
    /// Whether what was kept of it is no longer needed.
    forget: bool,
    /// How many folders above it go with it, if they are empty.
    folders: usize,
    /// A server in it that has our name and calls homing, but is not ours: it stays as it is.
    pub(super) left: Option<String>,
    /// Whether it is known to be, afterwards, what it was before homing wrote into it.
    pub(super) restored: bool,
}

impl Change {
    /// Whether the file itself changes.
    pub(super) fn is_one(&self) -> bool {
        self.from != self.to
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(Code::AgentFiles, format!("{} cannot be read: {error}", path.display()))
}

fn refused(path: &Path, error: &edit::Error) -> Problem {
    let mut problem =
        Problem::new(Code::AgentConfig, format!("{} is left as it is: {error}", path.display()));
    if let edit::Error::Taken(_) = error {
        problem.advice =
            "Nothing was written. Rename what is there, or take it out, then run the command again."
                .to_owned();
    }
    problem
}

/// Makes sure that an edit changes nothing that is not ours, whatever the file looks like.
fn check(edit: &Edit, from: &str, to: &str) -> Result<(), Problem> {
    let path = edit.path();
    if edit.says_the_same(from, to).map_err(|error| refused(path, &error))? {
        return Ok(());
    }
    let detail =
        format!("{} is left as it is: the edit would have changed more than it should", path.display());
    Err(Problem::new(Code::Internal, detail))
}

fn load(shelf: &Shelf, path: &Path) -> Result<Option<Before>, Problem> {
    shelf.load(path).map_err(|error| unreadable(&shelf.place(path), &error))
}

fn text_of(path: &Path) -> Result<Option<String>, Problem> {
    file::read(path).map_err(|error| unreadable(path, &error))
}

/// Whether something of ours is in any of the files that cannot be somebody else's: then `homing install` was here.
fn was_here(wiring: &Wiring) -> Result<bool, Problem> {
    for edit in &wiring.edits {
        if text_of(edit.path())?.is_some_and(|text| edit.is_marked(&text)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn left(edit: &Edit, text: Option<&str>, whose: Whose) -> Option<String> {
    text.filter(|_| whose == Whose::Theirs).and_then(|text| edit.server_in(text))
}

/// Makes sure that each file is where it seems to be, before any of them is written: that none of a project's is reached by a link out of it, and no two
/// are one.
fn check_places(wiring: &Wiring) -> Result<(), Problem> {
    let mut known: HashMap<(u64, u64), &Path> = HashMap::new();
    for path in wiring.edits.iter().map(Edit::path) {
        if let Some(link) = wiring.link_out(path) {
            let detail = format!("{} is a link, and may lead out of the project", link.display());
            let advice = "Nothing was written. Put the file or folder itself in its place, or leave `--project` out: then it holds for you, everywhere.".to_owned();
            return Err(Problem { advice, ..Problem::new(Code::AgentConfig, detail) });
        }
        let Ok(found) = std::fs::metadata(path) else { continue };
        if let Some(other) = known.insert((found.dev(), found.ino()), path) {
            let detail = format!("{} and {} are one file", other.display(), path.display());
            let advice = "Nothing was written. Make them two files, then run the command again.".to_owned();
            return Err(Problem { advice, ..Problem::new(Code::AgentConfig, detail) });
        }
    }
    Ok(())
}

/// What has to happen so that everything is there.
pub(super) fn install(wiring: &Wiring) -> Result<Vec<Change>, Problem> {
    check_places(wiring)?;
    let was_here = was_here(wiring)?;
    wiring.edits.iter().map(|edit| install_one(edit, &wiring.shelf, was_here)).collect()
}

fn install_one(edit: &Edit, shelf: &Shelf, was_here: bool) -> Result<Change, Problem> {
    let path = edit.path();
    let from = text_of(path)?;
    let before = load(shelf, path)?;
    let whose = edit.whose(before.as_ref(), from.as_deref(), was_here);
    let to = edit.put_in(from.as_deref(), whose).map_err(|error| refused(path, &error))?;
    check(edit, from.as_deref().unwrap_or_default(), &to)?;
    let untouched = match &from {
        Some(text) => edit.take_out(text, Some(text), whose).map_err(|error| refused(path, &error))? == *text,
        None => true,
    };
    let keep = match &from {
        _ if !untouched => None,
        Some(text) => Some(Before::Text(text.clone())),
        None => Some(Before::Absent(file::missing_folders(path))),
    };
    let left = left(edit, from.as_deref(), whose);
    Ok(Change {
        path: path.to_owned(),
        from,
        to: Some(to),
        keep,
        note: left.is_some() && before.is_none(),
        forget: false,
        folders: 0,
        left,
        restored: false,
    })
}

/// What has to happen so that nothing is there. In the other order, so that folders are empty when they go.
pub(super) fn uninstall(wiring: &Wiring) -> Result<Vec<Change>, Problem> {
    check_places(wiring)?;
    let was_here = was_here(wiring)?;
    wiring.edits.iter().rev().map(|edit| uninstall_one(edit, wiring, was_here)).collect()
}

fn uninstall_one(edit: &Edit, wiring: &Wiring, was_here: bool) -> Result<Change, Problem> {
    let path = edit.path();
    let from = text_of(path)?;
    let before = load(&wiring.shelf, path)?;
    let whose = edit.whose(before.as_ref(), from.as_deref(), was_here);
    let mut change = Change {
        path: path.to_owned(),
        to: from.clone(),
        left: left(edit, from.as_deref(), whose),
        from,
        keep: None,
        note: false,
        forget: before.is_some(),
        folders: 0,
        restored: false,
    };
    let Some(text) = &change.from else {
        change.restored = !matches!(before, Some(Before::Text(_)));
        return Ok(change);
    };
    let original = match &before {
        Some(Before::Text(original)) => Some(original.as_str()),
        Some(Before::Absent(_)) | None => None,
    };
    let left = edit.take_out(text, original, whose).map_err(|error| refused(path, &error))?;
    // What is left must make sense too.
    check(edit, &left, &left)?;
    change.to = match &before {
        // Nothing else was touched since: then it is as it was, to the last blank.
        Some(Before::Text(original)) if edit.put_in(Some(original), whose).as_ref() == Ok(text) => {
            Some(original.clone())
        }
        Some(Before::Absent(folders)) if edit.is_blank(&left) => {
            change.folders = *folders;
            None
        }
        // We wrote into it, its backup is gone (the folder was moved, or the home is another), and nothing of anybody's is left.
        None if left != *text && edit.is_blank(&left) => {
            change.folders = wiring.folders_of(path);
            None
        }
        _ => Some(left),
    };
    change.restored = match &before {
        Some(Before::Text(original)) => change.to.as_ref() == Some(original),
        Some(Before::Absent(_)) => change.to.is_none(),
        None => !change.is_one() && change.left.is_none(),
    };
    Ok(change)
}

/// Does it. A file that changed since it was read is left alone.
pub(super) fn carry_out(change: &Change, wiring: &Wiring, shared: bool) -> Result<(), Problem> {
    let path = &change.path;
    if change.is_one() {
        let now = text_of(path)?;
        if now != change.from {
            let detail = format!("{} was changed by somebody else just now", path.display());
            let mut problem = Problem::new(Code::AgentFiles, detail);
            problem.advice = "Run the command again.".to_owned();
            return Err(problem);
        }
    }
    one(change, &wiring.shelf, shared).map_err(|error| {
        Problem::new(Code::AgentFiles, format!("{} cannot be written: {error}", path.display()))
    })
}

fn one(change: &Change, shelf: &Shelf, shared: bool) -> io::Result<()> {
    let path = &change.path;
    if let Some(before) = change.keep.as_ref().filter(|_| change.is_one() || change.note) {
        shelf.keep(before, path)?;
    }
    match (&change.to, change.is_one()) {
        (_, false) => {}
        (Some(text), true) => file::write(path, text, shared)?,
        (None, true) => file::remove(path, 0)?,
    }
    if change.forget {
        shelf.forget(path)?;
    }
    // Only now: the backup may have been in there too.
    if change.to.is_none() && change.from.is_some() { file::remove(path, change.folders) } else { Ok(()) }
}
