//! Traces that a session has left with its agent: whether there ever was one, as far as files tell.

use std::fs::DirEntry;
use std::path::Path;

use homing_model::{Agent, Session};

use super::{Surroundings, claude, codex};

/// Below `sessions` Codex has a folder for the year, the month and the day.
const DEPTH: usize = 4;
/// So many files are looked at; whoever has more is not kept waiting.
const MOST: usize = 200_000;

/// Whether the agent's own files tell of a session. `None` where that cannot be said: the agent keeps it in no file that we know, or in too many.
#[must_use]
pub fn has_traces(session: &Session, surroundings: &Surroundings) -> Option<bool> {
    let id = &session.id;
    match session.agent {
        Agent::Claude => {
            let projects = surroundings.folder_of(session, claude::FOLDER)?.join("projects");
            let name = format!("{id}.jsonl");
            Some(entries(&projects).any(|project| project.path().join(&name).is_file()))
        }
        Agent::Codex => {
            let folder = surroundings.folder_of(session, codex::FOLDER)?;
            let ending = format!("-{id}.jsonl");
            let mut left = MOST;
            let found = ["sessions", "archived_sessions"]
                .iter()
                .any(|below| is_below(&folder.join(below), &ending, DEPTH, &mut left));
            (found || left > 0).then_some(found)
        }
        Agent::Opencode | Agent::Gemini => None,
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    std::fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Whether a file with this ending is in a folder, or in one so many folders below it.
fn is_below(folder: &Path, ending: &str, depth: usize, left: &mut usize) -> bool {
    for entry in entries(folder) {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let found = if is_folder {
            depth > 1 && is_below(&entry.path(), ending, depth - 1, left)
        } else {
            entry.file_name().to_str().is_some_and(|name| name.ends_with(ending))
        };
        if found {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_known_by_the_file_that_its_agent_keeps_of_it() {
        let user = tempfile::tempdir().unwrap();
        let surroundings = Surroundings { user: Some(user.path().to_owned()), ..Surroundings::default() };
        let known = |owner: &str| has_traces(&Session::of_owner(owner).unwrap(), &surroundings);
        assert_eq!((known("claude:a"), known("codex:b")), (Some(false), Some(false)));
        let put = |path: &str| {
            let path = user.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        put(".claude/projects/-x-y/a.jsonl");
        put(".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-b.jsonl");
        put(".codex/archived_sessions/rollout-2026-01-02T03-04-05-c.jsonl");
        assert_eq!((known("claude:a"), known("claude:aa")), (Some(true), Some(false)));
        assert_eq!(
            (known("codex:b"), known("codex:c"), known("codex:d")),
            (Some(true), Some(true), Some(false))
        );
        assert_eq!((known("opencode:e"), known("gemini:f")), (None, None));
    }
}
