//! Answers without a known end: pulled, never pushed.
//!
//! A source is asked for its next piece only when the client has taken the last one, so a slow client holds one piece and no
//! more, and a client that went away is noticed by the connection, which drops the source.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures_core::Stream;
use tokio_util::sync::CancellationToken;

/// Where pieces come from.
pub(crate) trait Source: Send + Sized + 'static {
    /// The next piece and the source after it; none at the end. An error cuts the answer off, so that nobody takes it for whole.
    fn next(self) -> impl Future<Output = Option<(io::Result<Bytes>, Self)>> + Send;
}

type Next<S> = Pin<Box<dyn Future<Output = Option<(io::Result<Bytes>, S)>> + Send>>;

struct Pull<S> {
    next: Option<Next<S>>,
    shutdown: CancellationToken,
}

/// Futures do nothing until they are polled: this one is polled when the client wants more.
fn next<S: Source>(source: S, shutdown: CancellationToken) -> Next<S> {
    Box::pin(async move {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => None,
            piece = source.next() => piece,
        }
    })
}

impl<S: Source> Stream for Pull<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(waiting) = &mut self.next else { return Poll::Ready(None) };
        let Poll::Ready(piece) = waiting.as_mut().poll(context) else { return Poll::Pending };
        let (bytes, rest) = piece.unzip();
        self.next = rest.map(|source| next(source, self.shutdown.clone()));
        Poll::Ready(bytes)
    }
}

/// A body of what `source` gives, until its end or the server's.
pub(crate) fn body<S: Source>(source: S, shutdown: CancellationToken) -> Body {
    Body::from_stream(Pull { next: Some(next(source, shutdown.clone())), shutdown })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use http_body_util::BodyExt;

    use super::*;

    struct Count(u32, Arc<AtomicU32>);

    impl Source for Count {
        async fn next(self) -> Option<(io::Result<Bytes>, Self)> {
            self.1.fetch_add(1, Ordering::Relaxed);
            (self.0 < 3).then(|| (Ok(self.0.to_string().into()), Self(self.0 + 1, self.1)))
        }
    }

    #[tokio::test]
    async fn nothing_is_read_before_it_is_wanted() {
        let shutdown = CancellationToken::new();
        let asked = Arc::new(AtomicU32::new(0));
        let mut body = body(Count(0, Arc::clone(&asked)), shutdown);
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        body.frame().await.unwrap().unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "12");
    }

    #[tokio::test]
    async fn a_stream_ends_when_the_server_leaves() {
        struct Never;
        impl Source for Never {
            async fn next(self) -> Option<(io::Result<Bytes>, Self)> {
                std::future::pending().await
            }
        }
        let shutdown = CancellationToken::new();
        let body = body(Never, shutdown.clone());
        shutdown.cancel();
        assert!(body.collect().await.unwrap().to_bytes().is_empty());
    }
}
