//! opencode.

mod wake;

use homing_model::Session;

use crate::agent::{Agent, BoxFuture, Identity};
use crate::wake::program::Version;
use crate::wake::{Readiness, Rung, Surroundings, Verdict, WakeRequest, Ways};

/// The oldest version that was tried.
const TRIED: Version = Version(1, 18, 0);

/// opencode.
#[derive(Debug)]
pub(crate) struct Opencode;

impl Agent for Opencode {
    fn identity(&self) -> &'static Identity {
        &Identity { name: "opencode", title: "opencode", prompt: None }
    }

    fn readiness<'a>(
        &'a self,
        session: &'a Session,
        _runs: bool,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Readiness> {
        Box::pin(wake::readiness(session, surroundings))
    }

    fn wake<'a>(
        &'a self,
        session: &'a Session,
        request: WakeRequest<'a>,
        surroundings: &'a Surroundings,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(wake::wake(session, request, surroundings))
    }

    fn ways(&self, version: Option<Version>) -> Ways {
        let works = version.is_some_and(|version| version >= TRIED);
        let advice = || {
            format!(
                "Update opencode to {TRIED} or later; `homing install opencode` adds the plugin, which needs no `--port`."
            )
        };
        Ways {
            rungs: vec![Rung { name: "plugin", works }, Rung { name: "HTTP server", works }],
            advice: (!works).then(advice),
        }
    }
}
