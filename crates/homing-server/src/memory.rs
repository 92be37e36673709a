//! Memory after large requests and answers: the C library keeps what was freed, so that a daemon would stay as large as it once was.
//!
//! Each large body rings; the service gives the memory back once no other has rung for a while. On cancel (the server's end) nothing is left
//! to be done; it has no errors.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use homing_engine::{Reporter, run_blocking};
use homing_sys::memory;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Bodies below this are served from memory that is always there.
const LARGE: u64 = 256 << 10;
/// Until what was read or written has been freed, and others have been served.
const CALM: Duration = Duration::from_millis(500);

/// A body, and what is called with the length of each part of it that is sent.
pub(crate) struct Observed<F> {
    pub(crate) body: Body,
    pub(crate) sent: F,
}

impl<F: FnMut(u64) + Unpin> hyper::body::Body for Observed<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            (self.sent)(data.len() as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Rings for large bodies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bodies(Arc<Notify>);

impl Bodies {
    /// A body of so many bytes was read or is answered.
    pub(crate) fn passed(&self, bytes: u64) {
        if bytes >= LARGE {
            self.0.notify_one();
        }
    }

    /// An answer: rings now if its length is known, else for each large part of it that is sent.
    pub(crate) fn watch(&self, response: Response) -> Response {
        if let Some(bytes) = response.body().size_hint().exact() {
            self.passed(bytes);
            return response;
        }
        let bodies = self.clone();
        let mut unrung = 0;
        let sent = move |bytes| {
            unrung += bytes;
            if unrung >= LARGE {
                bodies.passed(std::mem::take(&mut unrung));
            }
        };
        response.map(|body| Body::new(Observed { body, sent }))
    }

    /// The service.
    pub(crate) async fn release(self, shutdown: CancellationToken, report: Reporter) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.0.notified() => {}
            }
            while timeout(CALM, self.0.notified()).await.is_ok() {}
            report.run();
            // A panic there is none; without a thread it is done here.
            let _ = run_blocking(memory::release).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_streamed_answer_rings_once_it_was_large() {
        let piece = Bytes::from(vec![0; 64 << 10]);
        for (pieces, rings) in [(3, false), (5, true)] {
            let bodies = Bodies::default();
            let all = std::iter::repeat_n(piece.clone(), pieces).map(Ok::<_, std::io::Error>);
            let streamed = Response::new(Body::from_stream(futures_util::stream::iter(all)));
            let sent = bodies.watch(streamed).into_body().collect().await.unwrap().to_bytes();
            assert_eq!(sent.len(), pieces * piece.len());
            let rung = timeout(Duration::ZERO, bodies.0.notified()).await.is_ok();
            assert_eq!(rung, rings, "{pieces}");
        }
    }
}
