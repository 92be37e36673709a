//! What is put into one file of an agent, and how it is taken out again. Pure: text in, text out.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::backup::Before;
use super::jsonc;

/// One file.
#[derive(Debug)]
pub(super) enum Edit {
    /// Members and hooks in a JSON file of the agent's.
    Members(Members),
    /// A table in a TOML file of the agent's.
    Block(Block),
    /// A file that is ours alone.
    Own(Own),
}

/// Members and hooks in a JSON file.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) path: PathBuf,
    pub(super) agent: &'static str,
    /// Where each is, and what it is.
    pub(super) members: Vec<(&'static [&'static str], Value)>,
    /// The group of hooks for each event.
    pub(super) hooks: Vec<(&'static str, Value)>,
}

/// A table in a TOML file, between two comments that say whose it is.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) path: PathBuf,
    pub(super) table: &'static [&'static str],
    pub(super) block: String,
}

/// A file that is ours alone; it says so itself.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) path: PathBuf,
    pub(super) content: &'static str,
}

/// Whose a server is that has our name and calls homing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// It was not there before, or is as we write it where we have been: it is brought up to date, and taken out.
    Ours,
    /// It was there before, or nothing shows that it was not: it stays as it is.
    Theirs,
}

/// How a file of ours is known.
const OURS: &str = "homing install: this file is written and taken out by it";
const BEGIN: &str = "# homing: begin (written by `homing install codex`, taken out by `--uninstall`)\n";
const END: &str = "# homing: end\n";
const HOOKS: &str = "hooks";

/// Why a file cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// Its JSON does not fit.
    #[error("{0}")]
    Json(#[from] jsonc::Error),
    /// Its TOML does not fit.
    #[error("{0}")]
    Toml(String),
    /// Somebody else's table or file has our name.
    #[error("{0} is there already, and homing did not write it")]
    Taken(String),
}

impl Edit {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Members(members) => &members.path,
            Self::Block(block) => &block.path,
            Self::Own(own) => &own.path,
        }
    }

    /// Whose a server is that has our name: by how the file was before, if that is known; else by what it says, where `homing install` was
    /// here before (`was_here`).
    pub(super) fn whose(&self, before: Option<&Before>, now: Option<&str>, was_here: bool) -> Whose {
        let was_there = match (self, before) {
            (Self::Members(members), Some(Before::Text(text))) => members.any_in(text),
            (Self::Members(members), None) => {
                !(was_here && now.is_some_and(|now| members.are_as_we_write(now)))
            }
            (Self::Members(_), Some(Before::Absent(_))) | (Self::Block(_) | Self::Own(_), _) => false,
        };
        if was_there { Whose::Theirs } else { Whose::Ours }
    }

    /// Whether something is in a text that nobody else would have written: our hooks, our marks, a file of ours.
    pub(super) fn is_marked(&self, text: &str) -> bool {
        match self {
            Self::Members(members) => members.has_hooks(text),
            Self::Block(block) => block.found(text).is_some(),
            Self::Own(_) => text.contains(OURS),
        }
    }

    /// Where a server is that calls homing and has our name.
    pub(super) fn server_in(&self, text: &str) -> Option<String> {
        let Self::Members(members) = self else { return None };
        let root = jsonc::read(text).ok()?;
        let calls =
            |path: &[&str], ours| jsonc::at(&root, path).is_some_and(|there| calls_homing(there, ours));
        let (path, _) = members.members.iter().find(|(path, ours)| calls(path, ours))?;
        Some(path.join("."))
    }

    /// The text with what is ours in it. Twice is once.
    pub(super) fn put_in(&self, text: Option<&str>, whose: Whose) -> Result<String, Error> {
        match self {
            Self::Members(members) => members.put_in(text.unwrap_or_default(), whose),
            Self::Block(block) => block.put_in(text.unwrap_or_default()),
            Self::Own(own) => match text {
                Some(there) if !there.contains(OURS) => Err(Error::Taken("it".to_owned())),
                Some(_) | None => Ok(own.content.to_owned()),
            },
        }
    }

    /// The text without what is ours. What was made to hold it goes too once it is empty, unless it was in `before`.
    pub(super) fn take_out(&self, text: &str, before: Option<&str>, whose: Whose) -> Result<String, Error> {
        match self {
            Self::Members(members) => members.take_out(text, before, whose),
            Self::Block(block) => Ok(block.take_out(text)),
            Self::Own(_) => Ok(if text.contains(OURS) { String::new() } else { text.to_owned() }),
        }
    }

    /// Whether two texts say the same but for what is ours: the last look before one takes the place of the other.
    pub(super) fn says_the_same(&self, from: &str, to: &str) -> Result<bool, Error> {
        let without = |text| self.take_out(text, Some(from), Whose::Ours);
        let (was, is) = (without(from)?, without(to)?);
        Ok(match self {
            Self::Members(_) => jsonc::read(&was)? == jsonc::read(&is)?,
            Self::Block(_) => table(&was)? == table(&is)?,
            Self::Own(_) => true,
        })
    }

    /// Whether nothing is left that anybody wrote.
    pub(super) fn is_blank(&self, text: &str) -> bool {
        matches!(text.trim(), "" | "{}")
    }
}

impl Members {
    /// Whether something has one of our names in a text.
    fn any_in(&self, text: &str) -> bool {
        let root = jsonc::read(text).unwrap_or_default();
        self.members.iter().any(|(path, _)| jsonc::at(&root, path).is_some())
    }

    /// Whether a hook of ours is in a text.
    fn has_hooks(&self, text: &str) -> bool {
        let root = jsonc::read(text).unwrap_or_default();
        let events = root.get(HOOKS).and_then(Value::as_object);
        events.into_iter().flatten().any(|(_, groups)| elements(Some(groups)).iter().any(|it| self.is_in(it)))
    }

    /// Whether whatever has one of our names is written as we do it, for another home or another place of the program at most.
    fn are_as_we_write(&self, text: &str) -> bool {
        let Ok(root) = jsonc::read(text) else { return false };
        let mut there = self.members.iter().filter_map(|(path, ours)| Some((jsonc::at(&root, path)?, ours)));
        there.all(|(there, ours)| is_as_ours(there, ours))
    }

    fn put_in(&self, text: &str, whose: Whose) -> Result<String, Error> {
        let mut text = text.to_owned();
        for (path, value) in &self.members {
            match jsonc::at(&jsonc::read(&text)?, path) {
                Some(there) if !calls_homing(there, value) => {
                    return Err(Error::Taken(format!("`{}`", path.join("."))));
                }
                Some(_) if whose == Whose::Theirs => {}
                Some(_) | None => text = jsonc::set(&text, path, value)?,
            }
        }
        for (event, group) in &self.hooks {
            let path = [HOOKS, event];
            let root = jsonc::read(&text)?;
            let there = elements(jsonc::at(&root, &path)).iter();
            if !there.filter(|there| self.is_in(there)).eq([group]) {
                text = jsonc::append(&self.take_out_hooks(&text, event)?, &path, group)?;
            }
        }
        Ok(text)
    }

    fn take_out(&self, text: &str, before: Option<&str>, whose: Whose) -> Result<String, Error> {
        let before = before.and_then(|before| jsonc::read(before).ok());
        let was_there = |path: &[&str]| before.as_ref().is_some_and(|root| jsonc::at(root, path).is_some());
        let mut text = text.to_owned();
        let root = jsonc::read(&text)?;
        // Also of events that an earlier release had.
        let events = root.get(HOOKS).and_then(Value::as_object).filter(|_| !self.hooks.is_empty());
        for event in events.into_iter().flatten().map(|(event, _)| event) {
            let without = self.take_out_hooks(&text, event)?;
            if without != text {
                text = take_out_empty(&without, &[HOOKS, event], &was_there)?;
            }
        }
        for (path, value) in self.members.iter().filter(|_| whose == Whose::Ours) {
            if jsonc::at(&jsonc::read(&text)?, path).is_some_and(|there| calls_homing(there, value)) {
                text = jsonc::remove(&text, path)?;
                text = take_out_empty(&text, &path[..path.len() - 1], &was_there)?;
            }
        }
        Ok(text)
    }

    /// Takes our handlers out of the groups of an event, and groups that hold nothing else.
    fn take_out_hooks(&self, text: &str, event: &str) -> Result<String, Error> {
        let mut text = text.to_owned();
        let root = jsonc::read(&text)?;
        for (index, group) in elements(jsonc::at(&root, &[HOOKS, event])).iter().enumerate().rev() {
            let index = index.to_string();
            let handlers = elements(group.get(HOOKS));
            if self.is_in(group) && handlers.iter().all(|handler| self.is_ours(handler)) {
                text = jsonc::remove(&text, &[HOOKS, event, &index])?;
                continue;
            }
            for (handler, _) in handlers.iter().enumerate().rev().filter(|(_, it)| self.is_ours(it)) {
                text = jsonc::remove(&text, &[HOOKS, event, &index, HOOKS, &handler.to_string()])?;
            }
        }
        Ok(text)
    }

    /// Whether a handler of a group is ours.
    fn is_in(&self, group: &Value) -> bool {
        elements(group.get(HOOKS)).iter().any(|handler| self.is_ours(handler))
    }

    /// A handler is ours if it calls `homing … hook AGENT`, wherever that is.
    fn is_ours(&self, handler: &Value) -> bool {
        let Some(command) = handler.get("command").and_then(Value::as_str) else { return false };
        let hook = format!(" hook {} ", self.agent);
        command.split_once(&hook).is_some_and(|(program, _)| {
            let mut words = program.split([' ', '\'', '"', '/']);
            words.any(|word| word == "homing")
        })
    }
}

/// The program of a server and its arguments.
fn words(server: &Value) -> Vec<&str> {
    let (program, rest) = match server.get("command") {
        Some(Value::Array(words)) => (None, words.as_slice()),
        program => {
            let rest = server.get("args").and_then(Value::as_array);
            (program, rest.map(Vec::as_slice).unwrap_or_default())
        }
    };
    program.into_iter().chain(rest).map(|word| word.as_str().unwrap_or_default()).collect()
}

/// Whether a server is one of homing's: a program of that name, perhaps a home, and `mcp`.
fn calls_homing(server: &Value, ours: &Value) -> bool {
    let words = words(server);
    let named = words.first().is_some_and(|program| *program == "homing" || program.ends_with("/homing"));
    server == ours || (named && matches!(words[1..], ["mcp", ..] | ["--home", _, "mcp", ..]))
}

/// Whether a server is one of homing's and has nothing that `homing install` would not have written: no further argument, nothing else set,
/// and the program by its path where we write that.
fn is_as_ours(server: &Value, ours: &Value) -> bool {
    let (there, here) = (words(server), words(ours));
    let by_path = |words: &[&str]| words.first().is_some_and(|program| program.starts_with('/'));
    let rest = |server: &Value| {
        let mut rest = server.as_object().cloned().unwrap_or_default();
        rest.retain(|name, _| name != "command" && name != "args");
        rest
    };
    calls_homing(server, ours)
        && matches!(there[1..], ["mcp"] | ["--home", _, "mcp"])
        && by_path(&there) == by_path(&here)
        && rest(server) == rest(ours)
}

/// The elements of a list; none of anything else.
fn elements(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Takes out what is empty where the path leads, and above it, unless it was there before.
fn take_out_empty(
    text: &str,
    mut path: &[&str],
    was_there: &impl Fn(&[&str]) -> bool,
) -> Result<String, jsonc::Error> {
    let mut text = text.to_owned();
    while let [above @ .., _] = path {
        let root = jsonc::read(&text)?;
        let empty = match jsonc::at(&root, path) {
            Some(Value::Object(members)) => members.is_empty(),
            Some(Value::Array(elements)) => elements.is_empty(),
            _ => false,
        };
        if !empty || was_there(path) {
            break;
        }
        text = jsonc::remove(&text, path)?;
        path = above;
    }
    Ok(text)
}

impl Block {
    fn put_in(&self, text: &str) -> Result<String, Error> {
        let before = table(text)?;
        let ours = format!("{BEGIN}{}{END}", self.block);
        let new = match self.found(text) {
            Some(Found { head, theirs, rest }) => format!("{head}{ours}{theirs}{rest}"),
            None => {
                let found = self.table.iter().try_fold(&before, |value, key| value.get(key));
                if found.is_some() {
                    return Err(Error::Taken(format!("`[{}]`", self.table.join("."))));
                }
                let gap = if text.is_empty() {
                    ""
                } else if text.ends_with('\n') {
                    "\n"
                } else {
                    "\n\n"
                };
                format!("{text}{gap}{ours}")
            }
        };
        table(&new)?;
        Ok(new)
    }

    fn take_out(&self, text: &str) -> String {
        let Some(Found { head, theirs, rest }) = self.found(text) else { return text.to_owned() };
        // The blank line came with it.
        let head = head.strip_suffix('\n').filter(|head| head.ends_with('\n')).unwrap_or(head);
        format!("{head}{theirs}{rest}")
    }

    /// Where our block is. What is between its marks is not all ours: Codex writes new tables before a comment at the end of the file, and
    /// so before our last mark. Ours are the table and those below it, which have neither blank lines nor comments.
    fn found<'text>(&self, text: &'text str) -> Option<Found<'text>> {
        let (head, rest) = text.split_once(BEGIN)?;
        let (between, rest) = rest.split_once(END)?;
        let name = self.table.join(".");
        let (own, below) = (format!("[{name}]"), format!("[{name}."));
        let (mut ours, mut theirs) = (false, String::new());
        for line in between.split_inclusive('\n') {
            let said = line.trim();
            if said.starts_with('[') {
                ours = said.starts_with(&own) || said.starts_with(&below);
            }
            if !ours || said.is_empty() || said.starts_with('#') {
                theirs.push_str(line);
            }
        }
        Some(Found { head, theirs, rest })
    }
}

/// A text with our block in it, without the block.
struct Found<'text> {
    head: &'text str,
    /// What others have written between our marks.
    theirs: String,
    rest: &'text str,
}

fn table(text: &str) -> Result<toml::Value, Error> {
    let table: toml::Table = toml::from_str(text).map_err(|error| Error::Toml(error.to_string()))?;
    Ok(toml::Value::Table(table))
}
