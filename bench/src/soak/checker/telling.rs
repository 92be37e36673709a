//! H8: what a session hears is its own, and it hears it once.
//!
//! Twice is excused where somebody died between the telling and its mark in the ledger, and only there: whoever told it was killed; the daemon
//! was, while it was told; the agent's process ended before the session called again; or somebody asked for it again.

use std::collections::BTreeMap;

use super::super::story::{Story, Telling};

/// A hook gives a daemon so long to take its word; beyond it the mark may be missing.
const PATIENCE_NS: u64 = 1_000_000_000;
/// How long a killed daemon is away at most, for a call that comes after: it may not have been heard.
const AWAY_NS: u64 = 3_000_000_000;

pub(super) fn once_and_to_its_owner(story: &Story) -> Vec<String> {
    let mut found: Vec<String> = story.inbox.astray.clone();
    let mut before: BTreeMap<(&str, &str), &Telling> = BTreeMap::new();
    for telling in &story.tellings {
        let Some(notice) = story.notices.get(&telling.notice) else {
            found.push(format!("{} heard {}, which nobody wrote", telling.owner, telling.notice));
            continue;
        };
        if notice.owner != telling.owner {
            found.push(format!("{} heard {}, which is {}'s", telling.owner, telling.notice, notice.owner));
        }
        let first = before.insert((&telling.owner, &telling.notice), telling);
        if let Some(first) = first.filter(|first| !excused(story, first, telling)) {
            let gap = (telling.at - first.at) / 1_000_000;
            found.push(format!(
                "{} heard {} twice, {gap} ms apart, for no reason that there was: {first:?} and {telling:?}",
                telling.owner, telling.notice
            ));
        }
    }
    found
}

/// Whether there was a reason to tell it again after `first`.
fn excused(story: &Story, first: &Telling, second: &Telling) -> bool {
    if story.again.contains(&first.notice) {
        return true;
    }
    let Some(life) = first.life else {
        // A wake: its word counts when its shim has told how it ended.
        return first.by.iter().any(|pid| story.killed.touched.contains(pid));
    };
    let Some(marked) = first.marked else { return true };
    let down = |from: u64, to: u64| story.killed.daemon_at.iter().any(|at| (from..=to).contains(at));
    if marked - first.at.min(marked) > PATIENCE_NS || down(first.at.saturating_sub(AWAY_NS), marked) {
        return true;
    }
    // The process that heard it is gone, and had not called again: the next one is told what it was told.
    let heard_again = story.calls.iter().any(|call| {
        call.life == life && call.began > marked && !down(call.began.saturating_sub(AWAY_NS), call.ended)
    });
    second.life.is_some_and(|other| other != life) && !heard_again
}

#[cfg(test)]
mod tests {
    use super::super::super::story::Call;
    use super::super::check;
    use super::super::tests::{breaks, sound};
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn told(life: Option<u64>, at: u64) -> Telling {
        let marked = life.map(|_| at + 5);
        Telling { notice: "n".into(), owner: "ann".into(), life, at, marked, by: vec![7, 8] }
    }

    /// Told by a hook in one life at 10 s, and again at 20 s.
    fn twice(story: &mut Story, first: Option<u64>, second: Option<u64>) {
        story.tellings = vec![told(first, 10 * SECOND), told(second, 20 * SECOND)];
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
        breaks("H8", |story| {
            twice(story, Some(1), Some(1));
            story.killed.daemon_at = vec![5 * SECOND, 15 * SECOND];
        });
    }

    #[test]
    fn h8_what_is_heard_twice_because_somebody_died_in_between_is_not() {
        let reasons: [fn(&mut Story); 6] = [
            |story| {
                twice(story, Some(1), Some(1));
                story.killed.daemon_at = vec![10 * SECOND + 2];
            },
            |story| {
                twice(story, Some(1), Some(1));
                story.tellings[0].marked = None;
            },
            |story| twice(story, Some(1), Some(2)),
            |story| {
                twice(story, Some(1), Some(2));
                story.killed.daemon_at = vec![12 * SECOND];
                story.calls = vec![Call { life: 1, began: 12 * SECOND + 1, ended: 13 * SECOND }];
            },
            |story| {
                twice(story, None, Some(1));
                story.killed.touched.insert(8);
            },
            |story| {
                twice(story, None, None);
                story.again.insert("n".into());
            },
        ];
        for reason in reasons {
            let mut story = sound();
            reason(&mut story);
            assert_eq!(check(&story), Vec::<String>::new());
        }
    }
}
