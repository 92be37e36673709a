//! What became of a notice that an attempt before this one may have told: read from the file that the agent keeps of the session.
//!
//! An attempt that was killed, or waited for longer than it may, has said nothing of what came of it. Whoever tries again looks here first, so that
//! nobody is told a second time (P6). That our words are in the file says that the session has them; that they were answered says what its model
//! said after them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use homing_model::{Notice, NoticeId};

/// What was told before is looked for in so many bytes.
const RECENT: u64 = 16 << 20;

/// What became of a notice that is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nothing yet.
    Unanswered,
    /// A turn was begun with it, and came to nothing.
    Failed,
    /// The session went on after it.
    Answered,
}

/// A line that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// What we told.
    Ours,
    /// What the session's model said.
    Answer,
    /// What the agent said instead of its model.
    Trouble,
}

/// The last of what a file has before this place, as much as is looked through. The file's own place is then anywhere.
pub(crate) fn recent(mut file: &File, end: u64) -> io::Result<String> {
    let start = file.seek(SeekFrom::Start(end.saturating_sub(RECENT)))?;
    let mut recent = Vec::new();
    file.take(end - start).read_to_end(&mut recent)?;
    Ok(String::from_utf8_lossy(&recent).into_owned())
}

/// Which of these notices the lines tell of, and what became of them.
pub(crate) fn what_became_of(
    ids: &[NoticeId],
    lines: &str,
    judge: impl Fn(&str) -> Option<Line>,
) -> Vec<(NoticeId, Told)> {
    let mut told: Vec<(&NoticeId, Option<Told>)> = ids.iter().map(|id| (id, None)).collect();
    for line in lines.lines() {
        match judge(line) {
            Some(Line::Ours) => {
                for (_, told) in told.iter_mut().filter(|(id, _)| line.contains(id.as_str())) {
                    *told = told.filter(|told| *told == Told::Answered).or(Some(Told::Unanswered));
                }
            }
            Some(Line::Answer) => {
                told.iter_mut().filter_map(|(_, told)| told.as_mut()).for_each(|told| *told = Told::Answered);
            }
            Some(Line::Trouble) => {
                let open = told.iter_mut().filter_map(|(_, told)| told.as_mut());
                open.filter(|told| **told == Told::Unanswered).for_each(|told| *told = Told::Failed);
            }
            None => {}
        }
    }
    told.into_iter().filter_map(|(id, told)| Some((id.clone(), told?))).collect()
}

/// The notices that the session was not told yet, where that `counts`.
pub(crate) fn untold(
    notices: &[Notice],
    told: &[(NoticeId, Told)],
    counts: impl Fn(Told) -> bool,
) -> Vec<Notice> {
    let knows = |notice: &&Notice| told.iter().any(|(id, told)| *id == notice.id && counts(*told));
    notices.iter().filter(|notice| !knows(notice)).cloned().collect()
}
