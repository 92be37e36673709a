//! Accepting an external task: checked, recorded durably as running, put on the roll, answered.
//!
//! Before the commit there is nothing; after it the task exists, and whoever opens the home next puts it on the roll.

use std::sync::Arc;

use homing_model::{Kind, Masks, Spec, TaskId, Timestamp};
use homing_store::store::{Idempotency, Submit, Submitted};
use homing_store::{NewTask, Record, Tracking};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::foreign::{self, Absent, Foreign};
use crate::admission::submit::Nest;
use crate::engine::Inner;
use crate::entropy;
use crate::error::Error;

/// The lease where neither one nor a process is named: so long that nobody who lives misses it, and no task is left for ever.
const LEASE_MS: u64 = 24 * 3_600 * 1_000;

/// What was asked for.
pub(crate) struct Asked<'a> {
    pub(crate) spec: Spec,
    pub(crate) owner: String,
    pub(crate) nest: &'a Nest,
    pub(crate) network: bool,
    pub(crate) idempotency: Option<Idempotency>,
    pub(crate) now: Timestamp,
}

/// Accepts one; answers with the task, and whether it was there before.
pub(crate) async fn track(inner: &Arc<Inner>, asked: Asked<'_>) -> Result<(Record, bool), Error> {
    let Asked { spec, owner, nest, network, idempotency, now } = asked;
    let (foreign, absent) = match spec.pid.map(foreign::open) {
        Some(Ok(foreign)) => (Some(foreign), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, None),
    };
    let tracking = match (&foreign, absent) {
        (Some(foreign), _) => Some(Tracking::Process { pid: foreign.pid, start: foreign.start }),
        // The same request again, after its process has ended: the ledger says whether it is that.
        (None, Some(_)) => None,
        (None, None) => Some(Tracking::Lease { ms: spec.lease_ms.unwrap_or(LEASE_MS) }),
    };
    let command = match &foreign {
        Some(foreign) => format!("process {} ({})", foreign.pid, foreign.name),
        None => "external task".to_owned(),
    };
    let id = loop {
        let id = TaskId::from_entropy(entropy::draw());
        let task = NewTask {
            kind: Kind::External,
            tracking,
            agent: None,
            id: id.clone(),
            spec: spec.clone(),
            owner: owner.clone(),
            command: command.clone(),
            env_names: Vec::new(),
            volatile_secrets: Vec::new(),
            masks: Masks::default(),
            parent: nest.parent(),
            depth: nest.depth,
            network,
            node: inner.node.clone(),
            boot_id: inner.boot_id.clone(),
        };
        let submit = Submit {
            task,
            on_duplicate: spec.on_duplicate,
            children: nest.children,
            idempotency: idempotency.clone(),
            policy: homing_model::queue::StartPolicy::default(),
        };
        inner.live.expect(&id);
        let submitted = inner.store.submit(submit, now).await;
        if !matches!(submitted, Ok(Submitted::Created(_))) {
            inner.live.expect_no_more(&id);
        }
        match submitted {
            Ok(Submitted::Created(record)) => {
                inner.set_degraded(None);
                inner.meters.submitted(record.kind);
                tracing::debug!(task = %record.id, kind = record.kind.as_str(), "accepted");
                inner.bump();
                begin(inner, record, foreign, true);
                inner.live.expect_no_more(&id);
                break id;
            }
            Ok(Submitted::Joined(record)) => return nest.joined(inner, record).await,
            Ok(Submitted::Repeated(answered)) => return nest.repeated(inner, answered).await,
            Ok(Submitted::TooManyChildren) => return Err(nest.full()),
            Ok(Submitted::IdempotencyMismatch) => return Err(Error::IdempotencyMismatch),
            Ok(Submitted::Duplicate(id)) => return Err(Error::Duplicate(id)),
            // No agent is asked.
            Ok(Submitted::IdTaken | Submitted::SessionGone(_) | Submitted::SessionBusy(_)) => {}
            Ok(Submitted::NothingToTrack) => return Err(refusal(&spec, absent)),
            Err(error) => {
                inner.set_degraded(Some(error.to_string()));
                return Err(error.into());
            }
        }
    };
    // Somebody may have found it in a list and ended it before it was on the roll.
    let record = inner.record(&id).await?;
    if record.status.is_terminal() {
        inner.roll.leave(&id);
    }
    Ok((record, false))
}

/// Puts a task on the roll and watches its process, if it has one. False if it is there already.
pub(super) fn begin(inner: &Arc<Inner>, record: Record, foreign: Option<Foreign>, fresh: bool) -> bool {
    let now = Instant::now();
    let Some(foreign) = foreign else { return inner.roll.enter(record, now, fresh, None) };
    let (watch, cancelled) = oneshot::channel();
    let entered = inner.roll.enter(record.clone(), now, fresh, Some(watch));
    if entered {
        tokio::spawn(foreign.watch(Arc::clone(inner), record, cancelled));
    }
    entered
}

fn refusal(spec: &Spec, absent: Option<Absent>) -> Error {
    let pid = spec.pid.unwrap_or_default();
    match absent {
        Some(Absent::System(error)) => Error::Limit(format!("process {pid} cannot be watched: {error}")),
        Some(why @ (Absent::Gone | Absent::Thread)) => Error::Process { pid, why: why.to_string() },
        None => Error::Process { pid, why: Absent::Gone.to_string() },
    }
}
