//! Edits of JSON with comments that leave every other byte in place: comments, order, blanks, line ends.
//!
//! `jsonc-parser` says where everything is. Its own edits are not used: they drop comments and blank
//! lines beside what they insert or remove, which belong to the user.
//!
//! A new item goes behind the last one, formatted like its neighbours, and is removed with exactly
//! what was inserted with it. Only blanks between an empty pair of brackets are lost; the backup has them.

use jsonc_parser::ast::{self, Object};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde::Serialize;
use serde_json::Value;

/// Why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("line {line}, column {column}: {reason}")]
    Malformed { line: usize, column: usize, reason: String },
    #[error("`{path}` is not {expected}")]
    Unexpected { path: String, expected: &'static str },
}

fn unexpected(path: &[&str], expected: &'static str) -> Error {
    let path = if path.is_empty() { "the whole file".to_owned() } else { path.join(".") };
    Error::Unexpected { path, expected }
}

/// The value of a text. One with nothing but blanks and comments is an empty object.
pub(super) fn read(text: &str) -> Result<Value, Error> {
    let root = Document::parse(text)?.root;
    Ok(root.map_or_else(|| Value::Object(serde_json::Map::new()), Value::from))
}

/// The value that a path of keys leads to.
pub(super) fn at<'value>(root: &'value Value, path: &[&str]) -> Option<&'value Value> {
    path.iter().try_fold(root, |value, key| value.get(*key))
}

/// Sets a member and creates the objects above it. One with an equal value keeps its formatting.
pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, Error> {
    let document = Document::parse(text)?;
    let Some(mut node) = document.root.as_ref() else { return Ok(document.with_root(path, value)) };
    for (depth, key) in path.iter().enumerate() {
        let object = node.as_object().ok_or_else(|| unexpected(&path[..depth], "an object"))?;
        match member(object, key) {
            Some(next) => node = next,
            None => return Ok(document.insert(node, Some(key), &nested(&path[depth + 1..], value))),
        }
    }
    let same = Value::from(node.clone()) == *value;
    Ok(if same { text.to_owned() } else { document.replace(node, value) })
}

/// Appends an element to the array at a path of keys, which is created if it does not exist.
pub(super) fn append(text: &str, path: &[&str], value: &Value) -> Result<String, Error> {
    let document = Document::parse(text)?;
    match document.at(path) {
        None => set(text, path, &Value::Array(vec![value.clone()])),
        Some(node @ ast::Value::Array(_)) => Ok(document.insert(node, None, value)),
        Some(_) => Err(unexpected(path, "a list")),
    }
}

/// Removes what a path leads to, if it exists. A step is the key of a member or the index of an element.
pub(super) fn remove(text: &str, path: &[&str]) -> Result<String, Error> {
    let document = Document::parse(text)?;
    let found = path.split_last().and_then(|(step, above)| {
        let node = document.at(above)?;
        Some((node, position(node, step)?))
    });
    Ok(found.map_or_else(|| text.to_owned(), |(node, index)| document.take_out(node, index)))
}

/// A value inside of objects with these keys.
fn nested(keys: &[&str], value: &Value) -> Value {
    let wrap = |value, key: &&str| Value::Object([((*key).to_owned(), value)].into_iter().collect());
    keys.iter().rev().fold(value.clone(), wrap)
}

/// A member by its key. Agents read the last one of a key that is there twice.
fn member<'node, 'text>(object: &'node Object<'text>, key: &str) -> Option<&'node ast::Value<'text>> {
    object.properties.iter().rfind(|property| property.name.as_str() == key).map(|property| &property.value)
}

/// The index of the item that a step leads to.
fn position(node: &ast::Value<'_>, step: &str) -> Option<usize> {
    match node {
        ast::Value::Object(object) => object.properties.iter().rposition(|item| item.name.as_str() == step),
        ast::Value::Array(array) => step.parse().ok().filter(|index| *index < array.elements.len()),
        _ => None,
    }
}

/// A member of an object or an element of an array, in bytes of the text.
struct Item {
    start: usize,
    end: usize,
    /// Where the comma after it is.
    comma: Option<usize>,
}

struct Document<'text> {
    byte_order_mark: &'static str,
    text: &'text str,
    root: Option<ast::Value<'text>>,
    /// Comments included.
    tokens: Vec<TokenAndRange<'text>>,
}

impl<'text> Document<'text> {
    fn parse(text: &'text str) -> Result<Self, Error> {
        let stripped = text.strip_prefix('\u{feff}');
        let byte_order_mark = if stripped.is_some() { "\u{feff}" } else { "" };
        let text = stripped.unwrap_or(text);
        let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = parse_to_ast(text, &collect, &options)
            .map_err(|error| malformed(text, error.range().start, &error.kind().to_string()))?;
        let tokens = parsed.tokens.unwrap_or_default();
        let broken = |token: &&TokenAndRange<'_>| {
            matches!(token.token, Token::String(_)) && token.text(text).contains(char::is_control)
        };
        match tokens.iter().find(broken) {
            Some(token) => Err(malformed(text, token.start(), "line breaks and tabs in a text are escaped")),
            None => Ok(Self { byte_order_mark, text, root: parsed.value, tokens }),
        }
    }

    /// The node that a path of keys and indexes leads to.
    fn at(&self, path: &[&str]) -> Option<&ast::Value<'text>> {
        path.iter().try_fold(self.root.as_ref()?, |node, step| match node {
            ast::Value::Object(object) => member(object, step),
            ast::Value::Array(array) => array.elements.get(position(node, step)?),
            _ => None,
        })
    }

    fn items(&self, node: &ast::Value<'_>) -> Vec<Item> {
        let ranges: Vec<_> = match node {
            ast::Value::Object(object) => object.properties.iter().map(Ranged::range).collect(),
            ast::Value::Array(array) => array.elements.iter().map(Ranged::range).collect(),
            _ => Vec::new(),
        };
        let item = |range: jsonc_parser::common::Range| {
            let next = self.tokens_from(range.end).iter().find(|token| !is_comment(token));
            let comma = next.filter(|token| token.token == Token::Comma).map(Ranged::start);
            Item { start: range.start, end: range.end, comma }
        };
        ranges.into_iter().map(item).collect()
    }

    fn tokens_from(&self, at: usize) -> &[TokenAndRange<'text>] {
        &self.tokens[self.tokens.partition_point(|token| token.start() < at)..]
    }

    /// The text with an object as its root, behind its comments.
    fn with_root(&self, path: &[&str], value: &Value) -> String {
        let style = Style::of(self.text);
        let gap = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { style.line };
        let root = style.long(&nested(path, value), "");
        self.spliced(&[(self.text.len(), self.text.len(), &format!("{gap}{root}{}", style.line))])
    }

    fn replace(&self, node: &ast::Value<'_>, value: &Value) -> String {
        let written = if node.text(self.text).contains('\n') {
            Style::of(self.text).long(value, indent_at(self.text, node.start()))
        } else {
            value.to_string()
        };
        self.spliced(&[(node.start(), node.end(), &written)])
    }

    /// Puts an item behind the last one of an object or an array.
    fn insert(&self, node: &ast::Value<'_>, key: Option<&str>, value: &Value) -> String {
        let style = Style::of(self.text);
        let label = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
        let items = self.items(node);
        let Some(last) = items.last() else { return self.insert_first(node, &label, value, &style) };
        let before = self.text[..last.start].trim_end_matches([' ', '\t']);
        let on_its_line = before.ends_with('\n');
        let item = if on_its_line {
            let indent = indent_at(self.text, last.start);
            format!("{}{indent}{label}{}", style.line, style.long(value, indent))
        } else {
            format!(" {label}{value}")
        };
        let behind = |at| if on_its_line { self.behind_comments(at) } else { at };
        match last.comma {
            Some(comma) => {
                let behind = behind(comma + 1);
                self.spliced(&[(behind, behind, &format!("{item},"))])
            }
            None => {
                let behind = behind(last.end);
                self.spliced(&[(last.end, last.end, ","), (behind, behind, &item)])
            }
        }
    }

    /// Puts an item behind the comments of an object or an array without items.
    fn insert_first(&self, node: &ast::Value<'_>, label: &str, value: &Value, style: &Style<'_>) -> String {
        let (open, close) = (node.start() + 1, node.end() - 1);
        let outer = indent_at(self.text, node.start());
        let inner = format!("{outer}{}", style.indent);
        let item = format!("{}{inner}{label}{}", style.line, style.long(value, &inner));
        let inside = &self.text[open..close];
        let behind = open + inside.trim_end().len();
        // Brackets on one line with only blanks between them get a line each.
        if inside.trim().is_empty() && !inside.contains('\n') {
            return self.spliced(&[(behind, close, &format!("{item}{}{outer}", style.line))]);
        }
        self.spliced(&[(behind, behind, &item)])
    }

    /// The end of the comments that follow on the same line.
    fn behind_comments(&self, from: usize) -> usize {
        let mut end = from;
        for comment in self.tokens_from(from).iter().take_while(|token| is_comment(token)) {
            if self.text[end..comment.end()].contains('\n') {
                break;
            }
            end = comment.end();
        }
        end
    }

    /// Removes one item of an object or an array.
    fn take_out(&self, node: &ast::Value<'_>, index: usize) -> String {
        let items = self.items(node);
        let Some(item) = items.get(index) else { return self.spliced(&[]) };
        let end = item.comma.map_or(item.end, |comma| comma + 1);
        let blank_from = self.text[..item.start].trim_end_matches([' ', '\t', '\r', '\n']).len();
        // A comment to the end of its line must not swallow what comes after.
        let ends_line = self.text[end..].starts_with(['\r', '\n']);
        let above = &self.tokens[..self.tokens.partition_point(|token| token.start() < item.start)];
        let in_comment = matches!(above.last(), Some(TokenAndRange { token: Token::CommentLine(_), .. }));
        let begin = if in_comment && !ends_line { item.start } else { blank_from };
        let (open, close) = (node.start() + 1, node.end() - 1);
        let alone = items.len() == 1;
        if alone && self.text[open..begin].trim().is_empty() && self.text[end..close].trim().is_empty() {
            return self.spliced(&[(open, close, "")]);
        }
        // The last one, with no comma of its own: the one before it was inserted with it.
        let previous = index.checked_sub(1).and_then(|previous| items[previous].comma);
        match (item.comma, previous) {
            (None, Some(comma)) => self.spliced(&[(comma, comma + 1, ""), (begin.max(comma + 1), end, "")]),
            _ => self.spliced(&[(begin, end, "")]),
        }
    }

    /// The text with stretches replaced; they are in order and do not overlap.
    fn spliced(&self, edits: &[(usize, usize, &str)]) -> String {
        let mut out = self.byte_order_mark.to_owned();
        let mut at = 0;
        for (from, to, new) in edits {
            out.push_str(&self.text[at..*from]);
            out.push_str(new);
            at = *to;
        }
        out + &self.text[at..]
    }
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

/// A missing comma is reported where it is missed, which is at the next token.
fn malformed(text: &str, at: usize, reason: &str) -> Error {
    let at = text.len() - text[at..].trim_start().len();
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[..at].matches('\n').count() + 1;
    let mut reason = reason.to_owned();
    reason.get_mut(..1).unwrap_or_default().make_ascii_lowercase();
    Error::Malformed { line, column: text[line_start..at].chars().count() + 1, reason }
}

/// How a text is formatted.
struct Style<'text> {
    line: &'static str,
    indent: &'text str,
}

impl<'text> Style<'text> {
    fn of(text: &'text str) -> Self {
        let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut indents = text.lines().filter(|line| line.trim_start().starts_with('"')).map(leading);
        Self { line, indent: indents.find(|indent| !indent.is_empty()).unwrap_or("  ") }
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
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The indentation of the line that this place is in.
fn indent_at(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    leading(&text[line..at])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_read_over() {
        let text = "\u{feff}// first\n{ /* a */ \"a\" : [1, -2.5e3, \"}\\\"]\", ], // b\n \"b\": {\"c\": null,},\n} // last";
        assert_eq!(read(text), Ok(json!({"a": [1, -2.5e3, "}\"]"], "b": {"c": null}})));
        assert_eq!(read(" /* nothing */ \n"), Ok(json!({})));
        let twice = "{\"a\": 1, \"a\": 2}";
        assert_eq!(read(twice), Ok(json!({"a": 2})), "agents read the last of two");
        assert_eq!(remove(twice, &["a"]).as_deref(), Ok("{\"a\": 1}"));
    }

    #[test]
    fn a_byte_order_mark_stays() {
        assert_eq!(set("\u{feff}{ }", &["a"], &json!(1)).as_deref(), Ok("\u{feff}{\n  \"a\": 1\n}"));
        assert_eq!(remove("\u{feff}{\"a\":1,\"b\":2}", &["a"]).as_deref(), Ok("\u{feff}{\"b\":2}"));
    }

    #[test]
    fn broken_text_is_refused_with_its_place() {
        for (text, at) in [
            ("{\n  \"a\": 1\n  \"b\": 2\n}", "line 3, column 3: expected comma"),
            ("{\"a\" 1}", "line 1, column 6: expected colon"),
            ("{a: 1}", "line 1, column 2: expected string"),
            ("[1, nope]", "line 1, column 5: unexpected token"),
            ("[\"x", "line 1, column 2: unterminated string"),
            ("[\"x\ny\"]", "line 1, column 2: line breaks"),
            ("/* x", "line 1, column 1: unterminated comment"),
            ("{} {}", "line 1, column 4: text cannot contain"),
            ("{", "line 1, column 1: unterminated object"),
            ("[,]", "line 1, column 2: unexpected comma"),
            ("[0x1]", "line 1, column 2: hex"),
            ("['a']", "line 1, column 2: single"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(at), "{text:?}: {error}");
        }
        assert!(read(&"[".repeat(100_000)).is_err());
    }
}
