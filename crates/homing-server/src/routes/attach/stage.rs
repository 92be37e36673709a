//! A task's terminal while somebody looks: one for all of its viewers.
//!
//! # Theory of operation
//! The first viewer makes the stage, the last one ends it; nothing of it outlives them, and nothing of it is kept: it is made of the durable
//! output and its sizes, so that a daemon that died is not missed. One task ([`super::feeder`]) reads the output, feeds the model and publishes what the model
//! shows together with the last bytes. Viewers pull: each knows what it was given and asks for what has changed since. So a viewer
//! that reads slowly holds nothing but its own last frame; when it is ready for more and the bytes are gone, it gets a screen.
//!
//! The smallest viewer decides the size, in columns and in rows, each for itself, so that all see all of it. A viewer that says no size has no
//! part in that.

use std::collections::HashMap;
use std::sync::Arc;

use homing_api::Code;
use homing_api::attach::{AttachEvent, AttachScreen};
use homing_engine::{Engine, Size};
use homing_model::TaskId;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

use super::feeder;
use super::picture::Picture;
use super::ring::Ring;
use crate::http::refusal::Refusal;

/// Viewers of one task, and of all, at most.
const MOST_OF_ONE: usize = 64;
const MOST: usize = 512;

/// What was published last.
#[derive(Default)]
struct Shown {
    /// None until the first time.
    picture: Option<Arc<Picture>>,
    ring: Ring,
    partial: bool,
    /// Grows when all viewers need a whole screen: bytes alone do not lead from before to after.
    epoch: u64,
    /// The last words.
    end: Option<AttachEvent>,
}

/// What viewers want.
#[derive(Default)]
struct Wanted {
    sizes: HashMap<u64, Option<Size>>,
    next: u64,
    redraw: bool,
}

/// One task's.
pub(super) struct Stage {
    pub(super) id: TaskId,
    shown: Mutex<Shown>,
    news: watch::Sender<u64>,
    wanted: Mutex<Wanted>,
    /// Rung when what is wanted has changed.
    pub(super) asked: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// The stages of all tasks that somebody looks at.
#[derive(Clone, Default)]
pub(crate) struct Stages(Arc<Mutex<HashMap<TaskId, Arc<Stage>>>>);

impl Stages {
    /// One more looks.
    pub(super) fn join(&self, engine: &Engine, id: &TaskId, size: Option<Size>) -> Result<Viewer, Refusal> {
        let mut stages = lock(&self.0);
        let many = |count: usize, what: &str| {
            Refusal::new(Code::TooManyViewers, format!("{count} are attached to {what} already"))
        };
        let all: usize = stages.values().map(|stage| lock(&stage.wanted).sizes.len()).sum();
        if all >= MOST {
            return Err(many(all, "tasks of this home"));
        }
        let stage = stages.entry(id.clone()).or_insert_with(|| {
            let stage = Stage::new(id.clone());
            // Ends with the last viewer, or with the task; if it fails, its viewers are told.
            drop(tokio::spawn(feeder::feed(engine.clone(), Arc::clone(&stage), self.clone())));
            stage
        });
        if lock(&stage.wanted).sizes.len() >= MOST_OF_ONE {
            return Err(many(MOST_OF_ONE, "this task"));
        }
        Ok(Viewer::of(stage, size))
    }

    /// What a task's terminal shows, as far as somebody looks at it.
    pub(super) fn picture(&self, id: &TaskId) -> Option<Arc<Picture>> {
        let stage = lock(&self.0).get(id).cloned()?;
        let shown = lock(&stage.shown);
        shown.picture.clone().filter(|_| !shown.partial)
    }

    /// Takes the stage away if nobody looks any more. Who comes later makes another.
    pub(super) fn leave_if_empty(&self, stage: &Arc<Stage>) -> bool {
        let mut stages = lock(&self.0);
        let empty = lock(&stage.wanted).sizes.is_empty();
        if empty {
            remove(&mut stages, stage);
        }
        empty
    }

    /// Takes it away, whoever looks.
    pub(super) fn leave(&self, stage: &Arc<Stage>) {
        remove(&mut lock(&self.0), stage);
    }
}

fn remove(stages: &mut HashMap<TaskId, Arc<Stage>>, stage: &Arc<Stage>) {
    if stages.get(&stage.id).is_some_and(|known| Arc::ptr_eq(known, stage)) {
        stages.remove(&stage.id);
    }
}

impl Stage {
    /// One that nobody looks at yet.
    pub(super) fn new(id: TaskId) -> Arc<Self> {
        Arc::new(Self {
            id,
            shown: Mutex::default(),
            news: watch::channel(0).0,
            wanted: Mutex::default(),
            asked: Notify::new(),
        })
    }

    /// The size that all viewers can show; none if nobody says one.
    pub(super) fn wanted_size(&self) -> Option<Size> {
        let wanted = lock(&self.wanted);
        wanted
            .sizes
            .values()
            .flatten()
            .copied()
            .reduce(|one, two| Size { cols: one.cols.min(two.cols), rows: one.rows.min(two.rows) })
    }

    /// Whether somebody asked for the program to draw anew since this was last asked.
    pub(super) fn take_redraw(&self) -> bool {
        std::mem::take(&mut lock(&self.wanted).redraw)
    }

    /// The model shows this now, of the output up to `end`; the last bytes of it are these. With `anew`, everybody gets a whole screen.
    pub(super) fn publish(&self, picture: Picture, end: u64, bytes: &[u8], anew: bool, partial: bool) {
        let mut shown = lock(&self.shown);
        if shown.ring.end() + bytes.len() as u64 == end && shown.picture.is_some() {
            shown.ring.push(bytes);
        } else {
            // Bytes are missing in between.
            shown.ring.begin(end);
        }
        if anew {
            shown.epoch += 1;
        }
        shown.picture = Some(Arc::new(picture));
        shown.partial = partial;
        drop(shown);
        self.news.send_modify(|number| *number += 1);
    }

    /// Nothing comes after this.
    pub(super) fn end(&self, event: AttachEvent) {
        lock(&self.shown).end = Some(event);
        self.news.send_modify(|number| *number += 1);
    }
}

/// What a viewer was given last.
struct Given {
    epoch: u64,
    offset: u64,
    /// The viewer's size at that time.
    size: Option<Size>,
    /// The alternate screen was given without the other one behind it.
    alternate: bool,
    /// What it shows, if it is painted.
    painted: Option<Arc<Picture>>,
}

/// What a viewer is given next.
#[derive(Debug)]
pub(super) enum Next {
    Event(AttachEvent),
    Bytes(Vec<u8>),
}

/// One who looks, until this is dropped.
pub(super) struct Viewer {
    stage: Arc<Stage>,
    number: u64,
    size: Option<Size>,
    news: watch::Receiver<u64>,
    given: Option<Given>,
}

/// A viewer's say, apart from what it is given.
#[derive(Clone)]
pub(super) struct Say {
    stage: Arc<Stage>,
    number: u64,
}

impl Say {
    /// Its terminal has this size now.
    pub(super) fn resize(&self, size: Size) {
        if let Some(known) = lock(&self.stage.wanted).sizes.get_mut(&self.number) {
            *known = Some(size);
        }
        self.stage.asked.notify_one();
    }

    /// It wants the program to draw anew.
    pub(super) fn redraw(&self) {
        lock(&self.stage.wanted).redraw = true;
        self.stage.asked.notify_one();
    }
}

impl Viewer {
    /// One more.
    fn of(stage: &Arc<Stage>, size: Option<Size>) -> Self {
        let mut wanted = lock(&stage.wanted);
        let number = wanted.next;
        wanted.next += 1;
        wanted.sizes.insert(number, size);
        drop(wanted);
        stage.asked.notify_one();
        Self { stage: Arc::clone(stage), number, size, news: stage.news.subscribe(), given: None }
    }

    /// One of a stage on which nothing happens.
    #[cfg(test)]
    pub(super) fn alone(id: TaskId, size: Size) -> Self {
        Self::of(&Stage::new(id), Some(size))
    }

    #[cfg(test)]
    pub(super) fn stage(&self) -> Arc<Stage> {
        Arc::clone(&self.stage)
    }

    /// What it may ask for while it is given something.
    pub(super) fn say(&self) -> Say {
        Say { stage: Arc::clone(&self.stage), number: self.number }
    }

    /// Its terminal has this size now.
    pub(super) fn resized(&mut self, size: Size) {
        self.size = Some(size);
    }

    /// It wants a whole screen.
    pub(super) fn refresh(&mut self) {
        self.given = None;
    }

    /// Waits until something may have changed.
    pub(super) async fn changed(&mut self) {
        if self.news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether it is painted, so that it need not be given every step.
    pub(super) fn is_painted(&self) -> bool {
        self.given.as_ref().is_some_and(|given| given.painted.is_some())
    }

    /// What has changed since it was last given something. Also whether that was the end.
    pub(super) fn next(&mut self) -> (Vec<Next>, bool) {
        self.news.mark_unchanged();
        let shown = lock(&self.stage.shown);
        let mut next = Vec::new();
        if let Some(picture) = shown.picture.clone() {
            let (epoch, end, partial) = (shown.epoch, shown.ring.end(), shown.partial);
            let bytes = match &self.given {
                Some(given)
                    if given.epoch == epoch
                        && given.size == self.size
                        && (!given.alternate || picture.alternate()) =>
                {
                    match &given.painted {
                        Some(before) => {
                            self.size.and_then(|size| picture.repainted(before, size)).map(String::into_bytes)
                        }
                        None => shown.ring.since(given.offset),
                    }
                }
                Some(_) | None => None,
            };
            drop(shown);
            let painted = self.size.filter(|size| *size != picture.size());
            let whole = bytes.is_none();
            let bytes = bytes.unwrap_or_else(|| {
                let Size { cols, rows } = picture.size();
                let screen = AttachScreen {
                    cols,
                    rows,
                    exact: painted.is_none(),
                    alternate: picture.alternate(),
                    partial,
                };
                next.push(Next::Event(AttachEvent::Screen(screen)));
                painted.map_or_else(|| picture.whole(), |size| picture.painted(size)).into_bytes()
            });
            if !bytes.is_empty() {
                next.push(Next::Bytes(bytes));
            }
            let alternate = match &self.given {
                Some(given) if !whole => given.alternate,
                Some(_) | None => painted.is_none() && picture.alternate(),
            };
            let painted = painted.map(|_| picture);
            self.given = Some(Given { epoch, offset: end, size: self.size, alternate, painted });
            let end = lock(&self.stage.shown);
            if end.ring.end() != self.given.as_ref().map_or(0, |given| given.offset) {
                // More came meanwhile; the end waits for it.
                return (next, false);
            }
            return finish(next, end.end.clone());
        }
        finish(next, shown.end.clone())
    }
}

fn finish(mut next: Vec<Next>, end: Option<AttachEvent>) -> (Vec<Next>, bool) {
    let over = end.is_some();
    next.extend(end.map(Next::Event));
    (next, over)
}

impl Drop for Viewer {
    fn drop(&mut self) {
        lock(&self.stage.wanted).sizes.remove(&self.number);
        self.stage.asked.notify_one();
    }
}
