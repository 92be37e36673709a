//! Pause and resume: the tree stands still, and goes on. Keeps P2, P3 and P8.
//!
//! # Theory of operation
//!
//! Whether a task is paused is this process's to know: it holds the tree, and the ledger follows what it says. It tells the daemon whenever that
//! changes, and says it again to every daemon that asks where it stands; so one that was killed between the order and its record is
//! made good by the next. Being asked twice is being asked once. Freezing may take a moment, so it is a state of the loop and not a wait in it:
//! output is taken and a stop is heard meanwhile.
//!
//! Time does not count against the limit from the order to stand still until the tree goes on. A stop lets go of the tree once its
//! signal has been sent, so that it is heard; the end of the main process (only SIGKILL from elsewhere can bring it then) lets go of whoever
//! outlives it. When this process is killed the tree is ended by others like that of any killed shim: SIGKILL reaches the frozen.

use super::service::Service;
use crate::cgroup::Group;
use crate::clock;
use crate::freeze::Hold;
use crate::wire::{FromShim, PauseAnswer, Stillness};

/// Between two looks at a tree that does not stand still yet: longer each time that comes no further.
const FIRST_LOOK_MS: i64 = 1;
const LONGEST_LOOK_MS: i64 = 50;
/// The same once it does, while somebody in it is asleep in the kernel.
const LONGEST_REST_MS: i64 = 1_000;
/// Who sleeps in the kernel for so long counts as standing still.
const SLEEP_MS: i64 = 250;
/// Between two glances at a tree that stands still: somebody may have continued it.
const GLANCE_MS: i64 = 10_000;
/// From output of a tree that stands still to a whole look at it: somebody whom nobody knows of may have printed it, or a stranger who does so all
/// the time.
const STIR_MS: i64 = 1_000;
/// How long own children are looked for before a look, once somebody got away from the last one.
const CATCH_MS: i64 = 5;
/// Who does not stand still after so long cannot be held.
const PATIENCE_MS: i64 = 5_000;

/// A tree that stands still, or is about to.
#[derive(Debug)]
pub(super) struct Pause {
    hold: Hold,
    /// When it was asked for, by the monotonic clock.
    began: i64,
    /// Since when it is certain, in wall-clock milliseconds.
    since: Option<i64>,
    /// How many have asked and were not answered.
    asked: u32,
    next_look: Option<i64>,
    /// When to glance at it, once it stands still.
    next_glance: i64,
    /// It has printed since the last look.
    stirred: bool,
    pause: i64,
}

impl Pause {
    fn begin(group: Option<&Group>, now: i64) -> Self {
        let hold = Hold::begin(group);
        Self {
            hold,
            began: now,
            since: None,
            asked: 1,
            next_look: Some(now),
            next_glance: now,
            stirred: false,
            pause: FIRST_LOOK_MS,
        }
    }

    /// When to be asked again.
    pub(super) fn deadline(&self) -> i64 {
        self.next_look.unwrap_or(self.next_glance)
    }

    /// It has printed: what was on its way, or somebody has continued it.
    pub(super) fn stir(&mut self) {
        self.stirred = true;
        self.next_glance = self.next_glance.min(clock::monotonic() + STIR_MS);
    }

    /// Glances at a tree that stands still, if it is time, and looks again if somebody moves, or must have.
    fn glance(&mut self, group: Option<&Group>, now: i64) {
        if self.next_look.is_some() || now < self.next_glance {
            return;
        }
        self.next_glance = now + GLANCE_MS;
        if std::mem::take(&mut self.stirred) || !self.hold.glance(group) {
            self.make_sure();
        }
    }

    /// A signal may have set somebody going.
    pub(super) fn look_again(&mut self) {
        if !self.hold.is_firm() {
            self.make_sure();
        }
    }

    /// Looks anew whether what was certain still is so.
    pub(super) fn make_sure(&mut self) {
        if self.since.is_some() && self.next_look.is_none() {
            self.hold.doubt();
            self.pause = FIRST_LOOK_MS;
            self.next_look = Some(clock::monotonic());
        }
    }

    /// Whether it is time to look.
    fn is_due(&self, now: i64) -> bool {
        self.next_look.is_some_and(|at| now >= at)
    }

    /// Looks. True if that made it certain.
    fn look(&mut self, group: Option<&Group>, now: i64) -> bool {
        self.stirred = false;
        let certain = self.hold.look(group, now >= self.began + SLEEP_MS);
        if self.hold.has_advanced() {
            self.pause = FIRST_LOOK_MS;
        }
        let wait = if self.hold.is_clean() && !certain { 0 } else { self.pause };
        self.next_look = (!certain || self.hold.is_uneasy()).then_some(now + wait);
        self.next_glance = now + GLANCE_MS;
        self.pause = (self.pause * 2).min(if certain { LONGEST_REST_MS } else { LONGEST_LOOK_MS });
        certain
    }
}

impl Service {
    /// Somebody asked for the tree to stand still.
    pub(super) fn pause(&mut self) {
        // The truth first: what has ended is not paused.
        self.reap();
        if let Some(why_not) = self.why_no_pause() {
            return self.tell(&FromShim::PauseAnswered(why_not));
        }
        let now = clock::monotonic();
        match &mut self.pause {
            Some(pause) if pause.since.is_some() => {
                pause.make_sure();
                self.tell(&FromShim::PauseAnswered(PauseAnswer::Already));
            }
            Some(pause) => pause.asked += 1,
            None => self.pause = Some(Pause::begin(self.group.as_ref(), now)),
        }
        self.advance_pause(now);
    }

    /// Somebody asked for it to go on.
    pub(super) fn resume(&mut self) {
        self.reap();
        let answer = match self.why_no_pause() {
            Some(why_not) => why_not,
            None if self.let_go(&PauseAnswer::Overtaken) => {
                self.resumed_at = Some(self.wall.now());
                self.tell(&FromShim::Paused(self.stillness()));
                PauseAnswer::Done
            }
            None => PauseAnswer::Already,
        };
        self.tell(&FromShim::PauseAnswered(answer));
    }

    fn why_no_pause(&self) -> Option<PauseAnswer> {
        if self.has_ended() {
            Some(PauseAnswer::Ended)
        } else if self.stop.is_some() {
            Some(PauseAnswer::Stopping)
        } else if self.started_at.is_none() {
            Some(PauseAnswer::NotStarted)
        } else {
            None
        }
    }

    /// Goes on with a pause that is not certain yet.
    pub(super) fn advance_pause(&mut self, now: i64) {
        if let Some(pause) = &mut self.pause {
            pause.glance(self.group.as_ref(), now);
        }
        if self.pause.as_ref().is_some_and(|pause| pause.is_due(now) && pause.hold.is_fled()) {
            self.catch();
        }
        if self.pause.is_some() && self.has_ended() {
            self.let_go(&PauseAnswer::Ended);
        }
        let Some(pause) = self.pause.as_mut().filter(|pause| pause.is_due(now)) else { return };
        let certain = pause.look(self.group.as_ref(), now);
        if pause.since.is_some() {
            return;
        }
        if certain {
            self.stand_still();
        } else if now >= pause.began + PATIENCE_MS {
            let free = pause.hold.free(self.group.as_ref());
            if let Some(process) = free {
                self.let_go(&PauseAnswer::Beyond(process.pid, process.name));
            }
        }
    }

    /// Stops whoever comes to be a child of this process, and takes who has ended: of those who fork and end at once there would soon be
    /// more than a look has time for.
    fn catch(&mut self) {
        let until = clock::monotonic() + CATCH_MS;
        while clock::monotonic() < until {
            self.reap();
            if let Some(pause) = &mut self.pause {
                pause.hold.catch(self.group.as_ref());
            }
        }
        self.reap();
    }

    /// Nobody of the tree is free any more.
    fn stand_still(&mut self) {
        self.reap();
        if self.has_ended() {
            self.let_go(&PauseAnswer::Ended);
            return;
        }
        let now = self.wall.now();
        let Some(pause) = &mut self.pause else { return };
        pause.since = Some(now);
        let asked = std::mem::take(&mut pause.asked);
        self.tell(&FromShim::Paused(self.stillness()));
        for number in 0..asked {
            let answer = if number == 0 { PauseAnswer::Done } else { PauseAnswer::Already };
            self.tell(&FromShim::PauseAnswered(answer));
        }
    }

    /// Lets the tree go on, if it is held, and tells those why who waited for it to stand still. True if it did stand still.
    pub(super) fn let_go(&mut self, why: &PauseAnswer) -> bool {
        let Some(pause) = self.pause.take() else { return false };
        let Pause { hold, began, since, asked, .. } = pause;
        hold.release(self.group.as_ref());
        self.timeout_at = self.timeout_at.map(|at| at.saturating_add(clock::monotonic() - began));
        for _ in 0..asked {
            self.tell(&FromShim::PauseAnswered(why.clone()));
        }
        since.is_some()
    }

    /// Whoever asked is gone; what was asked for is done all the same.
    pub(super) fn forget_askers(&mut self) {
        if let Some(pause) = &mut self.pause {
            pause.asked = 0;
        }
    }

    /// Whether the tree stands still, for certain.
    pub(super) fn stillness(&self) -> Stillness {
        match self.pause.as_ref().and_then(|pause| pause.since) {
            Some(since) => Stillness { paused: true, since: Some(since) },
            None => Stillness { paused: false, since: self.resumed_at },
        }
    }
}
