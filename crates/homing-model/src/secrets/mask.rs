//! Masks: recognising secret values without holding them, and putting a marker in their place.
//!
//! What a task is shown by, and what is told of its output, must not repeat its secrets; yet the values themselves are gone as soon as the
//! command has started, and a later daemon never had them. So a task keeps a fingerprint of each: its length, a few bits that move along with
//! a window, and a salted digest that decides. Where a value stood in the command line, the place is kept beside the marker, so that a launch,
//! which has the values, gives the command exactly what was asked for.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::digest::sha256;
use crate::notice::Body;
use crate::obvious;
use crate::outcome::Outcome;
use crate::secret::{MOST_LIKELY, SHORTEST_GIVEN, SHORTEST_LIKELY, is_likely};
use crate::spec::Spec;
use crate::splice::Place;
use crate::text::OsText;

/// Lines of a value are recognised by themselves from this length on: keys of several lines are printed line by line.
const SHORTEST_LINE: usize = 16;
/// The longest name in a marker.
const LONGEST_NAME: usize = 64;
/// Hexadecimal digits of a digest that are kept.
const DIGEST: usize = 32;

/// The secrets of one task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Masks {
    salt: u64,
    prints: Vec<Print>,
    /// Where values stood in what is launched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) places: Vec<Place>,
}

/// The fingerprint of one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Print {
    name: String,
    length: usize,
    roll: u16,
    digest: String,
    /// Given as a secret, and not only likely to be one.
    #[serde(default)]
    given: bool,
    /// Only a line of the value: where it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

/// A value that stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) name: &'a str,
    /// Only a line of the value: where it begins.
    pub(crate) line: Option<usize>,
    given: bool,
}

/// Variables of this name are none: they carry values that stand in the command line alone to the launch.
pub const UNNAMED: &str = "HOMING_MASKED:";

/// What stands in the place of a value.
#[must_use]
pub fn marker(name: &str) -> String {
    let name = name.strip_prefix(UNNAMED).unwrap_or(name);
    let name: String = name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
    format!("[secret {name}]")
}

impl Masks {
    /// Masks for a task with these variables: all that `given` names, and those of the rest that are likely secrets.
    pub fn new<'a>(
        salt: u64,
        variables: impl IntoIterator<Item = (&'a String, &'a OsText)>,
        given: impl Fn(&str) -> bool,
    ) -> Self {
        let mut masks = Self { salt, ..Self::default() };
        let mut likely = 0;
        for (name, value) in variables {
            let given = given(name);
            let value = value.as_bytes();
            if given && value.len() >= SHORTEST_GIVEN {
                masks.learn(name, value, true);
            } else if !given
                && value.len() >= SHORTEST_LIKELY
                && likely < MOST_LIKELY
                && (name.starts_with(UNNAMED) || is_likely(name))
            {
                likely += 1;
                masks.learn(name, value, false);
            }
        }
        masks
    }

    fn learn(&mut self, name: &str, value: &[u8], given: bool) {
        let print = |value: &[u8], line| Print {
            name: name.to_owned(),
            length: value.len(),
            roll: Roll::new(self.salt, value).filter(),
            digest: self.digest(value),
            given,
            line,
        };
        let mut prints = vec![print(value, None)];
        let mut begin = 0;
        for line in value.split(|byte| *byte == b'\n') {
            // Not the first and last line of a key, which are the same in all of them.
            if line.len() >= SHORTEST_LINE && line.len() < value.len() && !line.starts_with(b"-----") {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                prints.push(print(line, Some(begin)));
            }
            begin += line.len() + 1;
        }
        self.prints.extend(prints);
    }

    fn digest(&self, value: &[u8]) -> String {
        // Overwritten when it is dropped.
        let salted = OsText::from([&self.salt.to_le_bytes(), value].concat());
        let mut digest = sha256(salted.as_bytes());
        digest.truncate(DIGEST);
        digest
    }

    /// Whether this is the very value that the variable had.
    #[must_use]
    pub fn knows(&self, name: &str, value: &[u8]) -> bool {
        self.prints.iter().any(|print| {
            print.line.is_none()
                && print.name == name
                && print.length == value.len()
                && print.digest == self.digest(value)
        })
    }

    /// Whether a variable is fit to be kept: its name is none of a secret, and nothing in its value is one.
    #[must_use]
    pub fn may_keep(&self, name: &str, value: &OsText) -> bool {
        let pair = OsText::from([name.as_bytes(), b"=", value.as_bytes()].concat());
        !is_likely(name)
            && self.find(value.as_bytes()).is_empty()
            && obvious::find(&Spec { argv: vec![pair], ..Spec::default() }).is_empty()
    }

    /// Whether there is nothing to recognise.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prints.is_empty()
    }

    /// Bytes of the longest value.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.prints.iter().map(|print| print.length).max().unwrap_or(0)
    }

    /// Every value that stands in a text: by where it begins, the longest first. Linear in the text for each value.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Found<'_>> {
        let mut found = Vec::new();
        for print in self.prints.iter().filter(|print| print.length > 0) {
            let Some(first) = text.get(..print.length) else { continue };
            let mut roll = Roll::new(self.salt, first);
            for (start, window) in text.windows(print.length).enumerate() {
                if start > 0 {
                    roll.move_on(text[start - 1], window[print.length - 1]);
                }
                if roll.filter() == print.roll && self.digest(window) == print.digest {
                    let end = start + print.length;
                    found.push(Found { start, end, name: &print.name, line: print.line, given: print.given });
                }
            }
        }
        found.sort_by_key(|found| (found.start, std::cmp::Reverse(found.end), found.line.is_some()));
        if found.is_empty() {
            return found;
        }
        // What stands in a marker is the marker's: masking twice is masking once.
        let markers = self.markers(text);
        found.retain(|found| !markers.iter().any(|(start, end)| found.start >= *start && found.end <= *end));
        found
    }

    fn markers(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let mut markers = Vec::new();
        for print in self.prints.iter().filter(|print| print.line.is_none()) {
            let marker = marker(&print.name);
            let places =
                text.windows(marker.len()).enumerate().filter(|(_, window)| *window == marker.as_bytes());
            markers.extend(places.map(|(start, window)| (start, start + window.len())));
        }
        markers
    }

    /// The text from `from` on, with markers. What begins before `from` and reaches beyond it is masked too: whoever cuts a text gives as much
    /// before the cut as [`longest`](Self::longest) says, and no half of a value is left.
    #[must_use]
    pub fn bytes_from(&self, text: &[u8], from: usize) -> Vec<u8> {
        let mut masked = Vec::with_capacity(text.len().saturating_sub(from));
        let mut at = from.min(text.len());
        let mut covered = 0;
        for found in self.find(text) {
            if found.end <= at.max(covered) {
                continue;
            }
            if found.start >= covered {
                masked.extend_from_slice(text.get(at..found.start).unwrap_or_default());
                masked.extend_from_slice(marker(found.name).as_bytes());
            }
            covered = found.end;
            at = found.end;
        }
        masked.extend_from_slice(text.get(at..).unwrap_or_default());
        masked
    }

    /// A text with markers.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_empty() || self.find(text.as_bytes()).is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(String::from_utf8_lossy(&self.bytes_from(text.as_bytes(), 0)).into_owned())
    }

    /// The same where the text is ours.
    pub fn cover(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    /// A notice with markers.
    pub fn cover_notice(&self, body: &mut Body) {
        match body {
            Body::Completed(completed) => {
                self.cover(&mut completed.output_tail);
                if let Some(text) = &mut completed.answer {
                    self.cover(text);
                }
                if let Some(outcome) = &mut completed.outcome {
                    self.cover_outcome(outcome);
                }
            }
            Body::Matched { pattern, line, held_back: _, explanation } => {
                for text in [pattern, line].into_iter().chain(explanation) {
                    self.cover(text);
                }
            }
            Body::Heartbeat { new_output } => self.cover(new_output),
            Body::Quiet { .. } | Body::WakePaused { .. } => {}
        }
    }

    /// An outcome with markers: reasons name programs and folders.
    pub fn cover_outcome(&self, outcome: &mut Outcome) {
        let names = outcome.survivors.iter_mut().map(|survivor| &mut survivor.name);
        for text in outcome.reason.iter_mut().chain(names) {
            self.cover(text);
        }
    }

    /// The name of a value in the text that was given as a secret.
    #[must_use]
    pub fn given_in(&self, text: &str) -> Option<&str> {
        self.find(text.as_bytes()).into_iter().find(|found| found.given).map(|found| found.name)
    }

    /// A text that tells two things apart, such as a key: masked, it still does.
    pub fn cover_apart(&self, text: &mut String) {
        let digest = sha256(text.as_bytes());
        if let Cow::Owned(masked) = self.text(text) {
            *text = format!("{masked} {}", digest.get(..DIGEST).unwrap_or(&digest));
        }
    }
}

/// A sum over a window that moves along in one step a byte. It rules out nearly every place before a digest is made.
struct Roll {
    sum: u32,
    base: u32,
    /// The base to the power of the window's length less one.
    top: u32,
}

impl Roll {
    fn new(salt: u64, window: &[u8]) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "any bits of the salt will do")]
        let base = (salt as u32) | 1;
        let mut roll = Self { sum: 0, base, top: 1 };
        for (index, byte) in window.iter().enumerate() {
            roll.sum = roll.sum.wrapping_mul(base).wrapping_add(spread(*byte));
            if index > 0 {
                roll.top = roll.top.wrapping_mul(base);
            }
        }
        roll
    }

    fn move_on(&mut self, out: u8, into: u8) {
        let rest = self.sum.wrapping_sub(spread(out).wrapping_mul(self.top));
        self.sum = rest.wrapping_mul(self.base).wrapping_add(spread(into));
    }

    fn filter(&self) -> u16 {
        (self.sum >> 16) as u16
    }
}

/// The upper bits are what is looked at: each byte has a say in them.
fn spread(byte: u8) -> u32 {
    (u32::from(byte) + 1).wrapping_mul(0x9e37_79b1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn masks(values: &[(&str, &str)]) -> Masks {
        let values: BTreeMap<String, OsText> =
            values.iter().map(|(name, value)| ((*name).to_owned(), OsText::from(*value))).collect();
        Masks::new(7, &values, |name| name.starts_with("GIVEN"))
    }

    #[test]
    fn values_are_replaced_by_their_names_and_the_rest_stays() {
        let masks =
            masks(&[("GIVEN", "hunter2"), ("API_TOKEN", "abcdef"), ("PATH", "/usr/bin"), ("TOKEN", "short")]);
        assert_eq!(
            masks.text("-p hunter2 abcdefabcdef /usr/bin short"),
            "-p [secret GIVEN] [secret API_TOKEN][secret API_TOKEN] /usr/bin short"
        );
        assert_eq!(masks.text("hunter"), "hunter");
        assert_eq!(masks.longest(), 7);
        assert_eq!(masks.given_in("x hunter2"), Some("GIVEN"));
        assert_eq!(masks.given_in("x abcdef"), None);
    }

    #[test]
    fn values_that_overlap_leave_no_rest() {
        let masks = masks(&[("GIVEN_A", "abcdef"), ("GIVEN_B", "cdefgh"), ("GIVEN_C", "abcd")]);
        assert_eq!(masks.text("<abcdefgh>"), "<[secret GIVEN_A]>");
    }

    #[test]
    fn masking_twice_is_masking_once() {
        let masks = masks(&[("GIVEN", "secret"), ("TOKEN", "[secret")]);
        let once = masks.text("a secret b [secret c").into_owned();
        assert_eq!(masks.text(&once), once);
    }

    #[test]
    fn a_cut_leaves_no_half() {
        let masks = masks(&[("GIVEN", "hunter2")]);
        for from in 3..9 {
            assert_eq!(masks.bytes_from(b"..hunter2..", from), b"[secret GIVEN]..", "{from}");
        }
        assert_eq!(masks.bytes_from(b"..hunter2..", 9), b"..");
    }

    #[test]
    fn a_key_of_several_lines_is_known_by_each() {
        let masks = masks(&[(
            "GIVEN",
            "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhk\nMIIEvQIBADANBgkqhl\n-----END KEY-----",
        )]);
        assert_eq!(
            masks.text("MIIEvQIBADANBgkqhl\r\n-----END KEY-----"),
            "[secret GIVEN]\r\n-----END KEY-----"
        );
    }

    #[test]
    fn what_is_kept_holds_no_value() {
        let masks = masks(&[("GIVEN", "hunter2"), ("API_TOKEN", "abcdef")]);
        let json = serde_json::to_string(&masks).unwrap();
        assert!(!json.contains("hunter2") && !json.contains("abcdef"), "{json}");
        assert_eq!(serde_json::from_str::<Masks>(&json).unwrap(), masks);
    }

    #[test]
    fn keys_are_told_apart_though_they_are_masked() {
        let covered = |value: &str, key: &str| {
            let mut key = key.to_owned();
            masks(&[("GIVEN", value)]).cover_apart(&mut key);
            key
        };
        assert_eq!(covered("hunter2", "build"), "build");
        assert_ne!(covered("hunter2", "b-hunter2"), covered("hunter3", "b-hunter3"));
        assert_eq!(covered("hunter2", "b-hunter2"), covered("hunter2", "b-hunter2"));
    }

    proptest! {
        #[test]
        fn no_value_is_left_in_any_text(value in "[ab]{4,9}", other in "[abc]{4,6}", text in "[abc]{0,80}", from in 0_usize..80) {
            let masks = masks(&[("GIVEN_1", &value), ("GIVEN_2", &other)]);
            let masked = masks.text(&text).into_owned();
            prop_assert!(!masked.contains(&value) && !masked.contains(&other), "{masked}");
            let cut = String::from_utf8(masks.bytes_from(text.as_bytes(), from)).unwrap();
            prop_assert!(!cut.contains(&value) && !cut.contains(&other), "{cut}");
        }
    }
}
