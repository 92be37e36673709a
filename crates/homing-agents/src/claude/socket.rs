//! A turn by the inbox socket of a process that has the session open.
//!
//! The socket answers nothing: what counts is that our notice is in the session's transcript. A session that is at work, or waits for its user,
//! keeps the message until it has time: as long as the process has both it is waited for, and nothing is spent. Were it given up before, the
//! hooks would deliver its inbox entry at the end of the turn, and the message would follow.

use std::io;
use std::path::Path;
use std::time::Duration;

use homing_model::{Notice, Session, turn, wake};
use serde_json::json;
use tokio::time::Instant;

use super::process::{Entry, NO_SOCKET, open_in};
use super::transcript;
use crate::wake::told::{self, Told};
use crate::wake::transcript::Transcript;
use crate::wake::{Verdict, WakeRequest, socket};

/// An idle session has the notice in its transcript by then, or does not take it.
pub(super) const EVIDENCE: Duration = Duration::from_secs(15);
/// Between two looks at the session: a killed process is not waited for, and its notices are free again.
const LOOK: Duration = Duration::from_secs(1);
/// A message that Claude Code keeps is waited for as long as any wake may take.
pub(super) const KEEPS: Duration = Duration::from_millis(wake::LONGEST_MS.unsigned_abs());

/// Writes to the socket of a process that has the session open, and waits for the notice to be in its transcript.
pub(super) fn send(
    entry: &Entry,
    folder: &Path,
    session: &Session,
    request: WakeRequest<'_>,
    patience: Duration,
) -> Verdict {
    let Some(path) = &entry.messaging_socket_path else { return Verdict::NotNow(NO_SOCKET.to_owned()) };
    let Some(mut transcript) = transcript::find(folder, &session.id) else {
        return Verdict::NotNow("the session has no transcript yet".to_owned());
    };
    // A turn that failed was run where nobody had the session open: who has it open since is to hear of it.
    let news = match untold(&mut transcript, request, |told| told != Told::Failed) {
        Ok(news) => news,
        Err(error) => return unreadable(&error),
    };
    let Some(notice) = news.first() else { return told_before() };
    let text = turn::compose(&news, 0).text;
    let message = json!({ "type": "user", "message": { "role": "user", "content": text } });
    let now = || open_in(folder, &session.id).filter(|now| now.is_of_same_process(entry));
    match socket::send_lines(path, entry.pid, &format!("{message}\n"), || {
        now().is_some_and(|now| now.is_idle())
    }) {
        Ok(true) => {}
        Ok(false) => return Verdict::NotNow("the session went on, or elsewhere, just then".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Verdict::NotNow(format!("process {} is there, and serves its socket no more", entry.pid));
        }
        Err(error) => return Verdict::Failed(format!("the socket of process {}: {error}", entry.pid)),
    }
    match arrives(&mut transcript, notice.id.as_str(), patience, KEEPS, now) {
        Ok(Arrival::Taken) => {
            Verdict::Delivered(format!("inbox socket of process {}; it is in the transcript", entry.pid))
        }
        Ok(Arrival::Left) => {
            Verdict::NotNow("Claude Code left the session before it took up the message".to_owned())
        }
        Ok(Arrival::Kept) => {
            Verdict::NotNow("Claude Code has the message, and had no time for it so far".to_owned())
        }
        Ok(Arrival::HeldBack) => Verdict::Failed(
            "Claude Code took the message and began no turn within 15 s; it may hold messages of others back (crossSessionInbound in its \
             settings, bypassed permissions)"
                .to_owned(),
        ),
        Err(error) => unreadable(&error),
    }
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is in the transcript.
    Taken,
    /// The session is no longer open where it was said.
    Left,
    /// The session was at work all the time.
    Kept,
    /// The session had time, and did not take it up.
    HeldBack,
}

/// Waits until the session has what was said to it. While that is at work, Claude Code keeps a message until it has time; `now` says how it is.
pub(super) fn arrives(
    transcript: &mut Transcript,
    words: &str,
    patience: Duration,
    limit: Duration,
    mut now: impl FnMut() -> Option<Entry>,
) -> io::Result<Arrival> {
    let end = Instant::now() + limit;
    // Since when it has had time, and taken nothing up.
    let mut idle = Some(Instant::now());
    while !transcript.has(words, patience.min(LOOK))? {
        let given_up = match (now(), idle) {
            (None, _) => Some(Arrival::Left),
            (Some(entry), _) if !entry.is_idle() => {
                idle = None;
                None
            }
            // Where it was at work before, it has time only since a moment.
            (Some(_), None) => {
                idle = Some(Instant::now());
                None
            }
            (Some(_), Some(since)) => (since.elapsed() >= patience).then_some(Arrival::HeldBack),
        };
        if let Some(given_up) = given_up {
            // What it did last, it may have done since the look.
            return Ok(if transcript.has(words, Duration::ZERO)? { Arrival::Taken } else { given_up });
        }
        if Instant::now() > end {
            return Ok(Arrival::Kept);
        }
    }
    Ok(Arrival::Taken)
}

/// What the session was not told yet, where that `counts`. Claude Code may keep a message for longer than an attempt waits: what came of the one before
/// is seen only now.
pub(super) fn untold(
    transcript: &mut Transcript,
    request: WakeRequest<'_>,
    counts: impl Fn(Told) -> bool,
) -> io::Result<Vec<Notice>> {
    Ok(told::untold(request.notices, &transcript.told(request.tried)?, counts))
}

pub(super) fn told_before() -> Verdict {
    Verdict::Delivered("it is in the transcript since an attempt before this one".to_owned())
}

pub(super) fn unreadable(error: &io::Error) -> Verdict {
    Verdict::Failed(format!("the transcript could not be read: {error}"))
}
