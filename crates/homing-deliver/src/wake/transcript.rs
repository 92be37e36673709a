//! The transcript of a session, as evidence: what is in it was taken by the agent.
//!
//! That a message is in it says that the session has it, and not that a turn began with it: Claude Code writes what it was given before it asks its
//! model, and where that fails a line of its own that says so. Only what the model said after it is an answer.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use homing_model::NoticeId;
use homing_model::turn::MARK;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use serde_json::Value;
use tokio::time::Instant;

use super::plain;

/// Looked at again after this long at the latest, where nobody says that the file has changed.
const LOOK: Duration = Duration::from_millis(500);
/// What is added is read in pieces: however much it is, no more is held.
const PIECE: u64 = 1 << 20;
/// What was told before is looked for in so many bytes.
const RECENT: u64 = 16 << 20;

/// What became of a notice that is in a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing yet.
    Unanswered,
    /// A turn was begun with it, and came to nothing.
    Failed,
    /// The session went on after it.
    Answered,
}

/// A transcript, from where it ended when it was found.
#[derive(Debug)]
pub(super) struct Transcript {
    session: String,
    file: File,
    changes: rustix::fd::OwnedFd,
    /// What was read and may be the beginning of what is looked for.
    rest: Vec<u8>,
}

impl Transcript {
    /// That of a session of Claude Code: `projects/FOLDER/SESSION.jsonl`.
    pub(super) fn find(folder: &Path, id: &str) -> Option<Self> {
        let projects = std::fs::read_dir(folder.join("projects")).ok()?.flatten();
        let name = format!("{id}.jsonl");
        let mut paths = projects.map(|project| project.path().join(&name));
        let (path, mut file) = paths.find_map(|path| plain::open(&path).ok().map(|file| (path, file)))?;
        file.seek(SeekFrom::End(0)).ok()?;
        let changes = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok()?;
        inotify::add_watch(&changes, &path, inotify::WatchFlags::MODIFY).ok()?;
        Some(Self { session: id.to_owned(), file, changes, rest: Vec::new() })
    }

    /// Which of these notices were in it when it was found, in words of ours, and what became of them.
    pub(super) fn told(&mut self, ids: &[NoticeId]) -> io::Result<Vec<(NoticeId, Told)>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let end = self.file.stream_position()?;
        let start = self.file.seek(SeekFrom::Start(end.saturating_sub(RECENT)))?;
        let mut recent = Vec::new();
        (&self.file).take(end - start).read_to_end(&mut recent)?;
        self.file.seek(SeekFrom::Start(end))?;
        let recent = String::from_utf8_lossy(&recent);
        let mut told: Vec<(&NoticeId, Option<Told>)> = ids.iter().map(|id| (id, None)).collect();
        for line in recent.lines() {
            match self.judge(line) {
                Some(Line::Ours) => {
                    for (_, told) in told.iter_mut().filter(|(id, _)| line.contains(id.as_str())) {
                        *told = told.filter(|told| *told == Told::Answered).or(Some(Told::Unanswered));
                    }
                }
                Some(Line::Answer) => {
                    told.iter_mut()
                        .filter_map(|(_, told)| told.as_mut())
                        .for_each(|told| *told = Told::Answered);
                }
                Some(Line::Trouble) => {
                    let open = told.iter_mut().filter_map(|(_, told)| told.as_mut());
                    open.filter(|told| **told == Told::Unanswered).for_each(|told| *told = Told::Failed);
                }
                None => {}
            }
        }
        Ok(told.into_iter().filter_map(|(id, told)| Some((id.clone(), told?))).collect())
    }

    /// What a line says of us, if it does.
    fn judge(&self, line: &str) -> Option<Line> {
        let (marked, said) = (line.contains(MARK), line.contains("\"assistant\""));
        if !marked && !said {
            return None;
        }
        let found = serde_json::from_str::<Value>(line).unwrap_or_default();
        let elsewhere = found["sessionId"].as_str().is_some_and(|session| session != self.session);
        match found["type"].as_str() {
            // What sub-agents say within, and what was copied out of another session.
            Some("assistant") if found["isSidechain"] == true || elsewhere => None,
            Some("assistant")
                if found["isApiErrorMessage"] == true || found["message"]["model"] == "<synthetic>" =>
            {
                Some(Line::Trouble)
            }
            Some("assistant") => Some(Line::Answer),
            // It only waits for its turn.
            Some("queue-operation") => None,
            _ => marked.then_some(Line::Ours),
        }
    }

    /// Whether these words are added to it within this time.
    pub(super) fn has(&mut self, words: &str, limit: Duration) -> io::Result<bool> {
        let end = Instant::now() + limit;
        loop {
            let read = (&self.file).take(PIECE).read_to_end(&mut self.rest)?;
            if self.rest.windows(words.len()).any(|window| window == words.as_bytes()) {
                return Ok(true);
            }
            let kept = self.rest.len().saturating_sub(words.len());
            self.rest.drain(..kept);
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if read == 0 {
                self.changed(left.min(LOOK))?;
            }
        }
    }

    /// Waits for a change, or this long.
    fn changed(&self, limit: Duration) -> io::Result<()> {
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(0),
            tv_nsec: limit.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.changes, PollFlags::IN)], Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut events = [0; 4096];
        match rustix::io::read(&self.changes, &mut events) {
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A line of a transcript that matters.
enum Line {
    /// What we told.
    Ours,
    /// What the session's model said.
    Answer,
    /// What Claude Code said instead of its model.
    Trouble,
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_what_is_added_counts_also_in_two_pieces() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Transcript::find(folder.path(), "s1").is_none());
        let project = folder.path().join("projects/-w");
        std::fs::create_dir_all(&project).unwrap();
        let path = project.join("s1.jsonl");
        std::fs::write(&path, "n-2222222222\n").unwrap();
        let mut transcript = Transcript::find(folder.path(), "s1").unwrap();
        assert!(!transcript.has("n-2222222222", Duration::ZERO).unwrap(), "it was there before");
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"text n-2222").unwrap();
        assert!(!transcript.has("n-2222222222", Duration::from_millis(1)).unwrap());
        file.write_all(b"222222 more").unwrap();
        assert!(transcript.has("n-2222222222", Duration::from_secs(20)).unwrap());
    }

    #[test]
    fn what_was_told_before_is_found_where_it_was_told_by_us() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("projects/-w");
        std::fs::create_dir_all(&project).unwrap();
        let text = format!("{{\"content\":\"{MARK} 2 (notice n-2222222222)\"}}\nn-3333333333\n");
        std::fs::write(project.join("s1.jsonl"), text).unwrap();
        let mut transcript = Transcript::find(folder.path(), "s1").unwrap();
        let [told, printed, other] =
            ["n-2222222222", "n-3333333333", "n-4444444444"].map(|id| id.parse::<NoticeId>().unwrap());
        let found = transcript.told(&[told.clone(), printed, other]).unwrap();
        assert_eq!(found, [(told, Told::Unanswered)]);
        assert!(!transcript.has("n-2222222222", Duration::ZERO).unwrap(), "it was there before");
    }

    #[test]
    fn what_was_told_was_answered_once_the_model_of_this_session_went_on() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("projects/-w");
        std::fs::create_dir_all(&project).unwrap();
        let id: NoticeId = "n-2222222222".parse().unwrap();
        let ours =
            format!(r#"{{"type":"user","sessionId":"s1","message":{{"content":"{MARK} (notice {id})"}}}}"#);
        let queued =
            format!(r#"{{"type":"queue-operation","operation":"enqueue","content":"{MARK} (notice {id})"}}"#);
        let answer = r#"{"type":"assistant","sessionId":"s1","message":{"model":"claude","content":[]}}"#;
        let error = r#"{"type":"assistant","isApiErrorMessage":true,"sessionId":"s1","message":{"model":"<synthetic>"}}"#;
        let within =
            r#"{"type":"assistant","isSidechain":true,"sessionId":"s1","message":{"model":"claude"}}"#;
        let elsewhere = r#"{"type":"assistant","sessionId":"s2","message":{"model":"claude"}}"#;
        let user = r#"{"type":"user","sessionId":"s1","message":{"content":"an \"assistant\" is asked"}}"#;
        for (lines, expected) in [
            (vec![answer], None),
            (vec![&queued, answer], None),
            (vec![answer, &ours], Some(Told::Unanswered)),
            (vec![&ours, within, elsewhere, user, "{"], Some(Told::Unanswered)),
            (vec![&ours, error], Some(Told::Failed)),
            (vec![&ours, error, &ours], Some(Told::Unanswered)),
            (vec![&ours, user, answer], Some(Told::Answered)),
            (vec![&ours, error, answer], Some(Told::Answered)),
            (vec![&ours, answer, error, &ours], Some(Told::Answered)),
        ] {
            std::fs::write(project.join("s1.jsonl"), lines.join("\n")).unwrap();
            let told =
                Transcript::find(folder.path(), "s1").unwrap().told(std::slice::from_ref(&id)).unwrap();
            let expected: Vec<_> = expected.map(|told| (id.clone(), told)).into_iter().collect();
            assert_eq!(told, expected, "{lines:?}");
        }
    }
}
