//! How long finished tasks are kept, and which of the unread ones go where there is room for no more.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Whichever limit is reached first. A task with an entry in an inbox is unread: age does not end it, and of the others' room it takes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// A finished task is kept this long.
    pub age: Duration,
    /// At most so many finished tasks.
    pub count: u64,
    /// At most so much output of finished tasks.
    pub bytes: u64,
    /// A tombstone answers for this long.
    pub tombstones: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        const DAY: u64 = 86_400;
        Self {
            age: Duration::from_secs(7 * DAY),
            count: 10_000,
            bytes: 4 << 30,
            tombstones: Duration::from_secs(90 * DAY),
        }
    }
}

/// A finished task with an entry in an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread<'a> {
    /// Whose it is.
    pub owner: &'a str,
    /// The task that it came of, in the end; none if it was submitted outside of tasks.
    pub came_of: Option<&'a str>,
    /// Bytes of output.
    pub bytes: u64,
}

#[derive(Default)]
struct Share {
    /// Places, oldest first.
    tasks: VecDeque<usize>,
    bytes: u64,
}

/// Which of the unread tasks go, by their places, if nothing else is left to go and there are so many, or so many bytes, too many. `unread`
/// is sorted, oldest end first. Each time it is the oldest of the share that holds the most. An owner has one share, and one more for each of
/// its tasks from inside which others were submitted: a program that starts much displaces what it started, not the results beside it.
#[must_use]
pub fn displaced(unread: &[Unread<'_>], mut count: u64, mut bytes: u64, limit: usize) -> Vec<usize> {
    let mut shares: BTreeMap<(&str, Option<&str>), Share> = BTreeMap::new();
    for (place, task) in unread.iter().enumerate() {
        let share = shares.entry((task.owner, task.came_of)).or_default();
        share.tasks.push_back(place);
        share.bytes = share.bytes.saturating_add(task.bytes);
    }
    let mut gone = Vec::new();
    while (count > 0 || bytes > 0) && gone.len() < limit {
        let holds = |share: &Share| if count > 0 { share.tasks.len() as u64 } else { share.bytes };
        let Some(share) =
            shares.values_mut().filter(|share| !share.tasks.is_empty()).max_by_key(|share| holds(share))
        else {
            break;
        };
        let Some(place) = share.tasks.pop_front() else { break };
        let freed = unread.get(place).map_or(0, |task| task.bytes);
        share.bytes = share.bytes.saturating_sub(freed);
        count = count.saturating_sub(1);
        bytes = bytes.saturating_sub(freed);
        gone.push(place);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tasks: &[(&'static str, u64)]) -> Vec<Unread<'static>> {
        tasks.iter().map(|&(owner, bytes)| Unread { owner, came_of: None, bytes }).collect()
    }

    #[test]
    fn the_owner_who_holds_the_most_loses_its_oldest() {
        let unread = of(&[("ann", 1), ("bob", 1), ("bob", 1), ("bob", 1), ("ann", 1)]);
        assert_eq!(displaced(&unread, 1, 0, 9), [1]);
        assert_eq!(displaced(&unread, 4, 0, 9).len(), 4);
        assert_eq!(displaced(&unread, 9, 0, 9).len(), 5);
        assert_eq!(displaced(&unread, 9, 0, 2).len(), 2);
        assert_eq!(displaced(&unread, 0, 0, 9), [] as [usize; 0]);
    }

    #[test]
    fn a_program_inside_a_task_displaces_what_it_started() {
        let mut unread = of(&[("ann", 1), ("ann", 1), ("ann", 1), ("ann", 1), ("ann", 1)]);
        for nested in &mut unread[2..] {
            nested.came_of = Some("t-1");
        }
        assert_eq!(displaced(&unread, 1, 0, 9), [2]);
        assert_eq!(displaced(&unread, 0, 1, 9), [2]);
    }

    #[test]
    fn bytes_go_where_most_of_them_are() {
        let unread = of(&[("ann", 10), ("bob", 60), ("bob", 50)]);
        assert_eq!(displaced(&unread, 0, 70, 9), [1, 2]);
        assert_eq!(displaced(&unread, 0, 60, 9), [1]);
    }
}
