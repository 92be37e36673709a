//! Where notices can go, as far as this engine is concerned: what delivers them says so when it is plugged in.

use homing_model::{Notify, Target};

/// Judges targets when a task is submitted. The route is fixed then: what is refused is refused before anything runs.
pub trait Routes: Send + Sync + 'static {
    /// Whether notices of a task can go there, and why not. Whoever submits it is `local`, on this machine as this user, or is not.
    ///
    /// # Errors
    /// A sentence that says what to do instead.
    fn check(&self, target: &Target, notify: &Notify, local: bool) -> Result<(), String>;
}

/// Nothing delivers: an engine of its own, whose inbox is all there is.
#[derive(Debug, Clone, Copy, Default)]
pub struct InboxOnly;

impl Routes for InboxOnly {
    fn check(&self, target: &Target, _: &Notify, _: bool) -> Result<(), String> {
        match target {
            Target::Inbox => Ok(()),
            Target::Webhook(_) | Target::Exec(_) | Target::Wake(_) | Target::Desktop => {
                Err(format!("nothing here delivers to `{}`: use `inbox`", target.shown()))
            }
        }
    }
}
