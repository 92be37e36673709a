//! Codex.

mod rollout;
mod threads;
mod wake;

use homing_model::Session;

use crate::agent::{Agent, BoxFuture, Identity};
use crate::wake::program::Version;
use crate::wake::screen::{Frame, PromptLayout};
use crate::wake::{Readiness, Rung, Surroundings, Verdict, WakeRequest, Ways, look_beside};

/// The folder in the user's own.
const FOLDER: &str = ".codex";
/// The first version with a queue.
const QUEUES: Version = Version(0, 166, 0);

/// Codex.
#[derive(Debug)]
pub(crate) struct Codex;

impl Agent for Codex {
    fn identity(&self) -> &'static Identity {
        &Identity {
            name: "codex",
            title: "Codex",
            prompt: Some(&PromptLayout {
                placeholder: "Ask Codex to do anything",
                choice: '›',
                frame: Frame::Mark { marks: &["› "], indent: "  " },
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
        look_beside(move || wake::readiness(&session, runs, &surroundings))
    }

    fn wake<'a>(
        &'a self,
        session: &'a Session,
        request: WakeRequest<'a>,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(wake::wake(session, request, surroundings))
    }

    fn has_traces(&self, session: &Session, surroundings: &Surroundings) -> Option<bool> {
        threads::has_traces(&surroundings.folder_of(session, FOLDER)?, &session.id)
    }

    fn ways(&self, version: Option<Version>) -> Ways {
        let queues = version.is_some_and(|version| version >= QUEUES);
        let advice = || format!("Update Codex to {QUEUES} or later: it has a queue for messages.");
        Ways {
            rungs: vec![
                Rung { name: "queue", works: queues },
                Rung { name: "one more turn", works: version.is_some() },
            ],
            advice: (!queues).then(advice),
        }
    }
}
