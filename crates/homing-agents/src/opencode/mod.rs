//! opencode.

mod install;
mod parse;
mod wake;

use homing_model::Session;

use crate::agent::{Agent, Ask, BoxFuture, Identity, McpSession, SESSION};
use crate::environment::Variables;
use crate::hooks::Hooks;
use crate::install::{Installation, Site};
use crate::parse::Parse;
use crate::wake::program::Version;
use crate::wake::{Readiness, Rung, Surroundings, Verdict, WakeRequest, Ways};

/// The oldest version that was tried.
const TRIED: Version = Version(1, 18, 0);

/// opencode.
#[derive(Debug)]
pub(crate) struct Opencode;

impl Agent for Opencode {
    fn identity(&self) -> &'static Identity {
        &Identity {
            name: "opencode",
            title: "opencode",
            session_variable: "OPENCODE_SESSION_ID",
            private_variables: &["OPENCODE_SERVER_PASSWORD", "OPENCODE_SERVER_URL"],
            wakes: true,
            has_server: true,
            one_session_per_process: false,
            mcp_session: Some(McpSession::Argument("opencode_session")),
            prompt: None,
        }
    }

    fn ask(&self) -> &'static Ask {
        &Ask {
            argv: &["opencode", "run", "--format", "json"],
            resume: &["opencode", "run", "--format", "json", "--session", SESSION],
            folder: &[("XDG_DATA_HOME", "opencode"), ("HOME", ".local/share/opencode")],
            // Its sessions are in a database of its own; the files of older versions go.
            session_files: &[("storage", 3)],
        }
    }

    fn parser(&self) -> Box<dyn Parse> {
        Box::new(parse::Parser::default())
    }

    fn detect(&self, found: Session, variables: Variables<'_>) -> Session {
        let url = variables.get("OPENCODE_SERVER_URL").map(|url| url.trim_end_matches('/').to_owned());
        Session { url, ..found }
    }

    fn hooks(&self) -> Hooks {
        Hooks { plugin_wakes: true, ..Hooks::default() }
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

    fn install(&self, site: &Site<'_>) -> Installation {
        install::install(site)
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
