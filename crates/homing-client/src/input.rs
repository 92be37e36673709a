//! What a task reads.

use bytes::Bytes;
use homing_model::api::InputAnswer;

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::query::Target;

impl Client {
    /// Writes bytes to a task's input, and closes it if `eof`. Never repeated once it may have been heard.
    ///
    /// # Errors
    /// If the task takes no input or does not read it, or nobody answered.
    pub async fn input(&self, reference: &str, bytes: Bytes, eof: bool) -> Result<InputAnswer, Error> {
        let target = Target::task(reference, "/input").maybe("eof", eof.then_some(true));
        self.send(&Call::post(target).bytes(bytes)).await?.json()
    }
}
