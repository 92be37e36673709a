//! One listener: sleeps until the agent has printed something, takes it in, shows what came of it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use homing_agents::parse::{Listening, Said};
use homing_model::TaskId;
use homing_model::agent::Driver;
use homing_store::Record;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::reading;
use crate::engine::Inner;
use crate::query::output_notifier::News;

/// Between two looks at an output that grows: nobody needs to see faster what an agent is at.
const BREATH: Duration = Duration::from_millis(200);
/// Between two pieces of what is there already.
const BETWEEN: Duration = Duration::from_millis(1);

/// The attendant's end of a listener. Dropping it ends the listener.
#[derive(Debug)]
pub(crate) struct Handle {
    end: oneshot::Sender<u64>,
    done: JoinHandle<Option<Said>>,
    task: TaskId,
}

impl Handle {
    /// Takes in the rest of an output that is this long, and answers what it came to. None if the engine ends first.
    pub(crate) async fn conclude(self, output_bytes: u64) -> Option<Said> {
        let _ = self.end.send(output_bytes);
        match self.done.await {
            Ok(said) => said,
            Err(error) => {
                tracing::error!(task = %self.task, %error, "listening to an agent broke off; its task ends all the same");
                Some(Said::default())
            }
        }
    }
}

/// One of them at work.
struct Listener {
    inner: Arc<Inner>,
    record: Record,
    listening: Box<Listening>,
    /// Output up to here was taken in.
    seen: u64,
}

/// Begins to listen to a task, from the beginning of its output. On cancel (its handle is gone, the engine ends) it ends between two pieces; the
/// next one begins anew. On error (an output that cannot be read) it says so in the log and waits for more.
pub(crate) fn begin(inner: &Arc<Inner>, record: &Record) -> Handle {
    let driver = record.agent.as_ref().map_or(&Driver::Stdout, |agent| &agent.driver);
    let listening = Box::new(Listening::new(driver));
    let listener = Listener { inner: Arc::clone(inner), record: record.clone(), listening, seen: 0 };
    let (end, ending) = oneshot::channel();
    Handle { end, done: tokio::spawn(listener.run(ending)), task: record.id.clone() }
}

impl Listener {
    async fn run(mut self, mut ending: oneshot::Receiver<u64>) -> Option<Said> {
        let mut news = News::new(&self.inner, &self.record.id);
        let shutdown = self.inner.shutdown.clone();
        let mut readable = true;
        let mut breath = Duration::ZERO;
        loop {
            let looked;
            (self, looked) = self.look(u64::MAX).await?;
            if let Err(error) = &looked
                && readable
            {
                tracing::warn!(task = %self.record.id, %error, "what an agent says cannot be read now");
            }
            readable = looked.is_ok();
            let more = looked.unwrap_or(false);
            self.show();
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return None,
                until = &mut ending => return self.conclude(until.ok()?).await,
                () = tokio::time::sleep(BETWEEN), if more => {}
                () = news.beyond(&self.inner, self.seen, breath), if !more => breath = BREATH,
            }
        }
    }

    /// Takes in a few pieces; true if there is more. None if nothing can be run any more, for the engine ends.
    async fn look(mut self, until: u64) -> Option<(Self, io::Result<bool>)> {
        let inner = Arc::clone(&self.inner);
        let turn = inner.scans.acquire().await.ok()?;
        let looked = tokio::task::spawn_blocking(move || {
            let read = self
                .folder()
                .and_then(|folder| reading::read(&folder, self.seen, until, &mut self.listening));
            let more = read.map(|(seen, more)| {
                self.seen = seen;
                more
            });
            (self, more)
        });
        let looked = looked.await;
        drop(turn);
        match looked {
            Ok(looked) => Some(looked),
            // Our own mistake is this listener's end, and not a reason to wait for ever.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => None,
        }
    }

    fn folder(&self) -> io::Result<OwnedFd> {
        self.inner.home.open_attempt(&self.record.attempt())
    }

    fn show(&self) {
        let mut heard = self.listening.said().heard.clone();
        if let Some(doing) = &mut heard.doing {
            self.record.masks.cover(doing);
        }
        self.inner.live.set_heard(&self.record.id, heard, self.inner.now());
    }

    /// Takes in the rest of an output that is this long. What cannot be read was not said.
    async fn conclude(mut self, until: u64) -> Option<Said> {
        loop {
            let looked;
            (self, looked) = self.look(until).await?;
            match looked {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(task = %self.record.id, %error, "the rest of what an agent said could not be read");
                    break;
                }
            }
        }
        Some(self.listening.finish())
    }
}
