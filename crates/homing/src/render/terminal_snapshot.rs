//! The screen of a task's terminal, for somebody who was away from it: whole, and then what is printed on.
//!
//! It is what a viewer without a size gets (docs/attach.md). When the daemon goes, it is asked of the next one, and begins with a whole screen again.

use std::time::Duration;

use bytes::Bytes;
use homing_api::attach::AttachEvent;
use homing_client::{Client, Error, Keys, Screen, Seen};
use homing_model::{Task, TaskId};
use tokio::time::sleep;

/// Tries to connect again, with longer pauses, about ten seconds in all.
const TRIES: u32 = 24;

/// What is seen.
#[derive(Debug)]
pub(crate) enum Glimpse {
    /// For this terminal, as it is.
    Bytes(Bytes),
    /// A screen follows in whose place something else stands.
    Room,
    /// The task ended.
    Ended(Box<Task>),
}

/// One who looks.
pub(crate) struct Glance<'a> {
    client: &'a Client,
    task: &'a TaskId,
    /// The keys are not used, but the connection ends with them.
    open: Option<(Screen, Keys)>,
    tries: u32,
    begun: bool,
}

impl<'a> Glance<'a> {
    pub(crate) fn at(client: &'a Client, task: &'a TaskId) -> Self {
        Self { client, task, open: None, tries: 0, begun: false }
    }

    /// What comes next. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Glimpse, Error> {
        loop {
            let Some((screen, _)) = &mut self.open else {
                self.connect().await?;
                continue;
            };
            match screen.next().await {
                Ok(Some(Seen::Bytes(bytes))) => return Ok(Glimpse::Bytes(bytes)),
                Ok(Some(Seen::Event(AttachEvent::Screen(shown)))) => {
                    // The alternate screen takes nothing away.
                    if !std::mem::replace(&mut self.begun, true) && !shown.alternate {
                        return Ok(Glimpse::Room);
                    }
                }
                Ok(Some(Seen::Event(AttachEvent::Input(_)))) => {}
                Ok(Some(Seen::Event(AttachEvent::Ended(task)))) => return Ok(Glimpse::Ended(task)),
                Ok(Some(Seen::Event(AttachEvent::Problem(problem)))) => return Err((*problem).into()),
                Ok(None) | Err(_) => self.open = None,
            }
        }
    }

    async fn connect(&mut self) -> Result<(), Error> {
        if self.tries > 0 {
            sleep(Duration::from_millis(10) * 2_u32.pow(self.tries.min(6))).await;
        }
        match self.client.attach(self.task.as_str(), None).await {
            Ok(open) => (self.open, self.tries) = (Some(open), 0),
            Err(error) if error.is_disconnect() && self.tries < TRIES => self.tries += 1,
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
