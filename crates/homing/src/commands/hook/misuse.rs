//! A hook that makes no sense: an agent or an event that this release does not know.
//!
//! It may be a slip of the finger in somebody's settings, or an event of a later release, with which no agent is troubled; whoever types it
//! hears of it, and the home keeps the last one, so that `homing doctor` can tell. One small file, replaced whole; a crash or a full disk costs
//! nothing but that.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use homing_agents::hooks::Event;
use homing_agents::{Agent, registry};
use homing_model::{Timestamp, sanitize, slip};
use homing_sys::{atomic_file, plain};
use serde::{Deserialize, Serialize};

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;

/// The file's name in the home.
const NAME: &str = "hook-misuse.json";
/// So many bytes of a word are kept.
const LONGEST: usize = 100;
/// A file that is larger is not ours.
const LARGEST: u64 = 16 << 10;
/// One that is older was mended, or does not matter: a week.
const OLD_MS: i64 = 7 * 24 * 3_600 * 1_000;

/// The last hook that made no sense.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Misuse {
    /// When.
    pub(crate) at: Timestamp,
    /// What it named as agent.
    agent: String,
    /// And as event.
    event: String,
}

impl Misuse {
    /// What was called.
    pub(crate) fn line(&self) -> String {
        format!("homing hook {} {}", self.agent, self.event)
    }
}

/// What is kept, unless it is old.
pub(crate) fn last(home: &Path, now: Timestamp) -> Option<Misuse> {
    let kept: Misuse = serde_json::from_slice(&plain::small(&place(home), LARGEST).ok()?).ok()?;
    (now.as_millis().saturating_sub(kept.at.as_millis()) < OLD_MS).then_some(kept)
}

/// Where it is kept.
pub(crate) fn place(home: &Path) -> PathBuf {
    home.join(NAME)
}

/// Hooks were written anew: what was wrong with them before is over.
pub(crate) fn forget(home: &Path) {
    let place = place(home);
    atomic_file::remove_drafts(&place);
    let _ = std::fs::remove_file(place);
}

/// The agent of that name.
pub(super) fn agent_with_hooks(name: &str) -> Option<&'static dyn Agent> {
    registry::find(name)
}

/// Tells whoever typed it, and keeps it for whoever looks where an agent called. Of another agent nobody can say what silence means to it.
pub(super) fn tell(agent: &str, event: &str, context: &Context) -> Result<u8, Failure> {
    let typed = io::stdin().is_terminal();
    if !typed {
        keep(agent, event, context);
    }
    if typed || agent_with_hooks(agent).is_none() {
        Err(explained(agent, event))
    } else {
        Ok(exit_code::DONE)
    }
}

fn explained(agent: &str, event: &str) -> Failure {
    let events = "Stop, SessionStart, UserPromptSubmit, SessionEnd, rewake";
    let detail = match agent_with_hooks(agent) {
        Some(_) => {
            let event = sanitize::line(event);
            format!("`{event}` is no event that homing knows{}", slip::meant(&event, Event::NAMES))
        }
        None => {
            let agent = sanitize::line(agent);
            format!("`{agent}` has no hooks that homing knows{}", slip::meant(&agent, registry::names()))
        }
    };
    Failure::usage(
        detail,
        format!(
            "`homing hook {} EVENT`, with EVENT one of {events}; `homing install AGENT` writes them all.",
            registry::names().collect::<Vec<_>>().join("|")
        ),
    )
}

/// Nothing depends on it: a home that is not there is not made, and what cannot be written is not kept.
fn keep(agent: &str, event: &str, context: &Context) {
    let short = |text: &str| sanitize::line(text).chars().take(LONGEST).collect();
    let misuse = Misuse { at: context.now(), agent: short(agent), event: short(event) };
    if let Ok(text) = serde_json::to_vec(&misuse) {
        let _ = atomic_file::replace_content(&place(&context.home), &text, 0o600);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(agent: &str, event: &str) -> String {
        match explained(agent, event) {
            Failure::Problem(problem) => problem.detail,
            Failure::ClosedOutput => String::new(),
        }
    }

    #[test]
    fn what_was_nearly_typed_is_asked_about() {
        assert_eq!(told("claude", "Stpo"), "`Stpo` is no event that homing knows (did you mean `Stop`?)");
        assert_eq!(
            told("calude", "Stop"),
            "`calude` has no hooks that homing knows (did you mean `claude`?)"
        );
        assert_eq!(told("hermes", "Stop"), "`hermes` has no hooks that homing knows");
        assert_eq!(told("codex", "PreToolUse"), "`PreToolUse` is no event that homing knows");
    }

    #[test]
    fn the_last_one_is_kept_for_a_week() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(last(home.path(), Timestamp::from_millis(0)), None);
        let misuse =
            Misuse { at: Timestamp::from_millis(1_000), agent: "claude".into(), event: "Stpo".into() };
        std::fs::write(place(home.path()), serde_json::to_vec(&misuse).unwrap()).unwrap();
        let found = last(home.path(), Timestamp::from_millis(2_000));
        assert_eq!(found.map(|misuse| misuse.line()).as_deref(), Some("homing hook claude Stpo"));
        assert_eq!(last(home.path(), Timestamp::from_millis(1_000 + OLD_MS)), None);
        forget(home.path());
        assert!(!place(home.path()).exists());
    }

    #[test]
    fn a_pipe_of_that_name_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, place(home.path()), rustix::fs::FileType::Fifo, mode, 0)
            .unwrap();
        assert_eq!(last(home.path(), Timestamp::from_millis(0)), None);
    }
}
