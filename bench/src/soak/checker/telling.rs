//! H8: what a session hears is its own, and it hears it once.
//!
//! Twice is excused if whoever told it was killed before it could mark it; no daemon answered between the word and its mark, or none answered in
//! time; the agent's process ended before the session called again; somebody asked for it again; a tool call that waits and the waiter in the
//! background both saw the end come, and neither could know of the other (docs/guarantees.md); or a daemon had died shortly before the word: what was
//! taken from it is given back by the next one, and when it was taken is not known here. The last two excuse more than they should, so each
//! reason is counted by itself. A telling is held against every one before it, and each must be excused.

use std::collections::BTreeMap;
use std::fmt;

use super::super::story::{Mark, Story, Telling};

/// A hook gives a daemon so long to take its word; beyond it the mark may be missing.
const PATIENCE_NS: u64 = 1_000_000_000;

/// A word is said so long after it was taken, at most, on a machine that is loaded.
const TAKEN_NS: u64 = 3_000_000_000;

/// A tool and a waiter that saw the same end come speak within so long of one another.
const TOGETHER_NS: u64 = 2_000_000_000;

/// Why something was told once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// Whoever told it was killed, or its shim.
    TellerKilled,
    /// No daemon was there to take the mark.
    DaemonAway,
    /// A daemon had died shortly before, perhaps after it was taken.
    DaemonDied,
    /// The mark took longer than a hook waits for it.
    Slow,
    /// The agent's process that heard it is gone, and had not called again.
    AgentGone,
    /// A tool call and a waiter of the same process both waited for it.
    Together,
    /// Somebody asked for it.
    Asked,
}

impl Reason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::TellerKilled => "its teller killed",
            Self::DaemonAway => "no daemon for its mark",
            Self::DaemonDied => "a daemon dead shortly before",
            Self::Slow => "a mark that took too long",
            Self::AgentGone => "its agent gone",
            Self::Together => "a tool and a waiter at once",
            Self::Asked => "asked for again",
        }
    }
}

/// How often something was told once more, and why.
#[derive(Debug, Default)]
pub(crate) struct Doubles {
    excused: BTreeMap<Reason, u64>,
    unexcused: Vec<String>,
}

impl fmt::Display for Doubles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let excused: u64 = self.excused.values().sum();
        write!(f, "told once more: {excused} excused (")?;
        for (at, (reason, count)) in self.excused.iter().enumerate() {
            let gap = if at == 0 { "" } else { ", " };
            write!(f, "{gap}{} {count}", reason.as_str())?;
        }
        write!(f, "), {} not", self.unexcused.len())
    }
}

pub(super) fn once_and_to_its_owner(story: &Story) -> Vec<String> {
    let mut found: Vec<String> = story.inbox.astray.clone();
    for telling in &story.tellings {
        match story.notices.get(&telling.notice) {
            None => found.push(format!("{} heard {}, which nobody wrote", telling.owner, telling.notice)),
            Some(notice) if notice.owner != telling.owner => {
                found
                    .push(format!("{} heard {}, which is {}'s", telling.owner, telling.notice, notice.owner));
            }
            Some(_) => {}
        }
    }
    found.extend(doubles(story).unexcused);
    found
}

/// Everything that a session heard more than once.
pub(crate) fn doubles(story: &Story) -> Doubles {
    let mut doubles = Doubles::default();
    let mut before: BTreeMap<(&str, &str), Vec<&Telling>> = BTreeMap::new();
    // A request is for one more telling, and no two.
    let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
    for telling in &story.tellings {
        let earlier = before.entry((&telling.owner, &telling.notice)).or_default();
        let reasons: Vec<_> = earlier.iter().map(|first| (*first, excuse(story, first, telling))).collect();
        earlier.push(telling);
        let Some((_, last)) = reasons.last() else { continue };
        let unexcused = reasons.iter().find(|(_, reason)| reason.is_none()).map(|(first, _)| *first);
        match (unexcused, last) {
            (None, Some(reason)) => *doubles.excused.entry(*reason).or_default() += 1,
            (first, _) => {
                let used = asked.entry(&telling.notice).or_default();
                if is_asked(story, telling, *used) {
                    // A wake that did not count for its shim's sake has not done what was asked for.
                    *used += usize::from(!is_touched(story, telling));
                    *doubles.excused.entry(Reason::Asked).or_default() += 1;
                } else if let Some(first) = first {
                    let gap = (telling.at - first.at) / 1_000_000;
                    doubles.unexcused.push(format!(
                        "{} heard {} twice, {gap} ms apart, for no reason that there was: {first:?} and {telling:?}",
                        telling.owner, telling.notice
                    ));
                }
            }
        }
    }
    doubles
}

/// Whether one more request than those `used` was made before this: what is sent again wakes, and is told in no other way.
fn is_asked(story: &Story, telling: &Telling, used: usize) -> bool {
    let asked = story.again.get(&telling.notice).into_iter().flatten();
    telling.mark == Mark::Shim && asked.filter(|asked| asked.at < telling.at).count() > used
}

/// Whether somebody on whose way it came was killed.
fn is_touched(story: &Story, telling: &Telling) -> bool {
    telling.by.iter().any(|pid| story.killed.touched.contains(pid))
}

/// Whether one is the answer to a tool call and the other the word of a waiter or hook, in the same process and at the same time.
fn are_together(first: &Telling, second: &Telling) -> bool {
    let ways =
        matches!((first.mark, second.mark), (Mark::Before, Mark::Until(_)) | (Mark::Until(_), Mark::Before));
    ways && first.life == second.life && second.at.abs_diff(first.at) < TOGETHER_NS
}

/// Why it could be told again after `first`, if there was a reason.
fn excuse(story: &Story, first: &Telling, second: &Telling) -> Option<Reason> {
    if are_together(first, second) {
        return Some(Reason::Together);
    }
    let told = match first.mark {
        // A wake: its word counts when its shim has told how it ended.
        Mark::Shim if is_touched(story, first) => return Some(Reason::TellerKilled),
        Mark::Shim if story.killed.was_away(first.at, second.at) => return Some(Reason::DaemonAway),
        Mark::Shim => return None,
        Mark::Killed => return Some(Reason::TellerKilled),
        Mark::Until(marked) if story.killed.was_away(first.at, marked) => return Some(Reason::DaemonAway),
        Mark::Until(marked) if marked.saturating_sub(first.at) > PATIENCE_NS => return Some(Reason::Slow),
        Mark::Until(_) if story.killed.was_away(first.at.saturating_sub(TAKEN_NS), first.at) => {
            return Some(Reason::DaemonDied);
        }
        Mark::Until(marked) => marked,
        Mark::Before => first.at,
    };
    // The process that heard it is gone, and had not called again: the next one is told what it was told.
    let life = first.life?;
    let heard_again = story
        .calls
        .iter()
        .any(|call| call.life == life && call.began > told && !story.killed.was_away(call.began, call.ended));
    (second.life.is_some_and(|other| other != life) && !heard_again).then_some(Reason::AgentGone)
}

#[cfg(test)]
mod tests {
    use super::super::super::story::{Asked, Away, Call};
    use super::super::check;
    use super::super::tests::{breaks, sound};
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn told(life: Option<u64>, at: u64) -> Telling {
        let mark = life.map_or(Mark::Shim, |_| Mark::Until(at + 5));
        Telling { notice: "n".into(), owner: "ann".into(), life, at, mark, by: vec![7, 8] }
    }

    /// Told by a hook in one life at 10 s, and again at 20 s.
    fn twice(story: &mut Story, first: Option<u64>, second: Option<u64>) {
        story.tellings = vec![told(first, 10 * SECOND), told(second, 20 * SECOND)];
    }

    fn away(from: u64, until: u64) -> Away {
        Away { from, until: Some(until) }
    }

    fn asked(story: &mut Story, at: u64) {
        story.again.entry("n".into()).or_default().push(Asked { at });
    }

    #[test]
    fn h8_what_is_heard_by_another_or_was_never_written_is_noticed() {
        breaks("H8", |story| {
            story.tellings = vec![Telling { owner: "bob".into(), ..told(Some(1), SECOND) }];
        });
        breaks("H8", |story| {
            story.tellings = vec![Telling { notice: "m".into(), ..told(Some(1), SECOND) }];
        });
        breaks("H8", |story| story.inbox.astray.push("bob has n".into()));
    }

    #[test]
    fn h8_what_is_heard_twice_for_no_reason_is_noticed() {
        breaks("H8", |story| twice(story, Some(1), Some(1)));
        breaks("H8", |story| twice(story, None, None));
        breaks("H8", |story| twice(story, Some(1), None));
        breaks("H8", |story| twice(story, None, Some(1)));
        breaks("H8", |story| {
            twice(story, Some(1), Some(2));
            story.calls = vec![Call { life: 1, began: 12 * SECOND, ended: 13 * SECOND }];
        });
    }

    #[test]
    fn h8_a_daemon_that_was_back_long_before_the_word_or_killed_after_the_mark_excuses_nothing() {
        breaks("H8", |story| {
            twice(story, Some(1), Some(1));
            story.killed.away =
                vec![away(5 * SECOND, 7 * SECOND - 1), away(10 * SECOND + 6, 10 * SECOND + 9)];
        });
        breaks("H8", |story| {
            twice(story, Some(1), Some(2));
            story.killed.away = vec![away(11 * SECOND, 12 * SECOND - 1)];
            story.calls = vec![Call { life: 1, began: 12 * SECOND, ended: 13 * SECOND }];
        });
        breaks("H8", |story| {
            twice(story, Some(1), Some(1));
            // The answer of a tool is marked before it is said.
            story.tellings[0].mark = Mark::Before;
            story.killed.away = vec![away(10 * SECOND + 2, 10 * SECOND + 3)];
        });
    }

    #[test]
    fn h8_a_request_excuses_one_more_wake_after_it_and_nothing_else() {
        for (second, at) in [(None, 21 * SECOND), (Some(1), 15 * SECOND)] {
            breaks("H8", |story| {
                twice(story, None, second);
                asked(story, at);
            });
        }
        breaks("H8", |story| {
            twice(story, None, None);
            story.tellings.push(told(None, 30 * SECOND));
            asked(story, 15 * SECOND);
        });
    }

    #[test]
    fn h8_a_tool_call_excuses_a_waiter_at_the_same_time_and_no_later() {
        let doctored = |story: &mut Story, waiter_at: u64| {
            let tool = Telling { mark: Mark::Before, ..told(Some(1), 10 * SECOND) };
            story.tellings = vec![tool, told(Some(1), waiter_at)];
        };
        breaks("H8", |story| doctored(story, 13 * SECOND));
        let mut story = sound();
        doctored(&mut story, 11 * SECOND);
        assert!(doubles(&story).to_string().contains("a tool and a waiter at once 1"));
    }

    #[test]
    fn h8_every_telling_before_it_needs_an_excuse() {
        breaks("H8", |story| {
            twice(story, Some(1), Some(1));
            story.tellings[1].mark = Mark::Killed;
            story.tellings.push(told(Some(1), 30 * SECOND));
            story.killed.away = vec![away(20 * SECOND, 21 * SECOND)];
        });
    }

    #[test]
    fn h8_what_is_heard_twice_because_somebody_died_in_between_is_not() {
        let reasons: [fn(&mut Story); 9] = [
            |story| {
                twice(story, Some(1), Some(1));
                story.killed.away = vec![away(10 * SECOND + 2, 11 * SECOND)];
            },
            |story| {
                twice(story, Some(1), Some(1));
                story.killed.away = vec![away(9 * SECOND, 10 * SECOND + 1)];
            },
            |story| {
                twice(story, Some(1), Some(1));
                story.killed.away = vec![Away { from: SECOND, until: None }];
            },
            |story| {
                twice(story, Some(1), Some(1));
                story.tellings[0].mark = Mark::Killed;
            },
            |story| {
                twice(story, Some(1), Some(1));
                story.tellings[0].mark = Mark::Until(12 * SECOND);
            },
            |story| twice(story, Some(1), Some(2)),
            |story| {
                twice(story, Some(1), Some(2));
                story.killed.away = vec![away(12 * SECOND, 12 * SECOND + 2)];
                story.calls = vec![Call { life: 1, began: 12 * SECOND + 1, ended: 13 * SECOND }];
            },
            |story| {
                twice(story, None, Some(1));
                story.killed.touched.insert(8);
            },
            |story| {
                twice(story, None, None);
                asked(story, 15 * SECOND);
            },
        ];
        for reason in reasons {
            let mut story = sound();
            reason(&mut story);
            assert_eq!(check(&story), Vec::<String>::new());
            assert!(doubles(&story).to_string().starts_with("told once more: 1 excused ("));
        }
    }
}
