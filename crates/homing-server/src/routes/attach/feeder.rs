//! Reads what a task prints and feeds the model with it, while somebody looks.
//!
//! What can crash where: nothing here is kept, so nothing is lost. A daemon that dies takes the viewers' connections with it; they come back to the
//! next one, which reads the same files.

use std::sync::Arc;
use std::time::Duration;

use homing_api::attach::AttachEvent;
use homing_api::{Code, Problem};
use homing_engine::{Engine, Error, OutputPart, OutputQuery, Size};
use homing_engine::{FIRST_SIZE, SizeMark};
use homing_model::TaskId;
use tokio::time::{Instant, sleep};

use super::model::Model;
use super::picture::Picture;
use super::stage::{Stage, Stages};

/// As much of the output is replayed for the first viewer: what came before has long scrolled away, or was drawn over.
const REPLAYED: u64 = 8 << 20;
/// A model that is further behind than this skips to what is this new, which is no more than it takes in a row: a program that prints faster
/// than a terminal can show.
const BEHIND: u64 = 8 << 20;
const RECENT: u64 = 1 << 20;
/// Read at once.
const PIECE: usize = 64 * 1024;
/// Pieces in a row before a look at how far behind the model is.
const IN_A_ROW: u32 = 16;
/// Fed where it is; what is larger, where nobody waits for it.
const AT_ONCE: usize = 1024;
/// What takes longer than this to feed is followed by as long a rest, so that a task that prints without end leaves time for others.
const NOTICEABLE: Duration = Duration::from_millis(2);
/// How long the size is another when a program is to draw anew: long enough that it notices.
const MOMENT: Duration = Duration::from_millis(60);
/// How long a read waits before it looks around.
const WAIT: Duration = Duration::from_secs(60);

/// What is fed, and how far.
struct Feeder {
    engine: Engine,
    stage: Arc<Stage>,
    model: Model,
    offset: u64,
    /// The number of the last size that the model was given.
    sized: u32,
    in_a_row: u32,
    /// Not all that was printed went into the model.
    partial: bool,
    /// Since then the program was not asked to draw anew.
    owes: bool,
    /// The size that the terminal could not be given.
    refused: Option<Size>,
}

/// Feeds a stage until nobody looks any more, or the task has ended.
pub(super) async fn feed(engine: Engine, stage: Arc<Stage>, stages: Stages) {
    let _last_words = LastWords { stage: Arc::clone(&stage), stages: stages.clone() };
    let mut feeder = Feeder::new(engine, stage);
    let last = match feeder.replay().await {
        Ok(over) => feeder.follow(&stages, over).await,
        Err(error) => Err(error),
    };
    let event = match last {
        Ok(false) => return,
        Ok(true) => match feeder.engine.task(&feeder.stage.id).await {
            Ok(task) => AttachEvent::Ended(Box::new(task)),
            Err(error) => AttachEvent::Problem(Box::new(error.into())),
        },
        Err(error) => AttachEvent::Problem(Box::new(Problem::from(error))),
    };
    stages.leave(&feeder.stage);
    feeder.stage.end(event);
}

/// What a task's terminal shows now, for whoever does not want to go on looking.
pub(super) async fn glance(engine: Engine, id: TaskId) -> Result<Picture, Error> {
    let mut feeder = Feeder::new(engine, Stage::new(id));
    feeder.replay().await?;
    Ok(feeder.model.picture())
}

/// Where a feeder panics its viewers are told, and whoever comes next gets another: a stage without one would stand still for ever.
struct LastWords {
    stage: Arc<Stage>,
    stages: Stages,
}

impl Drop for LastWords {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stages.leave(&self.stage);
            let problem = Problem::new(Code::Internal, "the model of the terminal failed");
            self.stage.end(AttachEvent::Problem(Box::new(problem)));
        }
    }
}

impl Feeder {
    fn new(engine: Engine, stage: Arc<Stage>) -> Self {
        let (cols, rows) = FIRST_SIZE;
        Self {
            engine,
            stage,
            model: Model::new(Size { cols, rows }),
            offset: 0,
            sized: 0,
            in_a_row: 0,
            partial: false,
            owes: false,
            refused: None,
        }
    }

    async fn read(&self, query: OutputQuery) -> Result<OutputPart, Error> {
        self.engine.read_output(&self.stage.id, query).await
    }

    async fn read_on(&self, wait: Option<Duration>) -> Result<OutputPart, Error> {
        self.read(OutputQuery { offset: Some(self.offset), limit: PIECE, wait, ..OutputQuery::default() })
            .await
    }

    /// How far the output goes now.
    async fn present(&self) -> Result<u64, Error> {
        let last = OutputQuery { tail: Some(1), limit: 1, ..OutputQuery::default() };
        Ok(self.read(last).await?.next)
    }

    /// Brings the model to the present: as it was when this began, since a program may print faster than that, and for ever. True if the task has
    /// ended.
    async fn replay(&mut self) -> Result<bool, Error> {
        let mut until = self.present().await?;
        let tail = OutputQuery { tail: Some(REPLAYED), limit: PIECE, ..OutputQuery::default() };
        let mut part = self.read(tail).await?;
        // The size that held where the replay begins.
        if part.offset > 0 {
            self.miss();
        }
        self.offset = part.offset;
        let sizes = self.engine.sizes(&self.stage.id).await?;
        if let Some(before) = sizes.iter().rev().find(|mark| mark.offset <= self.offset) {
            self.apply(*before);
        }
        loop {
            let complete = part.complete;
            let fed = self.take(part).await?.len();
            if fed == 0 || complete || self.offset >= until {
                self.publish(&[], true);
                return Ok(complete);
            }
            if self.keep_up(fed).await? {
                until = self.offset + RECENT;
            }
            part = self.read_on(None).await?;
        }
    }

    /// Feeds and publishes what comes. True if the task has ended, false if nobody looks any more.
    async fn follow(&mut self, stages: &Stages, over: bool) -> Result<bool, Error> {
        if over {
            return Ok(true);
        }
        loop {
            if stages.leave_if_empty(&self.stage) {
                return Ok(false);
            }
            self.adjust().await?;
            let asked = Arc::clone(&self.stage);
            let part = tokio::select! {
                biased;
                () = asked.asked.notified() => continue,
                part = self.read_on(Some(WAIT)) => part?,
            };
            let (complete, size) = (part.complete, self.model.size());
            let bytes = self.take(part).await?;
            self.publish(&bytes, self.model.size() != size);
            if complete {
                return Ok(true);
            }
            self.keep_up(bytes.len()).await?;
        }
    }

    /// Feeds a part of the output, each stretch of it at its size. Gives back what was fed.
    async fn take(&mut self, part: OutputPart) -> Result<Vec<u8>, Error> {
        if part.offset != self.offset {
            self.miss();
            self.offset = part.offset;
        }
        let bytes = part.bytes;
        let end = self.offset + bytes.len() as u64;
        // Read after the bytes: what is known of sizes now concerns all of these.
        let sizes = self.engine.sizes(&self.stage.id).await?;
        let mut rest = bytes.as_slice();
        for mark in sizes.into_iter().filter(|mark| mark.offset <= end) {
            if mark.number <= self.sized {
                continue;
            }
            let until = usize::try_from(mark.offset.saturating_sub(self.offset)).unwrap_or(usize::MAX);
            let (before, after) = rest.split_at(until.min(rest.len()));
            self.feed(before).await?;
            rest = after;
            self.apply(mark);
        }
        self.feed(rest).await?;
        if std::mem::take(&mut self.model.failed) {
            self.miss();
        }
        // Where the disk kept nothing the files end before the output does.
        self.offset = part.next.max(end);
        Ok(bytes)
    }

    /// Something that was printed is not in the model.
    fn miss(&mut self) {
        self.partial = true;
        self.owes = true;
    }

    fn apply(&mut self, mark: SizeMark) {
        self.sized = mark.number;
        self.model.resize(Size { cols: mark.cols, rows: mark.rows });
    }

    async fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.offset += bytes.len() as u64;
        if bytes.len() <= AT_ONCE {
            self.model.feed(bytes);
            return Ok(());
        }
        let begun = Instant::now();
        let placeholder = Model::new(Size { cols: 1, rows: 1 });
        let (mut model, piece) = (std::mem::replace(&mut self.model, placeholder), bytes.to_vec());
        let feeding = tokio::task::spawn_blocking(move || {
            model.feed(&piece);
            model
        });
        self.model = feeding.await.map_err(|_| Error::Closed)?;
        let took = begun.elapsed();
        if took > NOTICEABLE {
            sleep(took).await;
        }
        Ok(())
    }

    fn publish(&self, bytes: &[u8], anew: bool) {
        self.stage.publish(self.model.picture(), self.offset, bytes, anew, self.partial);
    }

    /// Skips what nobody could have seen anyway. True if there was such.
    async fn keep_up(&mut self, fed: usize) -> Result<bool, Error> {
        self.in_a_row = if fed >= PIECE { self.in_a_row + 1 } else { 0 };
        if self.in_a_row < IN_A_ROW {
            return Ok(false);
        }
        self.in_a_row = 0;
        let present = self.present().await?;
        let behind = present.saturating_sub(self.offset) > BEHIND;
        if behind {
            self.offset = present.saturating_sub(RECENT);
            self.miss();
        }
        Ok(behind)
    }

    /// Gives the terminal the size that its viewers want, and has the program draw anew where the model cannot know all of the screen.
    async fn adjust(&mut self) -> Result<(), Error> {
        let now = self.model.size();
        let wanted = self.stage.wanted_size().unwrap_or(now);
        let redraw = self.stage.take_redraw() || (self.owes && self.in_a_row == 0);
        if wanted != now && self.refused != Some(wanted) {
            self.owes = false;
            // That makes it draw anew by itself.
            return self.resize(wanted).await;
        }
        if redraw && self.refused.is_none() {
            self.owes = false;
            let rows = if now.rows > 1 { now.rows - 1 } else { 2 };
            self.resize(Size { rows, ..now }).await?;
            sleep(MOMENT).await;
            self.resize(now).await?;
        }
        Ok(())
    }

    async fn resize(&mut self, size: Size) -> Result<(), Error> {
        let given = match self.engine.resize(&self.stage.id, size).await {
            // It ends just now: the output will say so.
            Err(Error::Ended(_)) => Some(size),
            result => result?,
        };
        self.refused = given.is_none().then_some(size);
        let before = self.model.size();
        let part = self.read_on(None).await?;
        let bytes = self.take(part).await?;
        // What was printed at the old size comes first, and the file of sizes says up to where; unless the disk did not take the note.
        let noted = self.engine.sizes(&self.stage.id).await?;
        if let Some(given) = given
            && noted.last().is_none_or(|mark| (mark.cols, mark.rows) != (given.cols, given.rows))
        {
            self.model.resize(given);
        }
        self.publish(&bytes, self.model.size() != before);
        Ok(())
    }
}
