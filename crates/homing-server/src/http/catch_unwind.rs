//! A panic in a handler is an answer, not the end of anything.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// What a panic said.
#[derive(Debug)]
pub(crate) struct Panicked(pub(crate) String);

/// Runs a future; a panic in it comes back as an error. Whatever it held is dropped with it, so nothing half done is seen.
pub(crate) async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(payload) => Poll::Ready(Err(Panicked(message(payload.as_ref())))),
    })
    .await
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_also_after_a_wait() {
        assert_eq!(caught(async { 7 }).await.unwrap(), 7);
        let late = caught(async {
            tokio::task::yield_now().await;
            panic!("number {}", 9)
        });
        let result: Result<(), Panicked> = late.await;
        assert_eq!(result.unwrap_err().0, "number 9");
    }
}
