//! One more turn (`claude -p --resume`) of a session that no process has open.
//!
//! Here our notice in the transcript is no evidence, since one more turn that failed leaves it there as well; what the session said after it is.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use homing_model::{Session, turn};
use serde_json::Value;

use super::FOLDER;
use super::socket::{told_before, unreadable, untold};
use super::transcript;
use crate::wake::program::{self, Running};
use crate::wake::told::Told;
use crate::wake::{Surroundings, Verdict, WakeRequest};

/// A turn that takes longer is left to itself.
const TURN: Duration = Duration::from_secs(60 * 60);

/// Errors of a turn that heal by no other attempt, as Claude Code names them
/// (`SDKAssistantMessageError`): the login, an account that may not use it, and a model that is not
/// there.
pub(super) const UNHEALABLE: [&str; 7] = [
    "authentication_failed",
    "oauth_org_not_allowed",
    "cloud_credential_error",
    "account_on_hold",
    "verification_required",
    "billing_error",
    "model_not_found",
];

/// One more turn of a session that nobody has open.
pub(super) fn resume(
    folder: &Path,
    session: &Session,
    request: WakeRequest<'_>,
    surroundings: &Surroundings,
) -> Verdict {
    let found = transcript::find(folder, &session.id)
        .map(|mut transcript| untold(&mut transcript, request, |told| told == Told::Answered));
    let news = match found.transpose() {
        Ok(news) => news.unwrap_or_else(|| request.notices.to_vec()),
        Err(error) => return unreadable(&error),
    };
    if news.is_empty() {
        return told_before();
    }
    let path = surroundings.path_of(session);
    let Some(program) = program::of(session, path) else {
        return Verdict::Failed("`claude` is not where the session looked for programs".to_owned());
    };
    let mut command = Command::new(program);
    command.args(["-p", "--resume", &session.id, "--output-format", "stream-json", "--verbose"]);
    command.env("PATH", path);
    surroundings.prepare(&mut command);
    if surroundings.user.as_ref().is_none_or(|user| user.join(FOLDER) != folder) {
        command.env("CLAUDE_CONFIG_DIR", folder);
    }
    let text = turn::compose(&news, 0).text;
    let judged =
        program::start(command, text.as_bytes()).and_then(|mut running| follow(&mut running, &session.id));
    judged.unwrap_or_else(|error| Verdict::Failed(format!("`claude -p --resume` could not be run: {error}")))
}

pub(super) fn follow(running: &mut Running, id: &str) -> io::Result<Verdict> {
    let over = running.ends_within(TURN)?;
    let seen = running.seen()?;
    let lines = || seen.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_session = |line: &Value| line["session_id"] == id;
    // Nobody logs in between two attempts, and each leaves the notice in the transcript.
    let refused = |line: Value| {
        UNHEALABLE.into_iter().find(|error| line["type"] == "assistant" && line["error"] == *error)
    };
    if let Some(result) = lines().rfind(|line| line["type"] == "result") {
        return Ok(match result["is_error"].as_bool() {
            Some(false) if of_session(&result) => {
                Verdict::Delivered("one more turn by `claude -p --resume`".to_owned())
            }
            Some(false) => Verdict::Failed("`claude -p --resume` answered for another session".to_owned()),
            Some(true) | None => {
                let said = result["result"]
                    .as_str()
                    .map(homing_model::sanitize::line)
                    .filter(|said| !said.is_empty());
                let why = format!("`claude -p --resume`: {}", said.unwrap_or_else(|| seen.last_line()));
                match lines().find_map(refused) {
                    Some(_) => Verdict::GivenUp(format!("{why}; `homing redeliver` tries again")),
                    None => Verdict::Failed(why),
                }
            }
        });
    }
    // What Claude Code says instead of its model is no turn.
    let answers = |line: &Value| line["type"] == "assistant" && line["message"]["model"] != "<synthetic>";
    if !over && lines().any(|line| answers(&line) && of_session(&line)) {
        return Ok(Verdict::Delivered("one more turn by `claude -p --resume`, which goes on".to_owned()));
    }
    if !over {
        running.end()?;
    }
    Ok(Verdict::Failed(format!("`claude -p --resume`: {}", seen.last_line())))
}
