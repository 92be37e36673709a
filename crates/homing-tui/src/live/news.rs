//! What workers tell the loop.

use std::future::Future;

use homing_api::TaskDetail;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

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
    /// This worker panicked: what it told of would stand still from now on.
    Broken(&'static str),
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

/// Starts a worker that tells by `out`. One that panics says so: without it the panel would go on, and show what is no longer so.
pub(super) fn spawn(
    what: &'static str,
    out: &Out,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    let alarm = Alarm { what, out: out.clone() };
    tokio::spawn(async move {
        let _alarm = alarm;
        work.await;
    })
}

/// Rings where it is dropped by a panic. One that ends, or is aborted, is dropped in peace.
struct Alarm {
    what: &'static str,
    out: Out,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (out, what) = (self.out.clone(), self.what);
            // Beside: the way may be full just now.
            drop(tokio::spawn(async move { out.send(News::Broken(what)).await }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_that_panics_says_so_and_one_that_ends_or_is_aborted_does_not() {
        let (out, mut news) = Out::channel();
        spawn("a worker that ends", &out, async {}).await.unwrap();
        let endless = spawn("a worker that is aborted", &out, std::future::pending());
        endless.abort();
        let _ = endless.await;
        let _ = spawn("a worker that panics", &out, async { panic!("of a test") }).await;
        assert!(matches!(news.recv().await, Some(News::Broken("a worker that panics"))));
        drop(out);
        assert!(news.recv().await.is_none(), "nothing else was said");
    }
}
