//! What is watched for: regular expressions, checked before a task is accepted.

use regex::bytes::{Regex, RegexBuilder};
use serde::de::{self, Deserializer, SeqAccess, Visitor};

/// So many patterns a task may have.
pub const MOST_PATTERNS: usize = 16;
/// So long a pattern may be.
const LONGEST: usize = 1_000;
/// So much memory a pattern may take, compiled, and again while it is searched with.
const LARGEST: usize = 1 << 20;

/// Why something cannot be watched for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// It would be found everywhere.
    #[error("the pattern is empty")]
    Empty,
    /// It is no regular expression.
    #[error("`{pattern}` is no regular expression: {what}, at character {position}")]
    Syntax {
        /// As it was given.
        pattern: String,
        /// What is wrong.
        what: String,
        /// Where, from 1.
        position: usize,
    },
    /// Its text is too long.
    #[error("a pattern has {0} bytes, and may have {LONGEST}")]
    Long(usize),
    /// It grows too large when its repetitions are written out.
    #[error("`{0}` is too large: its repetitions stand for more than 1 MiB")]
    Large(String),
    /// There are too many.
    #[error("there are {0} patterns, and may be {MOST_PATTERNS}")]
    Many(usize),
}

/// Something that is watched for.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Checks and compiles a regular expression. Output is bytes, so `(?-u:\xff)` is as good as any.
    ///
    /// # Errors
    /// If it is none, or too large.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        if text.is_empty() {
            return Err(BadPattern::Empty);
        }
        if text.len() > LONGEST {
            return Err(BadPattern::Long(text.len()));
        }
        let parsed = regex_syntax::ParserBuilder::new().utf8(false).build().parse(text);
        if let Err(error) = parsed {
            return Err(syntax(text, &error));
        }
        let built = RegexBuilder::new(text).size_limit(LARGEST).dfa_size_limit(LARGEST).build();
        built.map(Self).map_err(|_| BadPattern::Large(text.to_owned()))
    }

    /// Whether it is in this line.
    #[must_use]
    pub fn is_in(&self, line: &[u8]) -> bool {
        self.0.is_match(line)
    }
}

fn syntax(text: &str, error: &regex_syntax::Error) -> BadPattern {
    let (what, offset) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.offset),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start.offset),
        _ => (error.to_string(), 0),
    };
    let position = text.get(..offset).map_or(0, |before| before.chars().count()) + 1;
    BadPattern::Syntax { pattern: text.to_owned(), what, position }
}

/// All patterns of a task.
///
/// # Errors
/// The first that is none, or if there are too many.
pub fn patterns(texts: &[String]) -> Result<Vec<Pattern>, BadPattern> {
    if texts.len() > MOST_PATTERNS {
        return Err(BadPattern::Many(texts.len()));
    }
    texts.iter().map(|text| Pattern::new(text)).collect()
}

/// One pattern, or a list of them.
pub(crate) fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Patterns;

    impl<'de> Visitor<'de> for Patterns {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a regular expression, or a list of them")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_unit<E: de::Error>(self) -> Result<Vec<String>, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = list.next_element()? {
                texts.push(text);
            }
            Ok(texts)
        }
    }

    deserializer.deserialize_any(Patterns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_pattern_is_told_with_its_place() {
        let told = |text: &str| Pattern::new(text).unwrap_err().to_string();
        assert_eq!(told("a(b"), "`a(b` is no regular expression: unclosed group, at character 2");
        assert!(told("äö[z").contains("unclosed character class, at character 3"), "{}", told("äö[z"));
        assert!(told("*").contains("at character 1"));
        assert!(told("a{2").contains("at character 2"));
        assert!(told("(?=x)").contains("look-around"));
        assert_eq!(Pattern::new("").unwrap_err(), BadPattern::Empty);
    }

    #[test]
    fn what_is_too_large_is_refused_and_costs_little() {
        assert_eq!(Pattern::new(&"a".repeat(1_001)).unwrap_err(), BadPattern::Long(1_001));
        for text in [r"(?:(?:\w{100}){100}){100}", r"\w{900}x{900}\w{900}", r"a{1000}{1000}"] {
            assert!(matches!(Pattern::new(text), Err(BadPattern::Large(_))), "{text}");
        }
        assert!(Pattern::new(&"(".repeat(500)).is_err());
        assert_eq!(patterns(&vec!["a".to_owned(); 17]).unwrap_err(), BadPattern::Many(17));
    }

    #[test]
    fn bytes_and_characters_are_found() {
        let is_in = |pattern: &str, line: &[u8]| Pattern::new(pattern).unwrap().is_in(line);
        assert!(is_in("(?i)grüß", "GRÜSSE, Grüße".as_bytes()));
        assert!(is_in(r"\bready\b", b"\xff\xfe ready \x80"));
        assert!(is_in(r"(?-u:\xff)", b"a\xffb"));
        assert!(is_in(r"^listening on \S+:\d+$", b"listening on localhost:8080"));
        assert!(!is_in("^ready$", b"not ready"));
    }

    proptest! {
        #[test]
        fn no_text_does_harm(text in ".{0,60}", line: Vec<u8>) {
            if let Ok(pattern) = Pattern::new(&text) {
                let _ = pattern.is_in(&line);
            }
        }
    }
}
