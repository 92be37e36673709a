//! The files that Codex keeps of its threads, by their names.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// Below `sessions` Codex has a folder for the year, the month and the day.
const DEPTH: usize = 4;
/// So many files are looked at; whoever has more is not kept waiting.
const MOST: usize = 200_000;

/// Whether Codex has a file of the thread. `None` where there are too many to look at.
pub(super) fn has_traces(folder: &Path, thread: &str) -> Option<bool> {
    let ending = ending(thread);
    let mut left = MOST;
    let found = ["sessions", "archived_sessions"].iter().any(|below| {
        let mut found = false;
        visit(&folder.join(below), &ending, DEPTH, &mut left, &mut |_| {
            found = true;
            false
        });
        found
    });
    (found || left > 0).then_some(found)
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    std::fs::read_dir(folder).into_iter().flatten().flatten()
}

/// How the file of a thread of Codex is called, at its end.
fn ending(thread: &str) -> String {
    format!("-{thread}.jsonl")
}

/// The files of a thread of Codex below its folder of sessions, as many as can be looked for.
pub(super) fn of_thread(sessions: &Path, thread: &str) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), MOST);
    visit(sessions, &ending(thread), DEPTH, &mut left, &mut |path| {
        found.push(path);
        true
    });
    found
}

/// Shows the files with this ending that are in a folder, or in one so many folders below it, until `see` has seen enough. Folders that are kept
/// elsewhere, and linked, count.
fn visit(
    folder: &Path,
    ending: &str,
    depth: usize,
    left: &mut usize,
    see: &mut impl FnMut(PathBuf) -> bool,
) -> bool {
    for entry in entries(folder) {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let named = entry.file_name().to_str().is_some_and(|name| name.ends_with(ending));
        let is_folder = match entry.file_type() {
            Ok(kind) if kind.is_symlink() && !named => entry.path().is_dir(),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        };
        let goes_on = match (is_folder, named) {
            (true, _) => depth <= 1 || visit(&entry.path(), ending, depth - 1, left, see),
            (false, true) => see(entry.path()),
            (false, false) => true,
        };
        if !goes_on {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_known_by_the_file_that_is_kept_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let known = |thread: &str| has_traces(folder.path(), thread);
        assert_eq!(known("b"), Some(false));
        let put = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        put("sessions/2026/01/02/rollout-2026-01-02T03-04-05-b.jsonl");
        put("archived_sessions/rollout-2026-01-02T03-04-05-c.jsonl");
        assert_eq!((known("b"), known("c"), known("d")), (Some(true), Some(true), Some(false)));
    }
}
