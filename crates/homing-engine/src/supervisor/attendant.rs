//! The attendant: from a launch or an adoption to the end, in whatever turns.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use homing_shim::wire::Stillness;
use homing_store::Record;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::conversation::Parted;
use super::link::Link;
use super::recording::forget_inputs;
use crate::agent;
use crate::control::pause::Stilled;
use crate::control::resize::Size;
use crate::engine::Inner;
use crate::supervisor::launch::Values;
use crate::supervisor::live::Attendance;
use crate::supervisor::recover::{self, AttemptState};
use crate::watch;

/// Between two looks at an attempt that cannot be launched now: longer each time, up to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How an attendance begins.
pub(crate) enum Begin {
    /// A new attempt, with the values that its launch needs.
    Launch(OwnedFd, Values),
    /// An attempt that was claimed: it may have been launched before, by this engine or an earlier one.
    Recover,
}

/// One of them at work.
pub(super) struct Attendant {
    pub(super) inner: Arc<Inner>,
    pub(super) record: Record,
    pub(super) attendance: Attendance,
    /// Kept while the attempt may have to be launched again.
    pub(super) values: Option<Values>,
    pub(super) nonce: u64,
    pub(super) launches: usize,
    /// Why the last launch that failed did, where that is known.
    pub(super) launch_failure: Option<String>,
    /// Before the next look at an attempt that cannot be launched now.
    pause: Duration,
    pub(super) input_waiting: HashMap<u64, oneshot::Sender<(u64, bool)>>,
    pub(super) signal_waiting: VecDeque<oneshot::Sender<bool>>,
    pub(super) resize_waiting: VecDeque<oneshot::Sender<Option<Size>>>,
    pub(super) still_waiting: VecDeque<oneshot::Sender<Stilled>>,
    /// Whether the shim knows how to let its tree stand still; it says so with its first word.
    pub(super) can_pause: Option<bool>,
    /// The grace that the shim has; none where an earlier engine launched it.
    pub(super) grace_ms: Option<u64>,
    /// What the shim said of that and the ledger could not take.
    pub(super) unrecorded: Option<Stillness>,
    /// The start, on its way into the ledger.
    pub(super) starting: Option<JoinHandle<()>>,
    /// Watches the output, from the start of the command on.
    pub(super) watcher: Option<watch::Handle>,
    /// What was held back when the watch was brought to its end: that is done once.
    pub(super) concluded: Option<Option<u64>>,
    /// Listens to an agent, from the start of the command on.
    pub(super) listener: Option<agent::Handle>,
    /// What the agent said, once it has ended.
    pub(super) said: Option<agent::Said>,
    /// Told once the task's state is known for certain.
    pub(super) settled: Option<oneshot::Sender<()>>,
}

/// Attends one task to its end. `settled` is told as soon as the task's state is known for certain.
pub(crate) async fn attend(
    inner: Arc<Inner>,
    record: Record,
    attendance: Attendance,
    begin: Begin,
    settled: Option<oneshot::Sender<()>>,
) {
    let id = record.id.clone();
    let mut attendant = Attendant {
        inner: Arc::clone(&inner),
        record,
        attendance,
        values: None,
        nonce: 0,
        launches: 0,
        launch_failure: None,
        pause: FIRST_PAUSE,
        input_waiting: HashMap::new(),
        resize_waiting: VecDeque::new(),
        signal_waiting: VecDeque::new(),
        still_waiting: VecDeque::new(),
        can_pause: None,
        grace_ms: None,
        unrecorded: None,
        starting: None,
        watcher: None,
        concluded: None,
        listener: None,
        said: None,
        settled,
    };
    let link = match begin {
        Begin::Launch(folder, values) => {
            attendant.values = Some(values);
            attendant.launch(folder).await
        }
        Begin::Recover => None,
    };
    attendant.run(link).await;
    attendant.settle();
    inner.live.leave(&id);
    drop(inner.scheduler.take_secrets(&id));
}

impl Attendant {
    pub(super) fn settle(&mut self) {
        if let Some(settled) = self.settled.take() {
            let _ = settled.send(());
        }
    }

    pub(super) async fn run(&mut self, mut link: Option<Link>) {
        loop {
            if let Some(link) = link.take() {
                match self.converse(link).await {
                    Parted::Done | Parted::Shutdown => return,
                    Parted::Gone => self.drop_waiting(),
                }
            }
            match self.recover().await {
                AttemptState::Alive(found) => link = Some(found),
                AttemptState::Ended(ending) => {
                    // No shim lives, so nobody else will: no value outlives the task.
                    forget_inputs(&self.inner, &self.record);
                    self.finish(*ending).await;
                    break;
                }
                AttemptState::NotStarted(folder) => {
                    link = self.launch_again(folder).await;
                    // What is launched now is ours; how long its command takes to begin is not.
                    self.settle();
                    if link.is_none() && !self.hold_on().await {
                        break;
                    }
                }
                AttemptState::Unknown(why) => {
                    tracing::warn!(task = %self.record.id, %why, "the state of a task cannot be told; the next pass looks again");
                    crate::recovery::reconcile::note_error(&self.inner, &self.record.id, "unclear", &why);
                    self.settle();
                    if !self.hold_on().await {
                        break;
                    }
                }
            }
        }
    }

    /// An attempt that cannot be launched for a shortage of this process's (descriptors, mostly) is not given up while its values are here:
    /// secrets may be nowhere else. False if there is nothing to hold on to, or the engine ends.
    async fn hold_on(&mut self) -> bool {
        if self.values.is_none() {
            return false;
        }
        let shutdown = self.inner.shutdown.clone();
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        tokio::select! {
            () = shutdown.cancelled() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }

    pub(super) async fn recover(&self) -> AttemptState {
        recover::recover(&self.inner, &self.record).await
    }
}
