//! What a request says beyond what was listened to. It is heard to its end, within bounds, before the answer is given: who is answered and
//! cut off while it still speaks finds a broken pipe, or a reset, where the answer was.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::EXPECT;
use parking_lot::Mutex;
use tokio::time::timeout;

/// How much is heard in vain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    bytes: usize,
    time: Duration,
}

impl Patience {
    /// With whoever was let in, or is on the socket: several times the largest body there is.
    pub(crate) const FRIEND: Self = Self { bytes: 64 << 20, time: Duration::from_secs(10) };

    /// With anybody else.
    pub(crate) const STRANGER: Self = Self { bytes: 64 << 10, time: Duration::from_secs(5) };
}

/// What was left of a request's body, once it was let go.
#[derive(Debug)]
pub(crate) struct Unread<B>(Arc<Mutex<Option<B>>>);

impl<B: Body<Data = Bytes> + Unpin> Unread<B> {
    /// A body to be read, and what is left of it after that.
    pub(crate) fn of(body: B, headers: &HeaderMap) -> (Listened<B>, Self) {
        let left = Arc::new(Mutex::new(None));
        let listened =
            Listened { body: Some(body), held_back: headers.contains_key(EXPECT), left: Arc::clone(&left) };
        (listened, Self(left))
    }

    /// Hears it to its end, or to the end of our patience.
    pub(crate) async fn hear(self, patience: Patience) {
        let left = self.0.lock().take();
        // One that says of itself that it is longer is not even begun.
        let bearable = |body: &B| body.size_hint().lower() <= patience.bytes as u64;
        let Some(mut body) = left.filter(bearable) else { return };
        let to_its_end = async {
            let mut heard: usize = 0;
            while let Some(Ok(frame)) = body.frame().await {
                heard = heard.saturating_add(frame.data_ref().map_or(0, Bytes::len));
                if heard > patience.bytes {
                    return;
                }
            }
        };
        let _ = timeout(patience.time, to_its_end).await;
    }
}

/// A body that gives back what nobody read of it.
#[derive(Debug)]
pub(crate) struct Listened<B: Body> {
    body: Option<B>,
    /// Its sender waits to be asked for it, which the first look does: what nobody asked for does not come.
    held_back: bool,
    left: Arc<Mutex<Option<B>>>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Listened<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.held_back = false;
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl<B: Body> Drop for Listened<B> {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !self.held_back && !body.is_end_stream()) {
            *self.left.lock() = Some(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A body of so many pieces of a kibibyte, and how many were taken.
    #[derive(Debug)]
    struct Pieces(usize, Arc<AtomicUsize>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Ready((self.0 > 0).then(|| {
                self.0 -= 1;
                self.1.fetch_add(1, Ordering::Relaxed);
                Ok(Frame::data(Bytes::from_static(&[b'x'; 1024])))
            }))
        }

        fn is_end_stream(&self) -> bool {
            self.0 == 0
        }
    }

    /// How many pieces are taken of a body of so many, where a handler takes the first ones and lets go.
    async fn taken(pieces: usize, read: usize, headers: &HeaderMap) -> usize {
        let count = Arc::new(AtomicUsize::new(0));
        let (mut listened, unread) = Unread::of(Pieces(pieces, Arc::clone(&count)), headers);
        for _ in 0..read {
            listened.frame().await.unwrap().unwrap();
        }
        drop(listened);
        unread.hear(Patience { bytes: 10 * 1024, time: Duration::from_secs(60) }).await;
        count.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn what_nobody_read_is_heard_within_bounds() {
        let plain = HeaderMap::new();
        for (pieces, read, expected) in
            [(0, 0, 0), (5, 0, 5), (5, 2, 5), (5, 5, 5), (1000, 0, 11), (1000, 7, 18)]
        {
            assert_eq!(taken(pieces, read, &plain).await, expected, "{read} of {pieces}");
        }
    }

    #[tokio::test]
    async fn what_waits_to_be_asked_for_is_not_asked_for_in_vain() {
        let waits = HeaderMap::from_iter([(EXPECT, "100-continue".parse().unwrap())]);
        assert_eq!(taken(5, 0, &waits).await, 0);
        assert_eq!(taken(5, 1, &waits).await, 5, "it was asked for, and comes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let (listened, unread) = Unread::of(Never, &HeaderMap::new());
        drop(listened);
        unread.hear(Patience::FRIEND).await;
    }

    #[derive(Debug)]
    struct Never;

    impl Body for Never {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Pending
        }
    }
}
