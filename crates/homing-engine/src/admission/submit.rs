//! The submit of a task: who submits, what they may do, and what became of it.

use std::sync::Arc;

use homing_model::{Kind, Session, Spec, Task, Timestamp};
use homing_store::store::{Answered, Idempotency, Submit, Submitted};
use homing_store::{NewTask, Record};

use crate::admission::accept::{TaskOrigin, accept};
use crate::admission::caller_scope::{self, CallerScope};
use crate::admission::commit::{CommitError, commit};
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::external;
use crate::query::view;

/// An idempotency key stands for its body this long.
const IDEMPOTENCY_MS: i64 = 24 * 3_600 * 1_000;

/// Who submits.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whom the task belongs to, where the spec does not say.
    pub owner: Option<String>,
    /// What the tasks that the calling process runs in let it do.
    pub scope: CallerScope,
    /// Whether it is known to be on this machine, as this user: then webhooks of its tasks may go to this machine's own ports.
    pub local: bool,
}

/// Whoever has the engine itself: this process.
impl Default for Caller {
    fn default() -> Self {
        Self { owner: None, scope: CallerScope::default(), local: true }
    }
}

/// The `Idempotency-Key` of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// As it was sent.
    pub key: String,
    /// A hash of the body.
    pub body_hash: String,
}

/// An accepted task.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The task.
    pub task: Task,
    /// It was there before, with the same key. A request that is sent again is answered as it was the first time.
    pub joined: bool,
}

impl Engine {
    /// Accepts a task. When this returns, the task is durable and on its way. Whoever drops the future does not take the request back.
    ///
    /// # Errors
    /// If it makes no sense or cannot be recorded; nothing was started then.
    pub async fn submit(
        &self,
        spec: Spec,
        caller: Caller,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Submission, Error> {
        self.submit_made(Ok(spec), caller, idempotency).await
    }

    /// The same for a spec that had to be made first; the owner is that of the caller where there is none.
    pub(crate) async fn submit_made(
        &self,
        spec: Result<Spec, (Option<String>, Error)>,
        caller: Caller,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Submission, Error> {
        let inner = Arc::clone(&self.inner);
        // To its end, also where the caller goes away in the middle: a committed task has to reach the scheduler.
        let accepting =
            tokio::spawn(async move { Box::pin(submit(&inner, spec, caller, idempotency)).await });
        let (record, joined) = accepting.await.map_err(|_| Error::Closed)??;
        Ok(Submission { task: view::task(&self.inner, record), joined })
    }
}

/// Admits a request. What it was answered with stands, whatever has changed since: a program that is gone, a file that
/// cannot be read, a full disk. So a refusal is the answer only where the ledger has no other.
async fn submit(
    inner: &Arc<Inner>,
    spec: Result<Spec, (Option<String>, Error)>,
    caller: Caller,
    idempotency: Option<IdempotencyKey>,
) -> Result<(Record, bool), Error> {
    let now = inner.now();
    let idempotency = idempotency.map(|given| Idempotency {
        key: given.key,
        body_hash: given.body_hash,
        expires_at: now.plus_millis(IDEMPOTENCY_MS),
    });
    let (named, session) = match &spec {
        Ok(spec) => (&spec.owner, spec.session.as_ref().map(Session::owner)),
        Err((owner, _)) => (owner, None),
    };
    let asked = named.as_deref().or(caller.owner.as_deref());
    let mut scope = caller.scope;
    if let Some(owner) = named {
        scope = caller_scope::claim_session(inner, scope, owner, None).await?;
    }
    // Before the ledger is asked for an earlier answer: those of another owner are not the caller's to see.
    let owner = scope.owner(asked, session.as_deref())?;
    let by = TaskOrigin { owner, scope, network: !caller.local };
    let refusal = match spec {
        Ok(spec) => match Box::pin(admit(inner, &by, spec, idempotency.clone(), now)).await {
            Err(refusal) => refusal,
            admitted => return admitted,
        },
        Err((_, refusal)) => refusal,
    };
    let Some(request) = idempotency else { return Err(refusal) };
    match inner.store.answered(by.owner.clone(), request, now).await {
        Ok(Some(answered)) => repeated(inner, &by, answered).await,
        Ok(None) | Err(_) => Err(refusal),
    }
}

/// Accepts the task, commits it, and says what became of it; true if it was there before.
async fn admit(
    inner: &Arc<Inner>,
    by: &TaskOrigin,
    spec: Spec,
    idempotency: Option<Idempotency>,
    now: Timestamp,
) -> Result<(Record, bool), Error> {
    let mut task = accept(inner, by, spec).await?;
    let children = inner.config().nested.children;
    loop {
        let idempotency = idempotency.clone();
        let write = |task: NewTask| {
            let (on_duplicate, policy) = (task.spec.on_duplicate, inner.scheduler.policy());
            inner.store.submit(Submit { task, on_duplicate, children, idempotency, policy }, now)
        };
        let submitted = commit(inner, &mut task, write, Submitted::created).await;
        match submitted.map_err(|failure| degrade(inner, failure))? {
            Submitted::Created(record) => return created(inner, record).await,
            Submitted::IdTaken => {}
            Submitted::Joined(record) => {
                by.may_see(inner, &record).await?;
                inner.meters.joined();
                return Ok((record, true));
            }
            Submitted::Repeated(answered) => return repeated(inner, by, answered).await,
            Submitted::TooManyChildren => return Err(by.scope.too_many(children)),
            Submitted::IdempotencyMismatch => return Err(Error::IdempotencyMismatch),
            Submitted::Duplicate(id) => return Err(Error::Duplicate(id)),
            Submitted::SessionGone(task) => {
                let why = "it is forgotten, and its session with it".to_owned();
                return Err(Error::NotContinued { task, why });
            }
            Submitted::SessionBusy(id) => return Err(Error::Live(id)),
            Submitted::NothingToTrack => return Err(external::absent(task.row.spec.pid)),
        }
    }
}

async fn created(inner: &Arc<Inner>, record: Record) -> Result<(Record, bool), Error> {
    inner.set_degraded(None);
    inner.meters.submitted(record.kind);
    tracing::debug!(task = %record.id, kind = record.kind.as_str(), "accepted");
    inner.bump();
    let record = if record.kind == Kind::External { external::settled(inner, record).await? } else { record };
    Ok((record, false))
}

/// The request was sent before: it gets the answer of then. Its sender may never have had that, and has all that
/// comes after it still to do.
async fn repeated(inner: &Inner, by: &TaskOrigin, answered: Answered) -> Result<(Record, bool), Error> {
    by.may_see(inner, &answered.record).await?;
    Ok((answered.record, answered.joined))
}

/// New tasks are refused while the ledger cannot be written, or the disk is full.
fn degrade(inner: &Inner, failure: CommitError) -> Error {
    let ledger = matches!(failure, CommitError::Ledger(_));
    let error = Error::from(failure);
    if ledger || matches!(error, Error::Full) {
        inner.set_degraded(Some(error.to_string()));
    }
    error
}
