//! Claude Code.

mod install;
mod parse;
mod process;
mod resume;
mod socket;
#[cfg(test)]
mod tests;
mod transcript;

use homing_model::Session;

pub(crate) use parse::Parser;

use crate::agent::{Agent, Ask, BoxFuture, Identity, SESSION};
use crate::environment::Variables;
use crate::hooks::Hooks;
use crate::install::{Installation, Site};
use crate::parse::Parse;
use crate::wake::program::Version;
use crate::wake::screen::{Frame, PromptLayout};
use crate::wake::{self, Readiness, Rung, Surroundings, Verdict, WakeRequest, Ways};

/// The folder in the user's own.
const FOLDER: &str = ".claude";
/// The first version with an inbox socket.
const SOCKET: Version = Version(2, 1, 224);
/// The first version that polls for MCP tasks.
const TASKS: Version = Version(2, 1, 319);

/// How it was started.
const ENTRY: &str = "CLAUDE_CODE_ENTRYPOINT";
/// It ends a turn in spite of its hooks once they have put that off so often in a row.
const BLOCKS: u32 = 8;

/// Claude Code.
#[derive(Debug)]
pub(crate) struct Claude;

impl Agent for Claude {
    fn identity(&self) -> &'static Identity {
        &Identity {
            name: "claude",
            title: "Claude Code",
            session_variable: "CLAUDE_CODE_SESSION_ID",
            private_variables: &[
                "CLAUDECODE",
                "CLAUDE_CODE_CHILD_SESSION",
                "CLAUDE_CODE_ENTRYPOINT",
                "CLAUDE_CODE_MESSAGING_SOCKET",
                "CLAUDE_CODE_MESSAGING_TOKEN",
                "CLAUDE_CODE_SESSION_ATTENDED",
                "CLAUDE_CODE_SSE_PORT",
                "CLAUDE_PID",
            ],
            wakes: true,
            has_server: false,
            one_session_per_process: true,
            mcp_session: None,
            prompt: Some(&PromptLayout {
                placeholder: "", choice: '❯', frame: Frame::Rules { mark: '❯' }
            }),
        }
    }

    fn ask(&self) -> &'static Ask {
        &Ask {
            argv: &["claude", "-p", "--output-format", "stream-json", "--verbose"],
            resume: &["claude", "-p", "--output-format", "stream-json", "--verbose", "--resume", SESSION],
            folder: &[("CLAUDE_CONFIG_DIR", ""), ("HOME", FOLDER)],
            session_files: &[
                ("projects", 2),
                ("todos", 1),
                ("tasks", 1),
                ("file-history", 1),
                ("session-env", 1),
                ("debug", 1),
            ],
        }
    }

    fn parser(&self) -> Box<dyn Parse> {
        Box::new(Parser::default())
    }

    fn detect(&self, found: Session, variables: Variables<'_>) -> Session {
        Session {
            version: variables.get("AI_AGENT").as_deref().and_then(version),
            pid: variables.get("CLAUDE_PID").and_then(|pid| pid.parse().ok()).filter(|pid| *pid > 1),
            socket: variables.path("CLAUDE_CODE_MESSAGING_SOCKET"),
            folder: variables.get("CLAUDE_CONFIG_DIR").or_else(|| variables.at_home(FOLDER)),
            program: variables.path("CLAUDE_CODE_EXECPATH"),
            headless: variables.get("CLAUDE_CODE_SESSION_ATTENDED").is_some_and(|attended| attended == "0")
                || variables.get(ENTRY).is_some_and(|entry| entry.starts_with("sdk")),
            ..found
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks { process: Some("CLAUDE_PID"), ..Hooks::default() }
    }

    fn stop_limit(&self, variables: Variables<'_>) -> Option<u32> {
        let set = variables.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").and_then(|text| text.trim().parse().ok());
        Some(set.unwrap_or(BLOCKS)).filter(|most| *most > 0)
    }

    fn polls_tasks(&self, variables: Variables<'_>) -> bool {
        variables.get(ENTRY).is_some_and(|entry| entry == "cli")
    }

    /// A `claude -p` does not end before its hooks have: its caller waits for its answer. It can only be woken where it reads prompts from its
    /// stdin, one after the other.
    fn can_be_rewoken(&self, variables: Variables<'_>, words: &[&[u8]]) -> bool {
        variables.get(ENTRY).is_none_or(|entry| entry != "sdk-cli")
            || words.contains(&&b"--input-format=stream-json"[..])
            || words.windows(2).any(|pair| pair == [&b"--input-format"[..], b"stream-json"])
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

    fn install(&self, site: &Site<'_>) -> Installation {
        install::install(site)
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

/// `claude-code_2-1-325_agent` is version 2.1.325.
fn version(text: &str) -> Option<String> {
    let digits = text.strip_prefix("claude-code_")?.split('_').next()?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    plain.then(|| digits.replace('-', "."))
}
