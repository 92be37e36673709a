//! A task says how far it is.

use homing_api::ProgressRequest;
use homing_model::{Progress, Task};
use homing_store::store::Applied;

use crate::engine::Engine;
use crate::error::Error;
use crate::query::view;

/// A few words.
const LONGEST: usize = 500;

impl Engine {
    /// Keeps what a live task of this owner says of its progress, and tells of it in the log.
    ///
    /// # Errors
    /// If it makes no sense, or the task has ended, or the owner has none by that id, start or name.
    pub async fn progress(
        &self,
        reference: &str,
        owner: &str,
        request: ProgressRequest,
    ) -> Result<Task, Error> {
        if request.percent.is_some_and(|percent| !(0.0..=100.0).contains(&percent)) {
            return Err(Error::BadParameter("`percent` must be between 0 and 100".into()));
        }
        if request
            .text
            .as_ref()
            .is_some_and(|text| text.len() > LONGEST || text.chars().any(char::is_control))
        {
            return Err(Error::BadParameter(
                "`text` is longer than 500 bytes or contains control characters".into(),
            ));
        }
        if request.percent.is_none() && request.text.is_none() {
            return Err(Error::BadParameter("`percent` or `text` must be given".into()));
        }
        let id = self.inner.own(reference, owner).await?.id;
        let progress = Progress { percent: request.percent, text: request.text, at: self.inner.now() };
        match self.inner.store.progress(id.clone(), progress).await? {
            Applied::Done(record) => {
                self.inner.live.update(&record);
                self.inner.roll.heard(&record);
                self.inner.bump();
                Ok(view::task(&self.inner, record))
            }
            Applied::Rejected(_) => Err(Error::Ended(id)),
            Applied::Unknown => Err(Error::Unknown(id.to_string())),
        }
    }
}
