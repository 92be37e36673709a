//! Somebody says how an external task ended. The first word counts (P1).

use homing_api::{CompleteAnswer, CompleteRequest};
use homing_model::answer::{self, LONGEST};
use homing_model::units::millis;
use homing_model::{Ending, Outcome, Verdict};
use homing_store::outbox::Report;
use homing_store::store::Applied;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::entropy;
use crate::error::Error;
use crate::query::view;

impl Engine {
    /// Ends an external task of this owner with an answer. One that has ended is not changed, and the answer says so. To be run to its end:
    /// whoever waits is told after the commit.
    ///
    /// # Errors
    /// If this owner has no such task, or homing runs it itself, or the ledger cannot be written.
    pub async fn complete(
        &self,
        reference: &str,
        owner: &str,
        request: CompleteRequest,
    ) -> Result<CompleteAnswer, Error> {
        let inner = &self.inner;
        if request.answer.as_ref().is_some_and(|text| text.len() > LONGEST) {
            return Err(Error::BadParameter(format!(
                "`answer` is longer than {LONGEST} bytes: put it into a file and answer with its name"
            )));
        }
        let record = self.own_external(reference, owner).await?;
        let id = record.id.clone();
        let (verdict, reason) = if request.failed {
            (Verdict::Failed, Some(answer::reason(request.answer.as_deref())))
        } else {
            (Verdict::Succeeded, None)
        };
        let ending = Ending {
            verdict,
            outcome: Outcome { reason, ..Outcome::default() },
            started_at: None,
            ended_at: inner.now(),
            duration_ms: inner.roll.age(&id, Instant::now()).map(millis),
            pid: None,
            output_bytes: 0,
            output_dropped: 0,
        };
        let at_most = Some(inner.config().notify.on);
        let report =
            Report { entropy: entropy::draw(), at_most, answer: request.answer, ..Report::default() };
        match inner.store.finish(record.attempt(), ending, report).await? {
            Applied::Done(record) => {
                inner.roll.leave(&id);
                inner.announce(&record);
                Ok(CompleteAnswer { completed: true, task: view::task(inner, record) })
            }
            Applied::Rejected(record) => {
                Ok(CompleteAnswer { completed: false, task: view::task(inner, record) })
            }
            Applied::Unknown => Err(Error::Unknown(reference.to_owned())),
        }
    }
}
