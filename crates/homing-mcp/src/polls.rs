//! Ends that are due together are answered together.
//!
//! A client polls each of its MCP tasks by itself, and each answer that tells an end costs it a turn, unless it comes with others in the same moment.
//! So the answer for a task that has ended waits: a moment for the ends of other tasks of the owner, and until the client has asked for those that have
//! ended as well. Then all of them go out at once. What is kept here is which tasks are asked for; where it is lost, an end costs a turn of its own.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use homing_client::ListQuery;
use homing_model::{Task, TaskId, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::access::Access;
use crate::refusal::Refusal;

/// Ends that are this close together, in milliseconds, are due together.
const SETTLING_MS: u64 = 250;
/// However many tasks end, an end is answered after this long, in milliseconds: longer than a busy client
/// pauses between two polls.
const HELD_MS: u64 = 6_000;
/// So many of the newest tasks of an owner are looked at for ends that are close.
const NEWEST: u32 = 50;
/// So many tasks are kept: more than clients poll for at once. A client may abandon a task that it was promised, so the one that was asked
/// for least recently makes room.
const MOST: usize = 1_000;

/// How it is with a task that a client polls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Poll {
    /// It asks now and then.
    Asked,
    /// It asks, and the answer waits.
    Waits,
    /// The answer goes out.
    Goes,
}

/// What clients poll for.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    known: Mutex<Known>,
    changed: Notify,
}

/// The tasks that are polled for, each with the time of its last poll, counted in polls.
#[derive(Debug, Default)]
struct Known {
    tasks: HashMap<TaskId, (u64, Poll)>,
    polls: u64,
}

impl Known {
    fn get(&self, task: &TaskId) -> Option<Poll> {
        self.tasks.get(task).map(|(_, poll)| *poll)
    }

    fn set(&mut self, task: &TaskId, poll: Poll) {
        self.polls += 1;
        self.tasks.insert(task.clone(), (self.polls, poll));
        if self.tasks.len() <= MOST {
            return;
        }
        let oldest = self.tasks.iter().min_by_key(|(_, (polled, _))| *polled);
        if let Some(oldest) = oldest.map(|(task, _)| task.clone()) {
            self.tasks.remove(&oldest);
        }
    }
}

impl Polls {
    /// A client was given a task, and will ask for it.
    pub(crate) fn promised(&self, task: &TaskId) {
        self.set(task, Some(Poll::Asked));
    }

    /// A client asks for a task. Where that has ended, this returns once the end may be told.
    pub(crate) async fn seen(&self, access: &Access, task: &Task) -> Result<(), Refusal> {
        let Some(ended) = task.ended_at.filter(|ended| now().millis_since(*ended) < HELD_MS) else {
            self.set(&task.id, (!task.status.is_terminal()).then_some(Poll::Asked));
            return Ok(());
        };
        let _waiting = Waiting::new(self, &task.id);
        loop {
            let changed = self.changed.notified();
            let newest = newest(access, &task.owner).await?;
            let now = now();
            let pause = {
                let known = self.known();
                if known.get(&task.id) == Some(Poll::Goes) {
                    return Ok(());
                }
                let others = newest.iter().filter(|other| other.id != task.id);
                pause(others.map(|other| (other.ended_at, known.get(&other.id))), ended, now)
            };
            let Some(pause) = pause.filter(|_| now.millis_since(ended) < HELD_MS) else {
                self.go(newest.iter().map(|other| &other.id));
                return Ok(());
            };
            let _ = timeout(Duration::from_millis(pause), changed).await;
            if self.known().get(&task.id) == Some(Poll::Goes) {
                return Ok(());
            }
        }
    }

    /// All answers that wait, of these tasks, go out.
    fn go<'a>(&self, tasks: impl Iterator<Item = &'a TaskId>) {
        let mut known = self.known();
        for task in tasks {
            if let Some((_, poll)) = known.tasks.get_mut(task)
                && *poll == Poll::Waits
            {
                *poll = Poll::Goes;
            }
        }
        drop(known);
        self.changed.notify_waiters();
    }

    fn set(&self, task: &TaskId, poll: Option<Poll>) {
        let mut known = self.known();
        match poll {
            Some(poll) => known.set(task, poll),
            None => drop(known.tasks.remove(task)),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

/// A task while the answer for it waits; after that it is not polled for any more.
struct Waiting<'a> {
    polls: &'a Polls,
    task: &'a TaskId,
}

impl<'a> Waiting<'a> {
    fn new(polls: &'a Polls, task: &'a TaskId) -> Self {
        polls.set(task, Some(Poll::Waits));
        polls.changed.notify_waiters();
        Self { polls, task }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.polls.set(self.task, None);
    }
}

/// How long an end waits for others, in milliseconds; not at all where no other is close. Of each other task: when it ended, and whether it is polled for.
fn pause(
    others: impl Iterator<Item = (Option<Timestamp>, Option<Poll>)>,
    ended: Timestamp,
    now: Timestamp,
) -> Option<u64> {
    let settles = |end: Timestamp| SETTLING_MS.checked_sub(now.millis_since(end)).filter(|left| *left > 0);
    others
        .filter_map(|(end, poll)| match (end, poll) {
            (None, _) => settles(ended),
            (Some(end), Some(Poll::Asked)) if now.millis_since(end) < HELD_MS => Some(HELD_MS),
            (Some(end), _) => settles(end),
        })
        .max()
}

async fn newest(access: &Access, owner: &str) -> Result<Vec<Task>, Refusal> {
    let query = ListQuery { owner: Some(owner.to_owned()), limit: Some(NEWEST), ..ListQuery::default() };
    Ok(access.reader.list(&query).await?.items)
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with times of the ledger, which the same machine wrote; the rules take it as a parameter"
)]
fn now() -> Timestamp {
    SystemTime::now().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_no_client_polls_for_make_room_for_new_ones() {
        let (polls, task) = (Polls::default(), TaskId::from_entropy);
        for number in 0..3_000 {
            polls.promised(&task(number));
            // One that is polled for all the time stays.
            polls.promised(&task(0));
        }
        let known = polls.known();
        assert_eq!(known.tasks.len(), MOST);
        assert!([0, 2_001, 2_999].iter().all(|number| known.get(&task(*number)) == Some(Poll::Asked)));
        assert_eq!(known.get(&task(2_000)), None);
    }

    #[test]
    fn an_end_waits_for_what_ends_with_it_and_for_what_the_client_has_not_asked_for() {
        let now = Timestamp::from_millis(1_789_000_000_000);
        let ago = |millis: i64| now.plus_millis(-millis);
        let pause = |others: &[(Option<i64>, Option<Poll>)], ended: i64| {
            pause(others.iter().map(|(end, poll)| (end.map(ago), *poll)), ago(ended), now)
        };
        let polled = Some(Poll::Asked);
        assert_eq!(pause(&[], 0), None, "a single task has nothing to wait for");
        assert_eq!(pause(&[(None, polled)], 100), Some(150), "another still runs");
        assert_eq!(pause(&[(None, polled)], 250), None);
        assert_eq!(pause(&[(Some(100), Some(Poll::Waits))], 300), Some(150), "another has just ended");
        assert_eq!(pause(&[(Some(300), polled)], 300), Some(HELD_MS), "the client comes for it as well");
        assert_eq!(pause(&[(Some(300), None), (Some(300), Some(Poll::Waits))], 300), None);
        assert_eq!(pause(&[(Some(90_000), polled)], 10), None, "nobody comes for that any more");
    }
}
