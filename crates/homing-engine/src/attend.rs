//! One attendant per live task: it owns the connection to the shim, records what the shim says, and passes on what users ask.
//!
//! On cancel (shutdown) it drops the connection; the shim goes on alone and a later engine adopts it. On error it falls back to the
//! facts in the attempt's folder ([`judge`](crate::judge)); what those cannot tell is left to the next reconcile pass.
//! Keeps P1, P2, P3 and P10.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use homing_model::{Ending, Status, Timestamp, Verdict};
use homing_shim::folder;
use homing_shim::record::{self, ExitRecord};
use homing_shim::wire::{self, Frames, FromShim, ToShim};
use homing_store::store::Applied;
use homing_store::{Record, Started, store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use crate::ending::{ending, never_started};
use crate::engine::Inner;
use crate::entropy;
use crate::judge::{self, Judged};
use crate::launch::{self, Surroundings, Values};
use crate::live::{Attendance, Command};
use crate::report;

/// Pauses between launches that came to nothing; after the last the task could not be started.
const RELAUNCH: [Duration; 5] = [
    Duration::from_millis(5),
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_millis(1000),
    Duration::from_millis(2000),
];
/// Between two tries to record an end that the ledger would not take: longer each time, up to the second.
const RECORD_RETRY: Duration = Duration::from_millis(500);
const RECORD_RETRY_MOST: Duration = Duration::from_secs(10);

/// How an attendance begins.
pub(crate) enum Begin {
    /// A new attempt, with the values that its launch needs.
    Launch(OwnedFd, Values),
    /// Whatever an earlier engine left.
    Adopt,
}

/// A connection to a shim.
pub(crate) struct Link {
    pub(crate) stream: UnixStream,
    pub(crate) frames: Frames,
}

/// How a conversation ended.
enum Parted {
    /// The shim left after its end was recorded.
    Done,
    /// The shim is gone, or never came.
    Gone,
    /// We are leaving.
    Shutdown,
}

struct Attendant {
    inner: Arc<Inner>,
    record: Record,
    attendance: Attendance,
    /// Kept while the attempt may have to be launched again.
    values: Option<Values>,
    nonce: u64,
    launches: usize,
    /// Why the last launch that the keeper could not carry out failed.
    launch_failure: Option<io::Error>,
    input_waiting: HashMap<u64, oneshot::Sender<(u64, bool)>>,
    signal_waiting: VecDeque<oneshot::Sender<bool>>,
    /// Told once the task's state is known for certain.
    settled: Option<oneshot::Sender<()>>,
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
        input_waiting: HashMap::new(),
        signal_waiting: VecDeque::new(),
        settled,
    };
    let link = match begin {
        Begin::Launch(folder, values) => {
            attendant.values = Some(values);
            attendant.launch(folder).await
        }
        Begin::Adopt => None,
    };
    attendant.run(link).await;
    attendant.settle();
    inner.live.leave(&id);
}

impl Attendant {
    fn settle(&mut self) {
        if let Some(settled) = self.settled.take() {
            let _ = settled.send(());
        }
    }

    async fn run(&mut self, mut link: Option<Link>) {
        loop {
            if let Some(link) = link.take() {
                match self.converse(link).await {
                    Parted::Done | Parted::Shutdown => return,
                    Parted::Gone => self.drop_waiting(),
                }
            }
            match self.judge().await {
                Judged::Alive(found) => link = Some(found),
                Judged::Ended(ending) => {
                    // No shim lives, so nobody else will: no value outlives the task.
                    self.forget_environment();
                    self.finish(*ending).await;
                    break;
                }
                Judged::NotStarted(folder) => {
                    link = self.launch_again(folder).await;
                    // What is launched now is ours; how long its command takes to begin is not.
                    self.settle();
                    if link.is_none() {
                        break;
                    }
                }
                Judged::Unclear(why) => {
                    tracing::warn!(task = %self.record.id, %why, "the state of a task cannot be told; the next pass looks again");
                    crate::reconcile::note_error(&self.inner, &self.record.id, "unclear", &why);
                    break;
                }
            }
        }
    }

    async fn judge(&self) -> Judged {
        judge::judge(&self.inner, &self.record).await
    }

    // ---- launching ----------------------------------------------------------------------------------------------------------

    /// Hands the attempt to the keeper. The shim's side of the socket exists before the shim does, so the launch can be sent at once.
    async fn launch(&mut self, folder: OwnedFd) -> Option<Link> {
        let values = self.values.as_ref()?;
        let (ours, theirs) = match std::os::unix::net::UnixStream::pair() {
            Ok(pair) => pair,
            Err(error) => {
                tracing::warn!(task = %self.record.id, %error, "no socket for a shim");
                return None;
            }
        };
        self.launches += 1;
        self.nonce = entropy::draw();
        let config = self.inner.config();
        let output = self.inner.home.output(&self.record.attempt());
        let around = Surroundings {
            config: &config,
            home: self.inner.home.path(),
            output: &output,
            fallback_cwd: &self.inner.fallback_cwd,
            cgroups: self.inner.cgroups.as_deref(),
            revive: self.inner.revive,
        };
        let message = launch::message(&self.record, self.nonce, values, &around);
        self.inner.keeper.launch(self.nonce, theirs.into(), folder).await;
        ours.set_nonblocking(true).ok()?;
        let stream = UnixStream::from_std(ours).ok()?;
        let mut link = Link { stream, frames: Frames::default() };
        // A shim that is not there is noticed by the conversation, which reads the end of the file.
        let _ = link.stream.write_all(&wire::frame(&ToShim::Launch(Box::new(message)))).await;
        Some(link)
    }

    /// The attempt was never started: launch it again, unless it may not or cannot be; then it is declared ended, marker first.
    async fn launch_again(&mut self, folder: OwnedFd) -> Option<Link> {
        let refusal = self.reason_not_to_launch(&folder).await;
        let Some((verdict, reason)) = refusal else {
            return self.launch(folder).await;
        };
        // P10: whoever makes the marker decides. If a shim was faster, the facts are looked at anew.
        match folder::mark(&folder) {
            Ok(Some(marker)) => {
                let ending = Ending::never_started(verdict, reason, self.inner.now());
                // Beside the ledger, for the next daemon: should this one die now, the marker alone would speak of a killed supervisor.
                let record = never_started(&self.record, &ending).encode();
                if let Err(error) = record::place(folder.as_fd(), &marker, &record) {
                    tracing::warn!(task = %self.record.id, %error, "the end of an unstarted task is only in the ledger");
                }
                self.finish(ending).await;
                None
            }
            Ok(None) => match self.judge().await {
                Judged::Alive(link) => Some(link),
                Judged::Ended(ending) => {
                    self.finish(*ending).await;
                    None
                }
                Judged::NotStarted(_) | Judged::Unclear(_) => None,
            },
            Err(error) => {
                crate::reconcile::note_error(&self.inner, &self.record.id, "marker", &error.to_string());
                None
            }
        }
    }

    async fn reason_not_to_launch(&mut self, folder: &OwnedFd) -> Option<(Verdict, String)> {
        if let Ok(Some(record)) = self.inner.store.get(self.record.id.clone()).await {
            self.record = record;
        }
        if self.record.status == Status::Stopping {
            return Some((Verdict::Stopped, "stopped before it was started".into()));
        }
        self.note_launch_failure();
        if self.launches > RELAUNCH.len() {
            let why = self.launch_failure.as_ref().map(|error| format!("no process could be made: {error}"));
            return Some((
                Verdict::StartFailed,
                why.unwrap_or_else(|| "no supervisor could be started".into()),
            ));
        }
        if self.values.is_none() {
            match launch::recover_values(&self.record, folder) {
                Ok(values) => self.values = Some(values),
                Err(reason) => return Some((Verdict::StartFailed, reason)),
            }
        }
        if let Some(pause) = self.launches.checked_sub(1).and_then(|at| RELAUNCH.get(at)) {
            tokio::time::sleep(*pause).await;
            self.note_launch_failure();
        }
        None
    }

    /// The keeper's word on a launch that failed comes on another line than the end of the shim's, and may come after it: what it said
    /// of an earlier try is as good.
    fn note_launch_failure(&mut self) {
        if let Some(error) = self.inner.keeper.take_failure(self.nonce) {
            self.launch_failure = Some(error);
        }
    }

    // ---- conversation -------------------------------------------------------------------------------------------------------

    async fn converse(&mut self, mut link: Link) -> Parted {
        let mut buffer = vec![0; 4096];
        let mut recorded = false;
        let mut shutdown = self.inner.shutdown.clone();
        loop {
            loop {
                match link.frames.pop::<FromShim>() {
                    Ok(Some(message)) => match self.hear(message, &mut link.stream).await {
                        Ok(ended) => recorded |= ended,
                        Err(_) => return if recorded { Parted::Done } else { Parted::Gone },
                    },
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(task = %self.record.id, %error, "a shim cannot be understood");
                        return Parted::Gone;
                    }
                }
            }
            tokio::select! {
                biased;
                read = link.stream.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => {
                        self.drop_waiting();
                        return if recorded { Parted::Done } else { Parted::Gone };
                    }
                    Ok(count) => link.frames.push(buffer.get(..count).unwrap_or_default()),
                },
                command = self.attendance.commands.recv() => {
                    if let Some(command) = command {
                        let message = self.translate(command);
                        // A shim that is gone is noticed by the next read.
                        let _ = link.stream.write_all(&wire::frame(&message)).await;
                    }
                }
                () = shutdown.over() => return Parted::Shutdown,
            }
        }
    }

    fn translate(&mut self, command: Command) -> ToShim {
        match command {
            Command::Stop(stop) => ToShim::Stop(stop),
            Command::Signal(number, answer) => {
                self.signal_waiting.push_back(answer);
                ToShim::Signal(number)
            }
            Command::Input { seq, data, eof, taken } => {
                self.input_waiting.insert(seq, taken);
                ToShim::Input(wire::Input { seq, data: data.into(), eof })
            }
            Command::CancelInput(seq) => ToShim::CancelInput(seq),
            Command::Watch(seen) => ToShim::Watch(seen),
        }
    }

    /// Those who waited for an answer of a shim that is gone learn that by the dropped sender.
    fn drop_waiting(&mut self) {
        self.input_waiting.clear();
        self.signal_waiting.clear();
    }

    /// Acts on a message; true once the end is recorded.
    async fn hear(&mut self, message: FromShim, stream: &mut UnixStream) -> io::Result<bool> {
        match message {
            FromShim::Started(pid, at, shim) => {
                self.inner.live.set_shim(&self.record.id, shim);
                self.started(pid, at);
                // An attempt that the last daemon accepted and this one began: it may run for days.
                self.settle();
                Ok(false)
            }
            FromShim::Exited(bytes) => {
                self.record_exit(&bytes, stream).await?;
                self.settle();
                Ok(true)
            }
            FromShim::Standing(standing) => {
                self.inner.live.set_shim(&self.record.id, standing.shim);
                self.values = None;
                if let (Some(pid), Some(at)) = (standing.pid, standing.started_at) {
                    self.started(pid, at);
                }
                if let Some(bytes) = standing.ended {
                    self.record_exit(&bytes, stream).await?;
                    self.settle();
                    return Ok(true);
                }
                if self.record.status == Status::Stopping {
                    // The stop was recorded, and perhaps never sent: a second one never slows the first.
                    let stop = wire::Stop {
                        grace_ms: None,
                        signal: None,
                        by: self.record.stop_requested_by.clone(),
                    };
                    stream.write_all(&wire::frame(&ToShim::Stop(stop))).await?;
                }
                self.settle();
                Ok(false)
            }
            FromShim::Output(total, _) => {
                self.inner.live.grown(&self.record.id, total);
                Ok(false)
            }
            FromShim::InputTaken(seq, written, closed) => {
                if let Some(waiting) = self.input_waiting.remove(&seq) {
                    let _ = waiting.send((written, closed));
                }
                Ok(false)
            }
            FromShim::Signalled(sent) => {
                if let Some(waiting) = self.signal_waiting.pop_front() {
                    let _ = waiting.send(sent);
                }
                Ok(false)
            }
            // Another shim has the attempt, or had it: the facts in the folder say which.
            FromShim::Refused(_) => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }

    /// Records the start without waiting for it: the ledger takes operations in order, so the end comes after it and may share its commit.
    fn started(&mut self, pid: u32, at: i64) {
        self.values = None;
        let started = Started { pid, at: Timestamp::from_millis(at) };
        let recording = self.inner.store.started(self.record.attempt(), started);
        let inner = Arc::clone(&self.inner);
        let id = self.record.id.clone();
        tokio::spawn(async move {
            match recording.await {
                Ok(Applied::Done(record)) => {
                    inner.live.update(&record);
                    inner.bump();
                }
                // Known already, or over already: adopted twice, or stopped meanwhile.
                Ok(Applied::Rejected(_) | Applied::Unknown) => {}
                Err(error) => {
                    tracing::warn!(task = %id, %error, "a start could not be recorded; the end will say when it was");
                }
            }
        });
    }

    /// Records what a shim says of the end, and only then tells it so: it may leave after that.
    async fn record_exit(&mut self, bytes: &[u8], stream: &mut UnixStream) -> io::Result<()> {
        self.values = None;
        let ending = match ExitRecord::decode(bytes) {
            Ok(record) => ending(record),
            Err(error) => {
                tracing::error!(task = %self.record.id, %error, "a shim sent an exit record that cannot be read");
                Ending::lost("its exit record cannot be read", Vec::new(), self.inner.now())
            }
        };
        if !self.finish(ending).await {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        stream.write_all(&wire::frame(&ToShim::Recorded)).await
    }

    /// Records the end, however long that takes: the shim waits, so nothing is lost while the ledger cannot be written. False if the
    /// engine ends first.
    async fn finish(&mut self, ending: Ending) -> bool {
        let mut shutdown = self.inner.shutdown.clone();
        let mut pause = RECORD_RETRY;
        let mut troubled = false;
        let report = report::report(&self.inner, &self.record, &ending);
        loop {
            match self.inner.store.finish(self.record.attempt(), ending.clone(), report.clone()).await {
                Ok(Applied::Done(record)) => {
                    // Only what this end has said: new tasks may be refused for a disk on which there is room for ends.
                    if troubled {
                        self.inner.set_degraded(None);
                    }
                    self.inner.announce(&record);
                    self.record = record;
                    return true;
                }
                // The first finisher won, or a later attempt did.
                Ok(Applied::Rejected(record)) => {
                    if record.status.is_terminal() {
                        self.inner.ends.announce(&record);
                    }
                    self.record = record;
                    return true;
                }
                Ok(Applied::Unknown) => return true,
                Err(store::Error::Closed) => return false,
                // Its own trouble, not the ledger's: the next pass looks again.
                Err(error @ store::Error::BadRow { .. }) => {
                    crate::reconcile::note_error(&self.inner, &self.record.id, "row", &error.to_string());
                    return false;
                }
                Err(error) => {
                    tracing::error!(task = %self.record.id, %error, "an end could not be recorded; trying again");
                    self.inner.set_degraded(Some(error.to_string()));
                    troubled = true;
                    // Others are served meanwhile: whoever waits for the start must not wait for the disk.
                    self.settle();
                    tokio::select! {
                        () = shutdown.over() => return false,
                        () = tokio::time::sleep(pause) => {}
                    }
                    pause = (pause * 2).min(RECORD_RETRY_MOST);
                }
            }
        }
    }

    /// An attempt that nobody runs may have left its environment behind.
    fn forget_environment(&self) {
        if let Ok(attempt) = folder::open(&self.inner.home.attempt(&self.record.attempt()))
            && let Err(error) = folder::forget_environment(attempt)
        {
            tracing::warn!(task = %self.record.id, %error, "its environment could not be removed");
        }
    }
}
