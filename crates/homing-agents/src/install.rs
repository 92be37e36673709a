//! What makes an agent know of homing: which of its files get which entries. Nothing is read or written here, but for the question whether a
//! file is there.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use homing_model::shell;
use serde_json::{Value, json};

/// What homing is called in the agent's configuration.
pub const NAME: &str = "homing";
/// How long a hook may take, in seconds; it needs milliseconds.
pub(crate) const HOOK_SECONDS: u64 = 10;

/// For whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// For the user, everywhere.
    User,
    /// For everybody in this folder.
    Project,
}

/// What an installation depends on.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// For whom.
    pub scope: Scope,
    /// The user's folder, or that of the project.
    pub here: &'a Path,
    /// How homing is called: the program and its first arguments.
    pub program: &'a [String],
    /// The path that a variable of the user's environment is, if it is an absolute one.
    pub variable: &'a dyn Fn(&str) -> Option<PathBuf>,
}

impl Site<'_> {
    /// The folder that a variable names, for the user.
    pub(crate) fn chosen(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).filter(|_| self.scope == Scope::User)
    }

    /// The command line of homing with these arguments.
    pub(crate) fn with(&self, more: &[&str]) -> Vec<String> {
        self.program.iter().cloned().chain(more.iter().map(|word| (*word).to_owned())).collect()
    }

    /// The command line of a hook.
    pub(crate) fn hook(&self, agent: &str, event: &str) -> String {
        let words = self.with(&["hook", agent, event]);
        shell::join(words.iter().map(|word| Cow::Borrowed(word.as_str())))
    }

    /// Program and arguments of the MCP server.
    pub(crate) fn server(&self) -> (String, Vec<String>) {
        let mut words = self.with(&["mcp"]).into_iter();
        (words.next().unwrap_or_default(), words.collect())
    }
}

/// One of the agent's files, and what is put into it.
#[derive(Debug)]
pub enum File {
    /// Members and hooks of a JSON file.
    Json {
        /// Where it is.
        path: PathBuf,
        /// Where each member is, and what it is.
        members: Vec<(&'static [&'static str], Value)>,
        /// The group of hooks for each event.
        hooks: Vec<(&'static str, Value)>,
    },
    /// A table of a TOML file.
    Toml {
        /// Where it is.
        path: PathBuf,
        /// Its name.
        table: &'static [&'static str],
        /// Its text.
        block: String,
    },
    /// A file that is homing's alone.
    Own {
        /// Where it is.
        path: PathBuf,
        /// All of it.
        content: &'static str,
    },
}

/// All that is done for one agent.
#[derive(Debug)]
pub struct Installation {
    /// In the order in which it is done.
    pub files: Vec<File>,
    /// What the user has to know.
    pub note: &'static str,
}

/// The agent's skill, in the folder of skills below this one. What each agent is taught is what works in it.
pub(crate) fn skill(folder: &Path, content: &'static str) -> File {
    File::Own { path: folder.join("skills").join(NAME).join("SKILL.md"), content }
}

/// A group of hooks with one command.
pub(crate) fn group(handlers: &[Value]) -> Value {
    json!({ "hooks": handlers })
}
