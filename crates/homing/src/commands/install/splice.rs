//! Edits of a JSON text that leave every other byte where it was: comments, order, blanks, line ends.
//!
//! Something is put behind what is there last, in the manner of its neighbours, and taken out with exactly what came with it. Only where an
//! empty pair of brackets was filled can it not be seen afterwards how blank it was; the backup knows that.

use serde::Serialize;
use serde_json::Value;

use super::jsonc::{Item, Kind, Malformed, Node, parse};

/// Why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// It is no JSON.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// Something else is where ours belongs.
    #[error("`{path}` is not {expected}")]
    Unexpected {
        /// Where.
        path: String,
        /// What belongs there.
        expected: &'static str,
    },
}

fn unexpected(path: &[&str], expected: &'static str) -> Error {
    let path = if path.is_empty() { "the whole file".to_owned() } else { path.join(".") };
    Error::Unexpected { path, expected }
}

/// Puts a member where the path leads, and makes the objects on the way. One that is there with this value stays as it is written.
pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, Error> {
    let Some((key, above)) = path.split_last() else { return Err(unexpected(path, "a member")) };
    let Some(root) = parse(text)? else { return Ok(whole(text, path, value)) };
    let mut node = &root;
    for (depth, step) in above.iter().enumerate() {
        object(node, &above[..depth])?;
        match node.member(step) {
            Some(next) => node = next,
            None => {
                return Ok(insert(text, node, Some(step), &nested(&path[depth + 1..], value)));
            }
        }
    }
    object(node, above)?;
    match node.member(key) {
        Some(there) if there.value() == *value => Ok(text.to_owned()),
        Some(there) => Ok(replace(text, there, value)),
        None => Ok(insert(text, node, Some(key), value)),
    }
}

/// Puts an element at the end of the array that the path leads to, and makes that where there is none.
pub(super) fn append(text: &str, path: &[&str], value: &Value) -> Result<String, Error> {
    match parse(text)?.as_ref().and_then(|root| root.at(path)) {
        None => set(text, path, &Value::Array(vec![value.clone()])),
        Some(node @ Node { kind: Kind::Array(_), .. }) => Ok(insert(text, node, None, value)),
        Some(_) => Err(unexpected(path, "a list")),
    }
}

/// Takes out a member, or the element with this index.
pub(super) fn remove(text: &str, above: &[&str], which: Which<'_>) -> Result<String, Error> {
    let root = parse(text)?;
    let Some(node) = root.as_ref().and_then(|root| root.at(above)) else { return Ok(text.to_owned()) };
    let index = match which {
        Which::Member(key) => node.items().iter().rposition(|item| item.key == key),
        Which::Element(index) => Some(index),
    };
    match index {
        Some(index) if index < node.items().len() => Ok(take_out(text, node, index)),
        _ => Ok(text.to_owned()),
    }
}

/// What is taken out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which<'a> {
    /// The member with this key.
    Member(&'a str),
    /// The element with this index.
    Element(usize),
}

fn object(node: &Node, path: &[&str]) -> Result<(), Error> {
    match node.kind {
        Kind::Object(_) => Ok(()),
        Kind::Array(_) | Kind::Scalar(_) => Err(unexpected(path, "an object")),
    }
}

/// How a text is written.
struct Manner<'a> {
    line: &'a str,
    indent: String,
}

impl<'a> Manner<'a> {
    fn of(text: &'a str) -> Self {
        let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let first = text.lines().find_map(|line| {
            let blank = leading(line);
            (!blank.is_empty() && line.trim_start().starts_with('"')).then(|| blank.to_owned())
        });
        Self { line, indent: first.unwrap_or_else(|| "  ".to_owned()) }
    }

    /// A value over several lines, all but the first behind `base`.
    fn long(&self, value: &Value, base: &str) -> String {
        let mut out = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.indent.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        if value.serialize(&mut serializer).is_err() {
            return value.to_string();
        }
        String::from_utf8_lossy(&out).replace('\n', &format!("{}{base}", self.line))
    }
}

fn leading(line: &str) -> &str {
    let length = line.bytes().take_while(|byte| b" \t".contains(byte)).count();
    line.get(..length).unwrap_or_default()
}

/// The blanks before the first character of the line that this place is in.
fn indent_at(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    leading(before.get(before.rfind('\n').map_or(0, |newline| newline + 1)..).unwrap_or_default())
}

/// A text with nothing in it gets an object; what it says in comments stays.
fn whole(text: &str, path: &[&str], value: &Value) -> String {
    let manner = Manner::of(text);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { manner.line };
    format!("{text}{gap}{}{}", manner.long(&nested(path, value), ""), manner.line)
}

/// A value inside of objects with these keys.
fn nested(keys: &[&str], value: &Value) -> Value {
    let wrap = |value, key: &&str| Value::Object([((*key).to_owned(), value)].into_iter().collect());
    keys.iter().rev().fold(value.clone(), wrap)
}

fn replace(text: &str, node: &Node, value: &Value) -> String {
    let long = text.get(node.start..node.end).is_some_and(|old| old.contains('\n'));
    let written =
        if long { Manner::of(text).long(value, indent_at(text, node.start)) } else { value.to_string() };
    spliced(text, &[(node.start, node.end, &written)])
}

fn insert(text: &str, node: &Node, key: Option<&str>, value: &Value) -> String {
    let manner = Manner::of(text);
    let (open, close) = (node.start + 1, node.end - 1);
    let outer = indent_at(text, node.start).to_owned();
    let label = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
    let Some(last) = node.items().last() else {
        let inner = format!("{outer}{}", manner.indent);
        let item = format!("{}{inner}{label}{}", manner.line, manner.long(value, &inner));
        let said = text.get(open..close).unwrap_or_default();
        // Behind the comments that are there. A bracket that shares its line with nothing but its fellow gets a line of its own.
        let behind = open + said.trim_end().len();
        let alone = said.trim().is_empty() && !said.contains('\n');
        let (from, ends) =
            if alone { (close, format!("{}{outer}", manner.line)) } else { (behind, String::new()) };
        return spliced(text, &[(behind, from, &format!("{item}{ends}"))]);
    };
    let on_its_line =
        text.get(..last.start).is_some_and(|before| before.trim_end_matches([' ', '\t']).ends_with('\n'));
    let lead =
        if on_its_line { format!("{}{}", manner.line, indent_at(text, last.start)) } else { " ".to_owned() };
    let written =
        if on_its_line { manner.long(value, indent_at(text, last.start)) } else { value.to_string() };
    let item = format!("{lead}{label}{written}");
    match last.comma {
        Some(comma) => {
            let behind = if on_its_line { behind_comments(text, comma + 1) } else { comma + 1 };
            spliced(text, &[(behind, behind, &format!("{item},"))])
        }
        None => {
            let behind = if on_its_line { behind_comments(text, last.end()) } else { last.end() };
            spliced(text, &[(last.end(), last.end(), ","), (behind, behind, &item)])
        }
    }
}

/// The end of the comments that follow on the same line.
fn behind_comments(text: &str, from: usize) -> usize {
    let mut end = from;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let blank = leading(rest).len();
        let comment = rest.get(blank..).unwrap_or_default();
        let length = if comment.starts_with("//") {
            comment.find(['\r', '\n']).unwrap_or(comment.len())
        } else if comment.starts_with("/*") {
            match comment.find("*/") {
                Some(length) if !comment[..length].contains('\n') => length + 2,
                _ => return end,
            }
        } else {
            return end;
        };
        end += blank + length;
    }
}

/// Takes out one item of an object or an array.
pub(super) fn take_out(text: &str, node: &Node, index: usize) -> String {
    let items = node.items();
    let Some(item) = items.get(index) else { return text.to_owned() };
    let before = text.get(..item.start).unwrap_or_default();
    let begin = before.trim_end_matches([' ', '\t', '\r', '\n']).len();
    let end = item.comma.map_or_else(|| item.end(), |comma| comma + 1);
    let previous = index.checked_sub(1).and_then(|previous| items.get(previous)).and_then(|item| item.comma);
    // A comment to the end of its line must not swallow what comes after.
    let next_line = text.get(end..).is_some_and(|rest| rest.starts_with(['\r', '\n']));
    let from = previous.unwrap_or(node.start) + 1;
    let begin = if next_line || !ends_in_line_comment(text, from, begin) { begin } else { item.start };
    if let [_] = items {
        let inside = format!(
            "{}{}",
            text.get(node.start + 1..begin).unwrap_or_default(),
            text.get(end..node.end - 1).unwrap_or_default()
        );
        if inside.trim().is_empty() {
            return spliced(text, &[(node.start + 1, node.end - 1, "")]);
        }
        return spliced(text, &[(begin, end, "")]);
    }
    // The last one, with no comma of its own: the one before it came with it.
    match (item.comma, previous) {
        (None, Some(comma)) => spliced(text, &[(comma, comma + 1, ""), (begin.max(comma + 1), end, "")]),
        _ => spliced(text, &[(begin, end, "")]),
    }
}

/// Whether the blanks and comments between two places end in a comment that goes to the end of its line.
fn ends_in_line_comment(text: &str, from: usize, to: usize) -> bool {
    let mut rest = text.get(from..to).unwrap_or_default().trim_start();
    loop {
        let end = if rest.starts_with("//") {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2)
        } else {
            return false;
        };
        match end {
            Some(end) => rest = rest.get(end..).unwrap_or_default().trim_start(),
            None => return true,
        }
    }
}

/// The text with stretches replaced; they are in order and do not overlap.
fn spliced(text: &str, edits: &[(usize, usize, &str)]) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for (from, to, new) in edits {
        out.push_str(text.get(at..*from).unwrap_or_default());
        out.push_str(new);
        at = *to;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Elements of the list that a path leads to.
pub(super) fn elements(root: Option<&Node>, path: &[&str]) -> Vec<Value> {
    let items = root.and_then(|root| root.at(path)).map(Node::items).unwrap_or_default();
    items.iter().map(|item: &Item| item.node.value()).collect()
}
