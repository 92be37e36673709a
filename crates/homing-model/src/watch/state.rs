//! What the ledger keeps of one attempt's watches, written with each notice.

use serde::{Deserialize, Serialize};

use super::lines::{shown, split, without_escapes};
use super::pace::{Pace, Telling};
use super::pattern::Pattern;
use crate::mask::Masks;
use crate::time::Timestamp;

/// How far the output of an attempt was judged and told. Fields only ever come to it, each with a default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// How often it was kept. It only follows the one before it: of two watchers, one that should be gone tells nothing.
    pub turn: u64,
    /// Every line before this offset was judged; a line begins here.
    pub scanned: u64,
    /// One for each pattern, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paces: Vec<Pace>,
    /// The output's length when the last silence was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_told: Option<u64>,
    /// Output up to here was told by heartbeats.
    pub beat_to: u64,
    /// When the last heartbeat was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beat_at: Option<Timestamp>,
}

/// A stretch of the output.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    /// Where it begins, which is a line border.
    pub offset: u64,
    /// What was printed.
    pub bytes: &'a [u8],
    /// A line that has no end yet is one; without it, it is left for the next time.
    pub last: bool,
}

impl State {
    /// Room for so many patterns.
    pub fn expect(&mut self, patterns: usize) {
        self.paces.resize_with(patterns, Pace::default);
    }

    /// Whether there is a pattern that is still watched for.
    #[must_use]
    pub fn watches(&self) -> bool {
        self.paces.iter().any(|pace| !pace.off)
    }

    /// Matches that wait to be told, of all patterns.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.paces.iter().map(Pace::waiting).sum()
    }

    /// When the first of what is held back may be told.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        self.paces.iter().filter_map(|pace| pace.due(now)).min()
    }

    /// Takes what is to be told now, of the first pattern that has something, with its place among them.
    pub fn tell(&mut self, now: Timestamp) -> Option<(usize, Telling)> {
        self.paces.iter_mut().enumerate().find_map(|(at, pace)| Some((at, pace.tell(now)?)))
    }

    /// Judges the lines of a stretch: up to the first after which something may be told, or, where nothing may be (`hold`), all of them.
    pub fn judge(
        &mut self,
        patterns: &[Pattern],
        stretch: Stretch<'_>,
        hold: bool,
        masks: &Masks,
        now: Timestamp,
    ) {
        let Stretch { offset, bytes, last } = stretch;
        self.scanned = offset;
        // How many matched and the last that did: a flood is counted, and only what is told is made fit for it.
        let mut found: Vec<(u64, &[u8])> = vec![(0, &[]); self.paces.len()];
        for line in split(bytes, last) {
            self.scanned = offset + line.end as u64;
            if line.bytes.is_empty() {
                continue;
            }
            let text = without_escapes(line.bytes);
            let mut due = false;
            for ((pattern, pace), found) in patterns.iter().zip(&self.paces).zip(&mut found) {
                if !pace.off && pattern.is_in(&text) {
                    *found = (found.0 + 1, line.bytes);
                    due |= !hold && pace.free(now) <= now;
                }
            }
            if due {
                break;
            }
        }
        for (pace, (count, line)) in self.paces.iter_mut().zip(found).filter(|(_, (count, _))| *count > 0) {
            pace.matched(count, shown(line, masks));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pattern::patterns;
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_790_000_000_000 + millis)
    }

    fn begin(texts: &[&str]) -> (Vec<Pattern>, State) {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let mut state = State::default();
        state.expect(texts.len());
        (patterns(&texts).unwrap(), state)
    }

    /// Reads the whole output in pieces, telling as it goes; each time something is told, all but what the ledger keeps may be lost.
    fn run(output: &[u8], piece: usize, forget: bool) -> (Vec<(usize, Telling)>, State) {
        let (patterns, mut state) = begin(&["match", "colour"]);
        let mut kept = state.clone();
        let mut told = Vec::new();
        let (mut end, mut crashes) = (0, 0);
        loop {
            end = (end + piece).min(output.len());
            let last = end == output.len();
            loop {
                let from = usize::try_from(state.scanned).unwrap();
                let stretch = Stretch { offset: state.scanned, bytes: &output[from..end], last };
                state.judge(&patterns, stretch, false, &Masks::default(), at(0));
                let Some(telling) = state.tell(at(0)) else { break };
                told.push(telling);
                kept = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
            }
            if forget && crashes < 3 && end % 2 == 0 {
                state = kept.clone();
                crashes += 1;
            } else if last {
                return (told, state);
            }
        }
    }

    #[test]
    fn a_line_that_comes_in_two_reads_is_seen_and_told_once() {
        let output = b"no\na mat\x1b[1mch here\r\nno\n".as_slice();
        for piece in 1..=output.len() {
            let (told, state) = run(output, piece, false);
            assert_eq!(told.len(), 1, "in pieces of {piece}");
            assert_eq!((told[0].1.line.as_str(), state.waiting()), ("a match here", 0));
            assert_eq!(state.scanned, output.len() as u64);
        }
    }

    #[test]
    fn one_pattern_that_floods_does_not_hide_another() {
        let output = ["match\n".repeat(1_000), "colour\n".to_owned(), "match\n".to_owned()].concat();
        let (told, state) = run(output.as_bytes(), 4_096, false);
        let lines: Vec<_> = told.iter().map(|(at, telling)| (*at, telling.line.as_str())).collect();
        assert_eq!(lines, [(0, "match"), (1, "colour")]);
        assert_eq!(state.waiting(), 1_000);
    }

    #[test]
    fn the_last_line_without_end_is_judged_at_the_end_and_not_before() {
        let (patterns, mut state) = begin(&["prompt"]);
        state.judge(
            &patterns,
            Stretch { offset: 0, bytes: b"one\nprompt> ", last: false },
            false,
            &Masks::default(),
            at(0),
        );
        assert_eq!((state.scanned, state.waiting()), (4, 0));
        state.judge(
            &patterns,
            Stretch { offset: 4, bytes: b"prompt> ", last: true },
            false,
            &Masks::default(),
            at(0),
        );
        assert_eq!((state.scanned, state.waiting()), (12, 1));
    }

    #[test]
    fn a_state_of_an_earlier_release_reads_with_defaults() {
        let state: State = serde_json::from_str(r#"{"scanned":7,"paces":[{"floods":1}]}"#).unwrap();
        assert_eq!((state.scanned, state.paces[0].floods, state.paces[0].off), (7, 1, false));
    }

    proptest! {
        #[test]
        fn however_it_is_cut_and_whatever_is_lost_every_match_is_accounted_for_once(
            words in proptest::collection::vec("match|colour|no|ma|tch|\\n|\\r|\\r\\n|\u{1b}\\[0m", 0..120),
            piece in 1usize..40,
            forget: bool,
        ) {
            let output = words.concat();
            let whole = |word: &str| output.split(['\n', '\r']).filter(|line| {
                String::from_utf8_lossy(&without_escapes(line.as_bytes())).contains(word)
            }).count() as u64;
            let (told, state) = run(output.as_bytes(), piece, forget);
            for (at, word) in ["match", "colour"].iter().enumerate() {
                let of_it: u64 = told.iter().filter(|(which, _)| *which == at).map(|(_, t)| 1 + t.held_back).sum();
                prop_assert_eq!(of_it + state.paces[at].waiting(), whole(word));
            }
        }
    }
}
