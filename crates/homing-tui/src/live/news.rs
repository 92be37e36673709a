//! What workers tell the loop.

use homing_model::TaskDetail;
use tokio::sync::mpsc;

use crate::message::Message;

/// One thing.
#[derive(Debug)]
pub(super) enum News {
    /// To be shown as soon as it may be.
    Now(Message),
    /// To be shown with the next thing, or soon.
    Soon(Message),
    /// These tasks changed, or something that belongs to them.
    Changed(Vec<String>),
    /// More about a task.
    Detail(Box<TaskDetail>),
}

/// The way to the loop. Full means that the loop has enough to do: a worker waits.
#[derive(Debug, Clone)]
pub(super) struct Out(mpsc::Sender<News>);

/// The loop is gone: a worker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Over;

impl Out {
    pub(super) fn channel() -> (Self, mpsc::Receiver<News>) {
        let (sender, receiver) = mpsc::channel(256);
        (Self(sender), receiver)
    }

    pub(super) async fn send(&self, news: News) -> Result<(), Over> {
        self.0.send(news).await.map_err(|_| Over)
    }

    pub(super) async fn now(&self, message: Message) -> Result<(), Over> {
        self.send(News::Now(message)).await
    }

    /// Words for whoever looks.
    pub(super) async fn say(&self, text: String) -> Result<(), Over> {
        self.now(Message::Say(text)).await
    }
}
