//! H8: what a session hears is its own, and it hears it once.
//!
//! Twice is excused by facts, and by no guess:
//! - whoever told it first was killed before its mark, or the shim that was to say how a wake ended;
//! - no daemon took the mark: one was away between the word and the end of whoever said it, or took longer than a hook waits;
//! - the agent's process ended before it was proved that a model read it: by the end of a turn where a hook printed it, by the next call
//!   where an answer had it;
//! - the lease under which it was taken had run out before the mark;
//! - a question was asked while a hook or a wake had it in hand, and deserves its answer;
//! - somebody asked for it again.
//!
//! Each is counted by itself. A telling is held against every one before it, and each must be excused.

use std::collections::BTreeMap;
use std::fmt;

use super::super::story::{Call, Came, Mark, Story, Telling};

/// A hook gives a daemon so long to take its word; beyond it the mark may be missing.
const PATIENCE_NS: u64 = 1_000_000_000;

/// What a hook takes is its own for so long.
const LEASE_NS: u64 = 10_000_000_000;

/// So much before and after is shown of what broke the rule.
const AROUND_NS: u64 = 2_000_000_000;

/// Why something was told once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// Whoever told it was killed, or its shim.
    TellerKilled,
    /// No daemon was there to take the mark.
    DaemonAway,
    /// The mark took longer than a hook waits for it.
    Slow,
    /// Whoever took it first was so slow that it was no longer theirs.
    Lapsed,
    /// The agent's process that heard it is gone, and nothing proved that it was read.
    AgentGone,
    /// It was asked for by a call that began while another had it in hand.
    Question,
    /// Somebody asked for it.
    Asked,
}

impl Reason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::TellerKilled => "its teller killed",
            Self::DaemonAway => "no daemon for its mark",
            Self::Slow => "a mark that took too long",
            Self::Lapsed => "a lease that ran out",
            Self::AgentGone => "its agent gone",
            Self::Question => "asked while another had it",
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
                        "{} heard {} twice, {gap} ms apart, for no reason that there was: {first:?} and {telling:?}; {}",
                        telling.owner,
                        telling.notice,
                        around(story, first, telling)
                    ));
                }
            }
        }
    }
    doubles
}

/// What else happened then, for whoever looks for the cause.
fn around(story: &Story, first: &Telling, second: &Telling) -> String {
    let (from, to) = (first.at.saturating_sub(AROUND_NS), second.at + AROUND_NS);
    let near = |at: u64| (from..=to).contains(&at);
    let ms = |at: u64| at.cast_signed().wrapping_sub(first.at.cast_signed()) / 1_000_000;
    let away = story.killed.away.iter().filter(|away| near(away.from) || away.until.is_some_and(near));
    let away: Vec<_> = away.map(|away| (ms(away.from), away.until.map(ms))).collect();
    let lives = [first.life, second.life];
    let calls = story.calls.iter().filter(|call| lives.contains(&Some(call.life)) && near(call.ended));
    let calls: Vec<_> = calls.map(|call| (call.life, ms(call.began), ms(call.ended))).collect();
    let all = story.tellings.iter().filter(|one| one.notice == first.notice).count();
    let task = story.notices.get(&first.notice).map(|notice| (&notice.about, &notice.task));
    let sent = story.deliveries.iter().filter(|sent| sent.notice == first.notice);
    let sent: Vec<_> = sent.map(|sent| (&sent.target, &sent.state, &sent.reason, &sent.results)).collect();
    let again: Vec<_> =
        story.again.get(&first.notice).into_iter().flatten().map(|asked| ms(asked.at)).collect();
    format!(
        "{task:?} told {all} times; in ms from the first: daemons away {away:?}, calls {calls:?}, asked again {again:?}; sent {sent:?}"
    )
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

/// Whether one is the answer to a call that began when the other had the notice in hand already.
fn is_question(one: &Telling, other: &Telling) -> bool {
    let Came::Answered { began, own: false } = one.came else { return false };
    match other.came {
        Came::Taken { asked, .. } => asked <= began && began <= other.at,
        Came::Answered { .. } | Came::HandedOver | Came::Unknown => false,
    }
}

/// Why it could be told again after `first`, if there was a reason.
fn excuse(story: &Story, first: &Telling, second: &Telling) -> Option<Reason> {
    if is_question(first, second) || is_question(second, first) {
        return Some(Reason::Question);
    }
    let told = match first.mark {
        // A wake: its word counts when its shim has told how it ended.
        Mark::Shim if is_touched(story, first) => return Some(Reason::TellerKilled),
        Mark::Shim => return None,
        Mark::Killed => return Some(Reason::TellerKilled),
        Mark::Unheard(ended) if story.killed.was_away(first.at, ended) => return Some(Reason::DaemonAway),
        Mark::Unheard(ended) if ended.saturating_sub(first.at) > PATIENCE_NS => return Some(Reason::Slow),
        // A waiter whose agent ends leaves at once, between its word and its mark.
        Mark::Unheard(ended) => ended,
        Mark::By(marked) => {
            if let (Came::Taken { asked, .. }, Came::Taken { given, .. }) = (first.came, second.came)
                && given.saturating_sub(asked) > LEASE_NS
                && given < marked
            {
                return Some(Reason::Lapsed);
            }
            marked
        }
        Mark::Before => first.at,
    };
    // The process that heard it is gone, and nothing proved that its model read it: the next one is told what it was told.
    let life = first.life?;
    let is_proof = |call: &&Call| call.ends_turn || matches!(first.came, Came::Answered { .. });
    let proved =
        story.calls.iter().filter(is_proof).any(|call| {
            call.life == life && call.began > told && !story.killed.was_away(call.began, call.ended)
        });
    (second.life.is_some_and(|other| other != life) && !proved).then_some(Reason::AgentGone)
}

#[cfg(test)]
mod tests {
    use super::super::super::story::{Asked, Away};
    use super::super::check;
    use super::super::tests::{breaks, sound};
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    /// By a hook, which took it 3 ms before and marked it 5 ns after; or by a wake.
    fn told(life: Option<u64>, at: u64) -> Telling {
        let mark = life.map_or(Mark::Shim, |_| Mark::By(at + 5));
        let came = life.map_or(Came::HandedOver, |_| Came::Taken { asked: at - 3 * MS, given: at - MS });
        Telling { notice: "n".into(), owner: "ann".into(), life, at, came, mark, by: vec![7, 8] }
    }

    /// By the answer to a call.
    fn answered(began: u64, at: u64, own: bool) -> Telling {
        Telling { came: Came::Answered { began, own }, mark: Mark::Before, ..told(Some(1), at) }
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
            story.calls = vec![Call { life: 1, began: 12 * SECOND, ended: 13 * SECOND, ends_turn: true }];
        });
    }

    #[test]
    fn h8_a_daemon_that_died_before_the_word_or_after_the_mark_excuses_nothing() {
        breaks("H8", |story| {
            twice(story, Some(1), Some(1));
            // What a hook has taken is in the ledger; that a daemon dies while it has it changes nothing.
            story.killed.away =
                vec![away(9 * SECOND, 10 * SECOND - 1), away(10 * SECOND + 6, 10 * SECOND + 9)];
        });
        breaks("H8", |story| {
            twice(story, Some(1), Some(1));
            // Nor while it is marked, if whoever marks it hears that it was.
            story.killed.away = vec![away(10 * SECOND + 1, 10 * SECOND + 2)];
        });
        breaks("H8", |story| {
            twice(story, None, None);
            // How a wake ended is known to its shim.
            story.killed.away = vec![away(10 * SECOND + 1, 11 * SECOND)];
        });
        breaks("H8", |story| {
            twice(story, Some(1), Some(1));
            story.tellings[0].mark = Mark::Unheard(10 * SECOND + 5);
        });
        breaks("H8", |story| {
            twice(story, Some(1), Some(2));
            story.killed.away = vec![away(11 * SECOND, 12 * SECOND - 1)];
            story.calls = vec![Call { life: 1, began: 12 * SECOND, ended: 13 * SECOND, ends_turn: true }];
        });
        breaks("H8", |story| {
            twice(story, Some(1), Some(1));
            // The answer of a tool is marked before it is said.
            story.tellings[0].mark = Mark::Before;
            story.killed.away = vec![away(10 * SECOND + 2, 10 * SECOND + 3)];
        });
    }

    #[test]
    fn h8_a_call_proves_the_reading_of_an_answer_and_not_of_a_hook() {
        let call = Call { life: 1, began: 12 * SECOND, ended: 13 * SECOND, ends_turn: false };
        let mut printed = sound();
        twice(&mut printed, Some(1), Some(2));
        printed.calls = vec![call];
        assert_eq!(check(&printed), Vec::<String>::new());
        breaks("H8", |story| {
            story.tellings = vec![answered(9 * SECOND, 10 * SECOND, true), told(Some(2), 20 * SECOND)];
            story.calls = vec![call];
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
    fn h8_a_question_is_excused_by_what_another_had_in_hand_when_it_began_and_by_nothing_else() {
        let hook = told(Some(1), 10 * SECOND);
        let asked = |began: u64, at: u64, own: bool| vec![hook.clone(), answered(began, at, own)];
        // It began before the hook asked, after the hook had spoken, or made the task itself.
        breaks("H8", |story| story.tellings = asked(10 * SECOND - 4 * MS, 11 * SECOND, false));
        breaks("H8", |story| story.tellings = asked(10 * SECOND + MS, 11 * SECOND, false));
        breaks("H8", |story| story.tellings = asked(10 * SECOND - 2 * MS, 11 * SECOND, true));
        breaks("H8", |story| {
            // A waiter that takes it while the call is open.
            story.tellings = vec![answered(5 * SECOND, 9 * SECOND, false), hook.clone()];
        });
        breaks("H8", |story| {
            story.tellings = vec![told(None, 10 * SECOND), answered(9 * SECOND, 11 * SECOND, false)];
        });
        for at in [10 * SECOND - MS, 11 * SECOND] {
            let mut story = sound();
            story.tellings = asked(10 * SECOND - 2 * MS, at, false);
            story.tellings.sort_by_key(|telling| telling.at);
            assert_eq!(check(&story), Vec::<String>::new());
            assert!(doubles(&story).to_string().contains("asked while another had it 1"));
        }
    }

    #[test]
    fn h8_a_lease_excuses_once_it_has_run_out_and_no_sooner() {
        let late = |story: &mut Story, asked: u64| {
            twice(story, Some(1), Some(1));
            story.tellings[0].came = Came::Taken { asked, given: asked + MS };
            story.tellings[0].mark = Mark::By(21 * SECOND);
        };
        breaks("H8", |story| late(story, 10 * SECOND - MS));
        let mut story = sound();
        late(&mut story, 9 * SECOND);
        assert!(doubles(&story).to_string().contains("a lease that ran out 1"));
    }

    #[test]
    fn h8_every_telling_before_it_needs_an_excuse() {
        breaks("H8", |story| {
            twice(story, Some(1), Some(1));
            story.tellings[1].mark = Mark::Killed;
            story.tellings.push(told(Some(1), 30 * SECOND));
        });
    }

    #[test]
    fn h8_what_is_heard_twice_because_somebody_died_in_between_is_not() {
        let unheard = |story: &mut Story, ended: u64| {
            twice(story, Some(1), Some(1));
            story.tellings[0].mark = Mark::Unheard(ended);
        };
        let reasons: [&dyn Fn(&mut Story); 10] = [
            &|story| {
                unheard(story, 10 * SECOND + 5);
                story.killed.away = vec![away(10 * SECOND + 2, 11 * SECOND)];
            },
            &|story| {
                unheard(story, 10 * SECOND + 5);
                story.killed.away = vec![away(9 * SECOND, 10 * SECOND + 1)];
            },
            &|story| {
                unheard(story, 10 * SECOND + 5);
                story.killed.away = vec![Away { from: SECOND, until: None }];
            },
            &|story| {
                twice(story, Some(1), Some(1));
                story.tellings[0].mark = Mark::Killed;
            },
            &|story| unheard(story, 12 * SECOND),
            &|story| {
                unheard(story, 10 * SECOND + 5);
                story.tellings[1].life = Some(2);
            },
            &|story| twice(story, Some(1), Some(2)),
            &|story| {
                twice(story, Some(1), Some(2));
                story.killed.away = vec![away(12 * SECOND, 12 * SECOND + 2)];
                story.calls =
                    vec![Call { life: 1, began: 12 * SECOND + 1, ended: 13 * SECOND, ends_turn: true }];
            },
            &|story| {
                twice(story, None, Some(1));
                story.killed.touched.insert(8);
            },
            &|story| {
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
