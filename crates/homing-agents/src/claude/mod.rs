//! Claude Code.

mod process;
mod resume;
mod socket;
#[cfg(test)]
mod tests;
mod transcript;

use homing_model::Session;

use crate::agent::{Agent, BoxFuture, Identity};
use crate::wake::program::Version;
use crate::wake::screen::{Frame, PromptLayout};
use crate::wake::{self, Readiness, Rung, Surroundings, Verdict, WakeRequest, Ways};

/// The folder in the user's own.
const FOLDER: &str = ".claude";
/// The first version with an inbox socket.
const SOCKET: Version = Version(2, 1, 224);
/// The first version that polls for MCP tasks.
const TASKS: Version = Version(2, 1, 319);

/// Claude Code.
#[derive(Debug)]
pub(crate) struct Claude;

impl Agent for Claude {
    fn identity(&self) -> &'static Identity {
        &Identity {
            name: "claude",
            title: "Claude Code",
            prompt: Some(&PromptLayout {
                placeholder: "", choice: '❯', frame: Frame::Rules { mark: '❯' }
            }),
        }
    }

    fn readiness<'a>(
        &'a self,
        session: &'a Session,
        runs: bool,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Readiness> {
        let (session, surroundings) = (session.clone(), surroundings.clone());
        wake::look_beside(move || process::readiness(&session, runs, &surroundings))
    }

    fn wake<'a>(
        &'a self,
        session: &'a Session,
        request: WakeRequest<'a>,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(async move { wake(session, request, surroundings) })
    }

    fn has_traces(&self, session: &Session, surroundings: &Surroundings) -> Option<bool> {
        let projects = std::fs::read_dir(surroundings.folder_of(session, FOLDER)?.join("projects"));
        let name = format!("{}.jsonl", session.id);
        Some(projects.into_iter().flatten().flatten().any(|project| project.path().join(&name).is_file()))
    }

    fn ways(&self, version: Option<Version>) -> Ways {
        let at_least = |least: Version| version.is_some_and(|version| version >= least);
        let advice =
            || format!("Update Claude Code to {TASKS} or later; `homing install claude` adds its hooks.");
        Ways {
            rungs: vec![
                Rung { name: "MCP task", works: at_least(TASKS) },
                Rung { name: "inbox socket", works: at_least(SOCKET) },
                Rung { name: "one more turn", works: version.is_some() },
            ],
            advice: (!at_least(SOCKET)).then(advice),
        }
    }
}

/// By the inbox socket of a process that has the session open, or by one more turn where no process has. One more turn (`claude -p
/// --resume`) is not taken while a process has it open: two of them would write into one transcript.
fn wake(session: &Session, request: WakeRequest<'_>, surroundings: &Surroundings) -> Verdict {
    match process::readiness(session, request.runs, surroundings) {
        Readiness::Ready => {}
        Readiness::Busy(why) | Readiness::Closed(why) => return Verdict::NotNow(why),
    }
    let Some(folder) = surroundings.folder_of(session, FOLDER) else {
        return Verdict::Failed("the folder of Claude Code is not known".to_owned());
    };
    match process::open_in(&folder, &session.id) {
        Some(entry) => socket::send(&entry, &folder, session, request, socket::EVIDENCE),
        None => resume::resume(&folder, session, request, surroundings),
    }
}
