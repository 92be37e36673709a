//! What is said between a shim and its attendant. Keeps P3.

use std::io;
use std::time::Duration;

use homing_model::Status;
use homing_shim::wire::{self, FromShim, ToShim};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use super::attendant::Attendant;
use super::link::{Link, is_hangup, send};
use crate::admission::ancestry;
use crate::control::pause::Stilled;
use crate::control::resize::Size;
use crate::control::stop;
use crate::supervisor::live::Command;

/// Resizes without an answer that are remembered before those who gave up on theirs are forgotten.
const UNANSWERED: usize = 16;

/// Before the ledger is asked again to take what it could not.
const RECORD_AGAIN: Duration = Duration::from_secs(1);

/// How a conversation ended.
pub(super) enum Parted {
    /// The shim left after its end was recorded.
    Done,
    /// The shim is gone, or never came.
    Gone,
    /// We are leaving.
    Shutdown,
}

impl Attendant {
    pub(super) async fn converse(&mut self, mut link: Link) -> Parted {
        let mut buffer = vec![0; 4096];
        let mut recorded = false;
        let shutdown = self.inner.shutdown.clone();
        let mut config = self.inner.config.subscribe();
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
            config.mark_unchanged();
            if let Err(error) = self.update_grace(&mut link.stream).await
                && !is_hangup(&error)
            {
                tracing::warn!(task = %self.record.id, %error, "the grace did not reach the shim; connecting again");
                self.drop_waiting();
                return if recorded { Parted::Done } else { Parted::Gone };
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
                // Before commands: what is asked after a change finds it at the shim.
                Ok(()) = config.changed() => {}
                command = self.attendance.commands.recv() => {
                    if let Some(message) = command.and_then(|command| self.translate(command))
                        && let Err(error) = send(&mut link.stream, &message).await
                        // A shim that is gone is noticed by the next read, after what it sent before.
                        && !is_hangup(&error)
                    {
                        tracing::warn!(task = %self.record.id, %error, "an order did not reach the shim; connecting again");
                        self.drop_waiting();
                        return if recorded { Parted::Done } else { Parted::Gone };
                    }
                }
                () = tokio::time::sleep(RECORD_AGAIN), if self.unrecorded.is_some() => self.record_stillness().await,
                () = shutdown.cancelled() => return Parted::Shutdown,
            }
        }
    }

    /// Sends the configured grace where the task has none of its own and the shim has another.
    async fn update_grace(&mut self, stream: &mut UnixStream) -> io::Result<()> {
        let grace_ms = stop::grace_ms(&self.inner, None, &self.record);
        if self.record.spec.grace_ms.is_none() && self.grace_ms != Some(grace_ms) {
            send(stream, &ToShim::Grace(grace_ms)).await?;
            self.grace_ms = Some(grace_ms);
        }
        Ok(())
    }

    /// What a command is to the shim; nothing where that is known not to understand it.
    pub(super) fn translate(&mut self, command: Command) -> Option<ToShim> {
        Some(match command {
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
            Command::Resize(size, answer) => {
                // Answers come in order, also late ones. A shim of an earlier release never answers: those who gave up are forgotten then.
                if self.resize_waiting.len() >= UNANSWERED {
                    self.resize_waiting.retain(|waiting| !waiting.is_closed());
                }
                self.resize_waiting.push_back(answer);
                ToShim::Resize(size.cols, size.rows)
            }
            Command::Still(_, answer) if self.can_pause == Some(false) => {
                let _ = answer.send(Stilled::Unable);
                return None;
            }
            Command::Still(still, answer) => {
                self.still_waiting.push_back(answer);
                if still { ToShim::Pause } else { ToShim::Resume }
            }
            Command::Watch(seen) => ToShim::Watch(seen),
        })
    }

    /// Those who waited for an answer of a shim that is gone learn that by the dropped sender.
    pub(super) fn drop_waiting(&mut self) {
        self.input_waiting.clear();
        self.signal_waiting.clear();
        self.resize_waiting.clear();
        self.still_waiting.clear();
    }

    /// Acts on a message; true once the end is recorded.
    pub(super) async fn hear(&mut self, message: FromShim, stream: &mut UnixStream) -> io::Result<bool> {
        match message {
            FromShim::Started(pid, at, shim, can_pause) => {
                self.can_pause = Some(can_pause.unwrap_or_default());
                self.inner.live.set_shim(&self.record.id, shim.and_then(ancestry::shim));
                self.started(pid, at);
                self.watch(pid, at);
                self.listen();
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
                self.inner.live.set_shim(&self.record.id, standing.shim.and_then(ancestry::shim));
                self.can_pause = Some(standing.stillness.is_some());
                self.values = None;
                // Before anybody watches it: one that stands still is silent for that reason.
                if let Some(stillness) = standing.stillness {
                    self.inner.live.set_stillness(&self.record.id, stillness);
                }
                if let (Some(pid), Some(at)) = (standing.pid, standing.started_at) {
                    self.started(pid, at);
                    if standing.ended.is_none() {
                        self.watch(pid, at);
                        self.listen();
                    }
                }
                // What it was asked before, it was asked by another connection.
                self.inner.live.ask_anew(&self.record.id);
                if let Some(bytes) = standing.ended {
                    self.record_exit(&bytes, stream).await?;
                    self.settle();
                    return Ok(true);
                }
                if let Some(stillness) = standing.stillness {
                    self.heard_stillness(stillness).await;
                }
                // The stop may have been recorded since this attendant read the record.
                let known = self.inner.live.record(&self.record.id);
                let known = known.as_ref().unwrap_or(&self.record);
                if known.status == Status::Stopping && standing.stopping != Some(true) {
                    // The stop was recorded and never sent. (A shim of the first release does not say; a second one does not slow the first.)
                    let asked = known.stop.clone().unwrap_or_default();
                    let grace_ms = Some(stop::grace_ms(&self.inner, asked.grace_ms, known));
                    let stop = wire::Stop { grace_ms, signal: asked.signal, by: Some(asked.by) };
                    send(stream, &ToShim::Stop(stop)).await?;
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
            FromShim::Resized(_, cols, rows) => {
                if let Some(waiting) = self.resize_waiting.pop_front() {
                    let _ = waiting.send((cols > 0 && rows > 0).then_some(Size { cols, rows }));
                }
                Ok(false)
            }
            FromShim::Paused(stillness) => {
                self.heard_stillness(stillness).await;
                Ok(false)
            }
            FromShim::PauseAnswered(answer) => {
                if let Some(waiting) = self.still_waiting.pop_front() {
                    let _ = waiting.send(Stilled::Said(answer));
                }
                Ok(false)
            }
            // Another shim has the attempt, or had it: the facts in the folder say which.
            FromShim::Refused(_) => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}
