//! JSON as agents keep it, with comments and trailing commas: where everything is, so that a text can be edited without being written anew.

use serde_json::{Map, Value};

/// No configuration is nested deeper.
const DEEPEST: usize = 128;

/// A value and where it is, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// A text, a number, a word.
    Scalar(Value),
    /// Members, each with its key.
    Object(Vec<Item>),
    /// Elements.
    Array(Vec<Item>),
}

/// A member of an object or an element of an array.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// Empty for an element.
    pub(super) key: String,
    /// Where it begins: the key, or the element itself.
    pub(super) start: usize,
    pub(super) node: Node,
    /// Where the comma after it is.
    pub(super) comma: Option<usize>,
}

impl Item {
    /// Where its value ends.
    pub(super) fn end(&self) -> usize {
        self.node.end
    }
}

impl Node {
    /// The members or elements; none of a scalar.
    pub(super) fn items(&self) -> &[Item] {
        match &self.kind {
            Kind::Object(items) | Kind::Array(items) => items,
            Kind::Scalar(_) => &[],
        }
    }

    /// A member by its key. Where a key is there twice, agents read the last.
    pub(super) fn member(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Object(items) => items.iter().rev().find(|item| item.key == key).map(|item| &item.node),
            Kind::Array(_) | Kind::Scalar(_) => None,
        }
    }

    /// What keys lead to.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.member(key))
    }

    /// The value, without what is only written.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::Array(items) => items.iter().map(|item| item.node.value()).collect(),
            Kind::Object(items) => {
                let members = items.iter().map(|item| (item.key.clone(), item.node.value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

/// Why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub(super) struct Malformed {
    line: usize,
    column: usize,
    what: &'static str,
}

/// Reads a text; `None` if nothing but blanks and comments is in it.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Malformed> {
    let mut scanner = Scanner { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
    scanner.skip()?;
    if scanner.peek().is_none() {
        return Ok(None);
    }
    let node = scanner.node(0)?;
    scanner.skip()?;
    match scanner.peek() {
        None => Ok(Some(node)),
        Some(_) => Err(scanner.malformed("there is something after the end")),
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn malformed(&self, what: &'static str) -> Malformed {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
        Malformed { line, column, what }
    }

    /// Goes past blanks and comments.
    fn skip(&mut self) -> Result<(), Malformed> {
        loop {
            let blanks = self.rest().bytes().take_while(|byte| b" \t\r\n".contains(byte)).count();
            self.at += blanks;
            if self.rest().starts_with("//") {
                self.at += self.rest().find('\n').unwrap_or_else(|| self.rest().len());
            } else if let Some(comment) = self.rest().strip_prefix("/*") {
                let length = comment.find("*/").ok_or_else(|| self.malformed("a comment has no end"))?;
                self.at += length + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, Malformed> {
        if depth > DEEPEST {
            return Err(self.malformed("it is nested too deeply"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.items(b'}', depth)?),
            Some(b'[') => Kind::Array(self.items(b']', depth)?),
            Some(b'"') => Kind::Scalar(Value::String(self.string()?)),
            _ => Kind::Scalar(self.word()?),
        };
        Ok(Node { start, end: self.at, kind })
    }

    /// What is between brackets, up to and with the closing one.
    fn items(&mut self, close: u8, depth: usize) -> Result<Vec<Item>, Malformed> {
        self.at += 1;
        let mut items: Vec<Item> = Vec::new();
        loop {
            self.skip()?;
            if self.peek() == Some(close) {
                self.at += 1;
                return Ok(items);
            }
            if items.last().is_some_and(|item| item.comma.is_none()) {
                return Err(self.malformed("a comma or a closing bracket is missing"));
            }
            let start = self.at;
            let key = if close == b'}' { self.key()? } else { String::new() };
            let node = self.node(depth + 1)?;
            self.skip()?;
            let comma = (self.peek() == Some(b',')).then_some(self.at);
            self.at += usize::from(comma.is_some());
            items.push(Item { key, start, node, comma });
        }
    }

    fn key(&mut self) -> Result<String, Malformed> {
        if self.peek() != Some(b'"') {
            return Err(self.malformed("a key in quotes is missing"));
        }
        let key = self.string()?;
        self.skip()?;
        if self.peek() != Some(b':') {
            return Err(self.malformed("a colon is missing"));
        }
        self.at += 1;
        self.skip()?;
        Ok(key)
    }

    fn string(&mut self) -> Result<String, Malformed> {
        let mut escaped = false;
        let inside = self.rest().bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let length = inside.ok_or_else(|| self.malformed("a text has no end"))? + 2;
        let quoted = self.rest().get(..length).unwrap_or_default();
        let string = serde_json::from_str(quoted).map_err(|_| self.malformed("a text is not valid"))?;
        self.at += length;
        Ok(string)
    }

    fn word(&mut self) -> Result<Value, Malformed> {
        let ends = |byte: u8| b" \t\r\n,:]}[{\"/".contains(&byte);
        let length = self.rest().bytes().take_while(|byte| !ends(*byte)).count();
        let word = self.rest().get(..length).unwrap_or_default();
        let value = serde_json::from_str(word).map_err(|_| self.malformed("a value is expected here"))?;
        self.at += length;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_read_over() {
        let text = "\u{feff}// first\n{ /* a */ \"a\" : [1, -2.5e3, \"}\\\"]\", ], // b\n \"b\": {\"c\": null,},\n} // last";
        let root = parse(text).unwrap().unwrap();
        assert_eq!(root.value(), json!({"a": [1, -2.5e3, "}\"]"], "b": {"c": null}}));
        let nested = root.at(&["b", "c"]).unwrap();
        assert_eq!(text.get(nested.start..nested.end), Some("null"));
        assert_eq!(parse(" /* nothing */ \n"), Ok(None));
    }

    #[test]
    fn what_is_broken_is_told_with_its_place() {
        for (text, at) in [
            ("{\n  \"a\": 1\n  \"b\": 2\n}", "line 3, column 3: a comma"),
            ("{\"a\" 1}", "line 1, column 6: a colon"),
            ("{a: 1}", "line 1, column 2: a key"),
            ("[1, nope]", "line 1, column 5: a value"),
            ("[\"x", "line 1, column 2: a text has no end"),
            ("/* x", "line 1, column 1: a comment"),
            ("{} {}", "line 1, column 4: there is something after"),
            ("{", "line 1, column 2: a key"),
            ("[,]", "line 1, column 2: a value"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(at), "{text:?}: {error}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
