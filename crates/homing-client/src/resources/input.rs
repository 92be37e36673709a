//! What a task reads.

use std::hash::{BuildHasher, Hasher, RandomState};

use bytes::Bytes;
use homing_api::InputAnswer;

use crate::transport::call::Call;
use crate::transport::client::Client;
use crate::transport::error::Error;
use crate::transport::query::Target;

/// A number that no other piece of input has: what a hash table is seeded with, another one each time.
#[must_use]
pub fn piece_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Client {
    /// Writes bytes to a task's input, and closes it if `eof`. Through restarts of the daemon, and once: what the task took before is not sent again.
    ///
    /// # Errors
    /// If the task takes no input or does not read it, or nobody answered.
    pub async fn input(&self, reference: &str, bytes: Bytes, eof: bool) -> Result<InputAnswer, Error> {
        self.input_piece(reference, bytes, eof, piece_number()).await
    }

    /// The same with a number for this piece ([`piece_number`]). Where nobody knows what became of it, all of it may be sent again with that number, until all of it was
    /// taken: what the task took before does not come twice, and is counted in the answer.
    ///
    /// # Errors
    /// As [`input`](Self::input).
    pub async fn input_piece(
        &self,
        reference: &str,
        bytes: Bytes,
        eof: bool,
        number: u64,
    ) -> Result<InputAnswer, Error> {
        self.piece(Target::task(reference, "/input").maybe("eof", eof.then_some(true)), bytes, number).await
    }

    /// The same with keys, in the form that a terminal usually sends: a program that asked for another one gets that.
    ///
    /// # Errors
    /// As [`input`](Self::input).
    pub async fn press(&self, reference: &str, keys: Bytes, eof: bool) -> Result<InputAnswer, Error> {
        let target = Target::task(reference, "/input").maybe("eof", eof.then_some(true)).with("keys", "true");
        self.piece(target, keys, piece_number()).await
    }

    async fn piece(&self, target: Target, bytes: Bytes, number: u64) -> Result<InputAnswer, Error> {
        let plain = target.clone();
        let call = Call::post(target.with("piece", number.to_string())).bytes(bytes.clone());
        match self.persist(&call).await {
            // A daemon of before, which is never asked twice.
            Err(error) if error.is_about("piece") => self.send(&Call::post(plain).bytes(bytes)).await?.json(),
            answered => answered?.json(),
        }
    }
}
