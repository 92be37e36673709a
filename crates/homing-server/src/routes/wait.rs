//! `GET /v1/tasks/{ref}/wait` and `GET /v1/wait`: an answer when tasks have ended, or when the time is up.

use axum::http::StatusCode;
use homing_api::{Code, WaitAnswer};
use homing_engine::{ReservedWait, WaitMode};
use homing_model::TaskId;
use homing_model::nesting::TaskAccess;
use homing_model::reservation::ConfirmedBy;
use tokio_util::sync::CancellationToken;

use crate::http::answer::{Answer, json_with};
use crate::http::call::Call;
use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};

/// Tasks in one answer.
const MAX_TASKS: usize = 1_000;

const TIMEOUT: Parameter =
    Parameter::new("timeout_ms", Kind::ANY_NUMBER, "How long to wait at most; until the end if absent.");

const RESERVE: Parameter = Parameter::new(
    "reserve",
    Kind::Flag,
    "`true`: the ends that are the owner's (`Homing-Owner`) are held for this caller while the call is open and for 10 s after its answer: no hook, waiter \
     or wake gets them. The call confirms nothing that was delivered before, so a caller repeats by it a wait that goes on.",
);

const CONFIRM: Parameter = Parameter::new(
    "confirm",
    Kind::OneOf(&["call", "turn"]),
    "An answer that is done delivers the ends that are the owner's, which are held as by `reserve` until then. The owner's next call (`call`) or the end of its \
     turn (`turn`) acknowledges them; if none comes within 60 s they are in the inbox again, and no wake follows.",
);

/// For one.
pub(crate) const ONE: &[Parameter] = &[TIMEOUT, RESERVE, CONFIRM];

/// For several.
pub(crate) const SEVERAL: &[Parameter] = &[
    Parameter::new("ids", Kind::Words, "Ids, unique starts of ids, names or `@last`, separated by commas."),
    Parameter::new("mode", Kind::OneOf(&["all", "any"]), "Wait for all of them (the default) or for any."),
    TIMEOUT,
    RESERVE,
    CONFIRM,
];

/// 202 is no error: the task goes on.
const fn status(done: bool) -> StatusCode {
    if done { StatusCode::OK } else { StatusCode::ACCEPTED }
}

fn confirmed_by(call: &Call) -> Option<ConfirmedBy> {
    call.query.text(CONFIRM.name).and_then(|by| by.parse().ok())
}

/// A wait that reserves keeps other readers from the inbox entries.
fn access(call: &Call) -> TaskAccess {
    let reserves = call.query.flag(RESERVE.name) == Some(true) || confirmed_by(call).is_some();
    if reserves { TaskAccess::Dispose } else { TaskAccess::Read }
}

/// Waits for one.
pub(crate) async fn one(call: Call) -> Answer {
    let ids = [call.task(access(&call)).await?];
    let answer = wait(&call, &ids, WaitMode::All).await?;
    let Some(task) = answer.items.first() else {
        return Err(Refusal::new(Code::Internal, "a wait for one task was answered with none"));
    };
    json_with(status(answer.done), task)
}

/// Waits for several.
pub(crate) async fn several(call: Call) -> Answer {
    let references: Vec<String> = call.query.words("ids")?;
    if references.is_empty() {
        return Err(Refusal::invalid("`ids` is missing: name at least one task"));
    }
    if references.len() > MAX_TASKS {
        let count = references.len();
        return Err(Refusal::invalid(format!(
            "`ids` names {count} tasks: wait for at most {MAX_TASKS} in one call"
        )));
    }
    let mut ids: Vec<TaskId> = Vec::with_capacity(references.len());
    for reference in &references {
        ids.push(call.resolve(reference, access(&call)).await?);
    }
    let mode = if call.query.text("mode") == Some("any") { WaitMode::Any } else { WaitMode::All };
    let answer = wait(&call, &ids, mode).await?;
    json_with(status(answer.done), &answer)
}

/// Waits; where that reserves, the reservation is there before the first look, and the answer delivers or leaves it for a moment.
async fn wait(call: &Call, ids: &[TaskId], mode: WaitMode) -> Result<WaitAnswer, Refusal> {
    let (engine, timeout) = (&call.app.engine, call.query.millis("timeout_ms"));
    if access(call) == TaskAccess::Read {
        return Ok(engine.wait(ids, mode, timeout).await?);
    }
    let owner = call.owner()?;
    let mut open = Open {
        reserved: Some(engine.reserve(owner, ids, timeout).await),
        shutdown: call.app.shutdown.clone(),
    };
    let waiting = engine.wait(ids, mode, timeout);
    let answer = match &mut open.reserved {
        Some(reserved) => reserved.during(waiting).await?,
        None => waiting.await?,
    };
    match (open.reserved.take(), confirmed_by(call).filter(|_| answer.done)) {
        (Some(reserved), Some(by)) => {
            let ended = answer.items.iter().filter(|task| task.status.is_terminal() && task.owner == owner);
            let ended = ended.map(|task| task.id.clone()).collect();
            reserved.deliver(ended, by, call.scope.limited_to()).await?;
        }
        (Some(reserved), None) => reserved.linger().await,
        (None, _) => {}
    }
    Ok(answer)
}

/// A reservation while its request is open. Cut off because the daemon leaves, it stays: its client calls the next one.
struct Open {
    reserved: Option<ReservedWait>,
    shutdown: CancellationToken,
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(reserved) = self.reserved.take()
            && self.shutdown.is_cancelled()
        {
            reserved.leave_to_next_engine();
        }
    }
}
