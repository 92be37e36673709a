//! Places for connections: how many each caller may have, and which connection makes room for
//! another.
//!
//! Keeps P11. A process or a task that opens connections without end gets a quarter of the places;
//! the oldest of its own that is idle makes room for each one more, and where none is idle that one
//! is turned away. The last eighth of the places is for processes outside of tasks that have few
//! connections, so that a person at a terminal gets through whatever the tasks do. When all places
//! are taken, the idle connection of the caller that has most makes room.
//!
//! On the listener a connection counts for its process or task from its first request with the
//! token on, since the kernel names the user of a connection at once and its process only by a
//! search. Until then it is idle, so it makes room for the next one.
//!
//! A connection is idle while no request is under way on it: between a request's head and the end
//! of its answer's body, and for as long as it is something else (an attached terminal), it is not.
//! An idle connection can be closed without a loss, since clients expect that of every connection
//! that is kept open.
//!
//! Descriptors are what runs out first, two for each connection, so the number of places follows
//! from the limit of open files; the rest of those is for tasks. What can crash where: nothing is
//! kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::body::Body;
use homing_model::TaskId;
use homing_sys::process::ProcessId;
use parking_lot::{Mutex, MutexGuard};
use tokio::task::AbortHandle;

use crate::memory::Observed;

/// Connections at once, where descriptors suffice.
const MAX_PLACES: usize = 4096;
/// Few enough connections to use the reserve.
const FEW: usize = 16;

/// Whom a connection counts for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// A process outside of all tasks.
    Process(ProcessId),
    /// The outermost task that its process runs in.
    Task(TaskId),
    /// All processes in other pid namespaces.
    Unseen,
    /// All that are refused anyway.
    Refused,
    /// On the listener: the user whom the daemon serves, by a process that is not known yet.
    User,
    /// On the listener: other users, and other machines.
    Stranger,
}

/// How many places there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    total: usize,
}

impl Limits {
    /// Of a server that may have this many files open.
    pub(crate) fn of_files(files: Option<u64>) -> Self {
        let places = files.and_then(|files| usize::try_from(files / 8 * 3).ok());
        Self { total: places.map_or(MAX_PLACES, |places| places.clamp(FEW, MAX_PLACES)) }
    }

    pub(crate) const fn new(total: usize) -> Self {
        Self { total }
    }

    /// What one holder may have.
    fn share(self, holder: &Holder) -> usize {
        match holder {
            Holder::User => self.total,
            Holder::Process(_) | Holder::Task(_) | Holder::Unseen | Holder::Refused | Holder::Stranger => {
                (self.total / 4).max(FEW / 2)
            }
        }
    }

    /// What is to be had for a holder that has this many.
    fn total(self, holder: &Holder, held: usize) -> usize {
        let reserved = match holder {
            Holder::Process(_) => held >= FEW,
            Holder::Task(_) | Holder::Unseen | Holder::Refused | Holder::Stranger => true,
            Holder::User => false,
        };
        if reserved { self.total - self.total / 8 } else { self.total }
    }
}

/// Whether requests are under way on a connection.
#[derive(Debug, Default)]
struct Activity(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    closed: bool,
}

impl Activity {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    fn is_idle(&self) -> bool {
        self.state().under_way == 0
    }

    /// Closes it if it is idle: no request begins on it any more.
    fn close(&self) -> bool {
        let mut state = self.state();
        state.closed |= state.under_way == 0;
        state.closed
    }
}

/// Held while a request is under way.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.state().under_way -= 1;
    }
}

#[derive(Debug)]
struct Entry {
    holder: Holder,
    activity: Arc<Activity>,
    /// None for the moment in which it is being set up.
    abort: Option<AbortHandle>,
}

/// The connections of one server, by the order in which they were accepted.
#[derive(Debug, Default)]
struct Table {
    next: u64,
    entries: BTreeMap<u64, Entry>,
    held: HashMap<Holder, usize>,
}

impl Table {
    fn held(&self, holder: &Holder) -> usize {
        self.held.get(holder).copied().unwrap_or(0)
    }

    fn add(&mut self, holder: Holder) -> (u64, Arc<Activity>) {
        let (number, activity) = (self.next, Arc::<Activity>::default());
        self.next += 1;
        *self.held.entry(holder.clone()).or_default() += 1;
        self.entries.insert(number, Entry { holder, activity: Arc::clone(&activity), abort: None });
        (number, activity)
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.remove(&number)?;
        self.uncount(&entry.holder);
        Some(entry)
    }

    fn uncount(&mut self, holder: &Holder) {
        if let Some(held) = self.held.get_mut(holder) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(holder);
            }
        }
    }

    /// Closes the idle connection that ranks first, of those that may make room; false if there is
    /// none.
    fn close_idle(&mut self, may: impl Fn(&Holder, usize) -> bool) -> bool {
        let makes_room =
            |entry: &Entry| may(&entry.holder, self.held(&entry.holder)) && entry.activity.is_idle();
        let idle = self.entries.iter().filter(|(_, entry)| makes_room(entry));
        // Strangers first, then whoever has most; of those the oldest.
        let rank = |(number, entry): (&u64, &Entry)| {
            let stranger = entry.holder == Holder::Stranger;
            (std::cmp::Reverse((stranger, self.held(&entry.holder))), *number)
        };
        let Some((_, number)) = idle.map(rank).min() else { return false };
        let Some(entry) = self.remove(number) else { return false };
        let closed = entry.activity.close();
        if let Some(abort) = entry.abort.filter(|_| closed) {
            abort.abort();
        }
        closed
    }

    /// Makes room for one more; false if there is none to be made.
    fn make_room(&mut self, limits: Limits, holder: &Holder) -> bool {
        let held = self.held(holder);
        if held >= limits.share(holder) {
            return self.close_idle(|other, _| other == holder);
        }
        self.entries.len() < limits.total(holder, held) || self.close_idle(|_, _| true)
    }
}

/// The places of one server. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(Arc<Mutex<Table>>);

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    number: u64,
    activity: Arc<Activity>,
    limits: Limits,
}

impl Places {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }

    /// A place for one more connection of this holder; none if it is to be turned away.
    pub(crate) fn take(&self, holder: Holder, limits: Limits) -> Option<Place> {
        let mut table = self.table();
        if !table.make_room(limits, &holder) {
            return None;
        }
        let (number, activity) = table.add(holder);
        drop(table);
        Some(Place { places: self.clone(), number, activity, limits })
    }

    /// Whether this holder has all that one may have.
    pub(crate) fn is_full_for(&self, holder: &Holder, limits: Limits) -> bool {
        self.table().held(holder) >= limits.share(holder)
    }

    /// Closes an idle connection of one that has many, because the system is short of what
    /// connections need; false if there is none. One that has few may be about to ask.
    pub(crate) fn give_up_one(&self) -> bool {
        self.table().close_idle(|_, held| held > FEW)
    }

    /// What ends the connection at this place, should it have to make room.
    pub(crate) fn set_abort(&self, number: u64, abort: AbortHandle) {
        if let Some(entry) = self.table().entries.get_mut(&number) {
            entry.abort = Some(abort);
        }
    }

    /// Connections that have a place.
    pub(crate) fn len(&self) -> usize {
        self.table().entries.len()
    }
}

impl Place {
    /// One that takes no room: for a connection of this process with itself.
    pub(crate) fn uncounted() -> Self {
        Self {
            places: Places::default(),
            number: 0,
            activity: Arc::default(),
            limits: Limits::new(MAX_PLACES),
        }
    }

    /// Which place of the server it is.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Counts the connection for this holder from now on; false if that one may not have one more.
    pub(crate) fn count_for(&self, holder: &Holder) -> bool {
        let mut table = self.places.table();
        match table.entries.get(&self.number) {
            Some(entry) if entry.holder == *holder => return true,
            // It has just been closed to make room.
            None => return false,
            Some(_) => {}
        }
        let Some(entry) = table.remove(self.number) else { return false };
        let has_room = table.make_room(self.limits, holder);
        let holder = if has_room { holder.clone() } else { entry.holder };
        *table.held.entry(holder.clone()).or_default() += 1;
        table.entries.insert(self.number, Entry { holder, ..entry });
        has_room
    }

    /// Whether a holder has all that one may have.
    pub(crate) fn is_full_for(&self, holder: &Holder) -> bool {
        self.places.is_full_for(holder, self.limits)
    }

    /// A request begins; none if the connection has just been closed to make room.
    pub(crate) fn begin(&self) -> Option<UnderWay> {
        let mut state = self.activity.state();
        if state.closed {
            return None;
        }
        state.under_way += 1;
        drop(state);
        Some(UnderWay(Arc::clone(&self.activity)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.table().remove(self.number);
    }
}

/// A body during which a request is under way.
pub(crate) fn until_sent(body: Body, under_way: UnderWay) -> Body {
    let sent = move |_| {
        let _ = &under_way;
    };
    Body::new(Observed { body, sent })
}

#[cfg(test)]
mod tests {
    use hyper::body::Body as _;

    use super::*;

    fn process(pid: u32) -> Holder {
        Holder::Process(ProcessId { pid, start: 1 })
    }

    fn task(number: u64) -> Holder {
        Holder::Task(TaskId::from_entropy(number))
    }

    const LIMITS: Limits = Limits::new(160);

    /// So many connections of one holder, as many of them as were let in.
    fn fill(places: &Places, holder: &Holder, count: usize) -> Vec<Place> {
        (0..count).filter_map(|_| places.take(holder.clone(), LIMITS)).collect()
    }

    /// The same, with a request under way on each.
    fn keep_busy(places: &Places, holder: &Holder, count: usize) -> Vec<(Place, UnderWay)> {
        let all = (0..count).filter_map(|_| places.take(holder.clone(), LIMITS));
        all.filter_map(|place| place.begin().map(|under_way| (place, under_way))).collect()
    }

    fn is_closed(place: &Place) -> bool {
        place.begin().is_none()
    }

    #[test]
    fn p11_the_oldest_idle_connection_of_a_hog_makes_room_for_its_next() {
        let places = Places::default();
        let held = fill(&places, &process(1), 40);
        assert_eq!(held.len(), 40, "a quarter");
        let busy = held[0].begin();
        let next = places.take(process(1), LIMITS).unwrap();
        assert!(is_closed(&held[1]) && !is_closed(&held[0]) && !is_closed(&held[2]));
        assert_eq!(places.len(), 40);
        assert!(places.take(process(2), LIMITS).is_some(), "others are let in");
        drop((busy, next));
    }

    #[test]
    fn p11_a_hog_that_keeps_all_its_connections_busy_is_turned_away() {
        let places = Places::default();
        let held = fill(&places, &task(1), 40);
        let busy: Vec<_> = held.iter().map(Place::begin).collect();
        assert!(places.take(task(1), LIMITS).is_none());
        assert!(places.take(process(1), LIMITS).is_some() && places.take(task(2), LIMITS).is_some());
        drop(busy);
        assert!(places.take(task(1), LIMITS).is_some());
    }

    #[test]
    fn p11_tasks_leave_the_reserve_to_who_is_outside_of_them() {
        let places = Places::default();
        let held: Vec<_> = (0..5).flat_map(|number| keep_busy(&places, &task(number), 40)).collect();
        assert_eq!(held.len(), 140, "all but an eighth");
        assert!(places.take(task(9), LIMITS).is_none());
        let own = keep_busy(&places, &process(1), 30);
        assert_eq!(own.len(), FEW, "who has many uses none of the reserve");
        assert!(places.take(process(2), LIMITS).is_some());
    }

    #[test]
    fn p11_when_all_places_are_taken_whoever_has_most_makes_room() {
        let places = Places::default();
        let held: Vec<_> = (0..4).flat_map(|pid| fill(&places, &process(pid), 35)).collect();
        let few: Vec<_> = (10..30).flat_map(|pid| fill(&places, &process(pid), 1)).collect();
        assert_eq!(places.len(), 160);
        assert!(places.take(process(99), LIMITS).is_some());
        assert!(few.iter().all(|place| !is_closed(place)));
        assert_eq!(held.iter().filter(|place| is_closed(place)).count(), 1);
        assert!(is_closed(&held[0]), "the oldest of them");
        assert!(places.give_up_one(), "where the system is short of descriptors");
    }

    #[test]
    fn p11_strangers_on_the_listener_make_room_for_the_user() {
        let places = Places::default();
        let own = fill(&places, &Holder::User, 120);
        let strangers = fill(&places, &Holder::Stranger, 20);
        let next = places.take(Holder::Stranger, LIMITS).unwrap();
        assert!(is_closed(&strangers[0]) && !is_closed(&strangers[1]));
        let more = fill(&places, &Holder::User, 40);
        assert_eq!(more.len(), 40);
        assert!(own.iter().chain(&more).all(|place| !is_closed(place)));
        drop(next);
    }

    #[test]
    fn p11_on_the_listener_a_task_has_a_quarter_once_it_is_known() {
        let places = Places::default();
        let held = fill(&places, &Holder::User, 120);
        let let_in = |place: &Place| place.count_for(&task(1)).then(|| place.begin());
        let busy: Vec<_> = held.iter().map_while(let_in).collect();
        assert_eq!(busy.len(), 40);
        assert!(!held[50].count_for(&task(1)) && held[50].is_full_for(&task(1)));
        assert!(held[0].count_for(&task(1)), "a later request of the same connection");
        let more = fill(&places, &Holder::User, 40);
        let owner = places.take(Holder::User, LIMITS).unwrap();
        assert!(owner.count_for(&process(1)) && owner.begin().is_some());
        assert!(is_closed(&held[40]) && !held[40].count_for(&process(2)), "made room");
        assert_eq!(places.len(), 160);
        drop((busy, owner, held, more));
        assert_eq!((places.len(), places.table().held.len()), (0, 0));
    }

    #[test]
    fn places_follow_from_the_limit_of_open_files() {
        for (files, total) in
            [(None, 4096), (Some(1 << 20), 4096), (Some(4096), 1536), (Some(1024), 384), (Some(8), 16)]
        {
            assert_eq!(Limits::of_files(files), Limits::new(total), "{files:?}");
        }
    }

    #[tokio::test]
    async fn a_request_is_under_way_until_its_answer_was_sent() {
        let places = Places::default();
        let place = places.take(process(1), LIMITS).unwrap();
        assert!(!places.give_up_one(), "who has few is left alone");
        let body = until_sent(Body::from("all"), place.begin().unwrap());
        assert_eq!(body.size_hint().exact(), Some(3));
        let others = keep_busy(&places, &process(1), FEW);
        assert!(!places.give_up_one());
        assert_eq!(axum::body::to_bytes(body, 10).await.unwrap(), "all");
        assert!(places.give_up_one() && is_closed(&place));
        drop(others);
        drop(place);
        assert_eq!(places.len(), 0);
    }
}
