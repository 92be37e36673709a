//! What is put into one file of an agent, and how it is taken out again. Pure: text in, text out.

use std::path::{Path, PathBuf};

use homing_model::Agent;
use serde_json::Value;

use super::backup::Before;
use super::jsonc::{Kind, Node, parse};
use super::splice::{self, Which, append, elements, remove, set};

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
    pub(super) agent: Agent,
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
    Json(#[from] splice::Error),
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
        let root = parse(text).ok()??;
        let mut paths = members.members.iter();
        let (path, _) =
            paths.find(|(path, ours)| root.at(path).is_some_and(|node| calls_homing(&node.value(), ours)))?;
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
            Self::Members(_) => value(&was)? == value(&is)?,
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
        let root = parse(text).ok().flatten();
        root.is_some_and(|root| self.members.iter().any(|(path, _)| root.at(path).is_some()))
    }

    /// Whether a hook of ours is in a text.
    fn has_hooks(&self, text: &str) -> bool {
        let root = parse(text).ok().flatten();
        let events = root.as_ref().and_then(|root| root.member(HOOKS)).map(Node::items).unwrap_or_default();
        events.iter().any(|event| {
            let groups = elements(root.as_ref(), &[HOOKS, &event.key]);
            groups.iter().any(|group| self.ours_in(group) > 0)
        })
    }

    /// Whether whatever has one of our names is written as we do it, for another home or another place of the program at most.
    fn are_as_we_write(&self, text: &str) -> bool {
        let Some(root) = parse(text).ok().flatten() else { return false };
        let mut there = self.members.iter().filter_map(|(path, ours)| Some((root.at(path)?.value(), ours)));
        there.all(|(there, ours)| is_as_ours(&there, ours))
    }

    fn put_in(&self, text: &str, whose: Whose) -> Result<String, Error> {
        let mut text = text.to_owned();
        for (path, value) in &self.members {
            let root = parse(&text).map_err(splice::Error::from)?;
            match root.as_ref().and_then(|root| root.at(path)).map(Node::value) {
                Some(there) if !calls_homing(&there, value) => {
                    return Err(Error::Taken(format!("`{}`", path.join("."))));
                }
                Some(_) if whose == Whose::Theirs => {}
                Some(_) | None => text = set(&text, path, value)?,
            }
        }
        for (event, group) in &self.hooks {
            let path = [HOOKS, event];
            let there = elements(parse(&text).map_err(splice::Error::from)?.as_ref(), &path);
            let ours: Vec<_> = there.iter().filter(|group| self.ours_in(group) > 0).collect();
            if ours != [group] {
                text = append(&self.take_out_groups(&text, event)?, &path, group)?;
            }
        }
        Ok(text)
    }

    fn take_out(&self, text: &str, before: Option<&str>, whose: Whose) -> Result<String, Error> {
        let before = before.and_then(|before| parse(before).ok().flatten());
        let was_there = |path: &[&str]| before.as_ref().is_some_and(|root| root.at(path).is_some());
        let mut text = text.to_owned();
        let events: Vec<String> = match parse(&text).map_err(splice::Error::from)?.and_then(|root| {
            root.member(HOOKS).map(|hooks| hooks.items().iter().map(|item| item.key.clone()).collect())
        }) {
            // Also of events that an earlier release had.
            Some(events) if !self.hooks.is_empty() => events,
            _ => Vec::new(),
        };
        for event in &events {
            let without = self.take_out_groups(&text, event)?;
            if without != text {
                text = take_out_empty(&without, &[HOOKS, event], &was_there)?;
            }
        }
        for (path, value) in self.members.iter().filter(|_| whose == Whose::Ours) {
            let root = parse(&text).map_err(splice::Error::from)?;
            let there = root.as_ref().and_then(|root| root.at(path)).map(Node::value);
            if let Some((key, above)) = path.split_last()
                && there.is_some_and(|there| calls_homing(&there, value))
            {
                let without = remove(&text, above, Which::Member(key))?;
                if without != text {
                    text = take_out_empty(&without, above, &was_there)?;
                }
            }
        }
        Ok(text)
    }

    /// Takes our handlers out of the groups of an event, and groups that hold nothing else.
    fn take_out_groups(&self, text: &str, event: &str) -> Result<String, Error> {
        let mut text = text.to_owned();
        let root = parse(&text).map_err(splice::Error::from)?;
        let groups = elements(root.as_ref(), &[HOOKS, event]);
        for (index, group) in groups.iter().enumerate().rev() {
            let handlers = group.get(HOOKS).and_then(Value::as_array).map_or(0, Vec::len);
            match self.ours_in(group) {
                0 => {}
                ours if ours == handlers => text = remove(&text, &[HOOKS, event], Which::Element(index))?,
                _ => text = self.take_out_handlers(&text, event, index)?,
            }
        }
        Ok(text)
    }

    /// Takes our handlers out of a group that others are in too.
    fn take_out_handlers(&self, text: &str, event: &str, group: usize) -> Result<String, Error> {
        let mut text = text.to_owned();
        loop {
            let root = parse(&text).map_err(splice::Error::from)?;
            let handlers = root
                .as_ref()
                .and_then(|root| root.at(&[HOOKS, event])?.items().get(group)?.node.member(HOOKS));
            let Some(handlers) = handlers else { return Ok(text) };
            match handlers.items().iter().position(|item| self.is_ours(&item.node.value())) {
                Some(index) => text = splice::take_out(&text, handlers, index),
                None => return Ok(text),
            }
        }
    }

    /// How many handlers of a group are ours.
    fn ours_in(&self, group: &Value) -> usize {
        let handlers = group.get(HOOKS).and_then(Value::as_array);
        handlers.map_or(0, |handlers| handlers.iter().filter(|handler| self.is_ours(handler)).count())
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

/// Takes out what is empty where the path leads, and above it, unless it was there before.
fn take_out_empty(
    text: &str,
    path: &[&str],
    was_there: &impl Fn(&[&str]) -> bool,
) -> Result<String, splice::Error> {
    let mut text = text.to_owned();
    let mut path = path.to_vec();
    while let Some((key, above)) = path.split_last() {
        let root = parse(&text)?;
        let node = root.as_ref().and_then(|root| root.at(&path));
        let empty =
            node.is_some_and(|node: &Node| !matches!(node.kind, Kind::Scalar(_)) && node.items().is_empty());
        if !empty || was_there(&path) {
            break;
        }
        text = remove(&text, above, Which::Member(key))?;
        path.pop();
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

/// What a text says; one that says nothing is an object without members.
fn value(text: &str) -> Result<Value, splice::Error> {
    Ok(parse(text)?.map_or_else(|| Value::Object(serde_json::Map::new()), |root| root.value()))
}

fn table(text: &str) -> Result<toml::Value, Error> {
    let table: toml::Table = toml::from_str(text).map_err(|error| Error::Toml(error.to_string()))?;
    Ok(toml::Value::Table(table))
}
