//! The output of a task that is stayed with, and where another command continues when this one leaves.

use homing_client::{Chunk, Client, Error, Follow, Mode, Span};
use homing_model::{Task, TaskId};

use crate::render::line_stamps;
use crate::render::terminal_snapshot::{Glance, Glimpse};
use crate::terminal::nonblocking_stdio;

/// What is shown of the task.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// Only its end.
    End,
    /// Its output, with the stream and time of each stretch if `spans`.
    Output { spans: bool },
}

/// What is new of the task.
pub(super) enum News {
    Output(Chunk, Vec<Span>),
    Glimpsed(Glimpse),
    /// No glimpses any more.
    Blind,
    /// All output was fetched.
    Complete,
    /// Nothing can be written to stdout any more.
    Closed,
    Ended(Option<Box<Task>>),
}

/// The source of what is shown.
pub(super) struct TaskOutput<'a> {
    client: &'a Client,
    task: &'a TaskId,
    follow: Follow,
    /// Fetched, while its spans are not known yet.
    chunk: Option<Chunk>,
    /// Shows the screen instead, after this process was away from it.
    glance: Option<Glance<'a>>,
    /// The offset of what is being printed.
    from: u64,
    /// For output that is printed unchanged: its offset behind a gap, and how much of stdout was written before it.
    passed: Option<(u64, u64)>,
}

impl<'a> TaskOutput<'a> {
    pub(super) fn new(client: &'a Client, task: &'a TaskId) -> Self {
        let follow = client.follow(task, 0, None);
        Self { client, task, follow, chunk: None, glance: None, from: 0, passed: None }
    }

    /// Waits for what is new. Cancelling it loses nothing.
    pub(super) async fn next(&mut self, wanted: Wanted) -> Result<News, Error> {
        let Wanted::Output { spans } = wanted else {
            let answer = self.client.wait(std::slice::from_ref(self.task), Mode::All, None).await?;
            let ended = answer.items.into_iter().find(|task| task.status.is_terminal());
            return Ok(News::Ended(ended.map(Box::new)));
        };
        nonblocking_stdio::settled().await;
        if nonblocking_stdio::broken().is_some() {
            return Ok(News::Closed);
        }
        if let Some(glance) = &mut self.glance {
            return Ok(glance.next().await.map_or(News::Blind, News::Glimpsed));
        }
        if self.chunk.is_none() {
            (self.from, self.passed) = (self.follow.offset(), None);
            self.chunk = self.follow.next().await?;
        }
        let Some(chunk) = &self.chunk else { return Ok(News::Complete) };
        // Bytes whose stream is not known are shown as stdout.
        let found = match spans {
            true => line_stamps::spans(self.client, self.task, chunk).await.unwrap_or_default(),
            false => Vec::new(),
        };
        Ok(self.chunk.take().map_or(News::Complete, |chunk| News::Output(chunk, found)))
    }

    /// The offset at which a later reader continues.
    pub(super) fn offset(&self) -> u64 {
        if self.chunk.is_none() && nonblocking_stdio::is_settled() {
            return self.follow.offset();
        }
        match (self.passed, nonblocking_stdio::taken_of_stdout()) {
            (Some((begin, before)), Some(taken)) if taken > before => begin + (taken - before),
            _ => self.from,
        }
    }

    /// Output was printed unchanged, after so many bytes of stdout; none if it was changed or that is not known.
    pub(super) fn printed(&mut self, chunk: &Chunk, before: Option<u64>) {
        self.passed = before.map(|before| (chunk.offset, before));
    }

    /// Shows the screen of the task from now on.
    pub(super) fn glance(&mut self) {
        self.glance = Some(Glance::at(self.client, self.task));
    }

    /// Shows the output again.
    pub(super) fn unglance(&mut self) {
        self.glance = None;
    }
}
