//! `GET /v1/tasks/{ref}/wait` and `GET /v1/wait`: an answer when tasks have ended, or when the time is up.

use axum::http::StatusCode;
use homing_engine::WaitMode;
use homing_model::api::WaitAnswer;
use homing_model::nesting::Act;
use homing_model::{Code, TaskId};

use crate::answer::{Answer, json_with};
use crate::call::Call;
use crate::refusal::Refusal;
use crate::route::{Kind, Parameter};

const TIMEOUT: Parameter =
    Parameter::new("timeout_ms", Kind::ANY_NUMBER, "How long to wait at most; until the end if absent.");

const TOLD: Parameter = Parameter::new(
    "told",
    Kind::Flag,
    "`true`: the answer tells the owner (`Homing-Owner`), so no wake follows; its entries in the inbox are held, and acknowledged by \
     the owner's next call. If none comes, they are back.",
);

const PARTIAL: Parameter = Parameter::new(
    "partial",
    Kind::Flag,
    "`true`: with `told`, those that have ended are told even if the time is up for the rest. Only for whoever shows such an answer: one \
     that is thrown away to ask again has told nobody.",
);

/// For one.
pub(crate) const ONE: &[Parameter] = &[TIMEOUT, TOLD];

/// For several.
pub(crate) const SEVERAL: &[Parameter] = &[
    Parameter::new("ids", Kind::Words, "Ids, unique starts of ids, names or `@last`, separated by commas."),
    Parameter::new("mode", Kind::OneOf(&["all", "any"]), "Wait for all of them (the default) or for any."),
    TIMEOUT,
    TOLD,
    PARTIAL,
];

/// 202 is no error: the task goes on.
const fn status(done: bool) -> StatusCode {
    if done { StatusCode::OK } else { StatusCode::ACCEPTED }
}

/// Who is told takes it from the inbox.
fn act(call: &Call) -> Act {
    if call.query.flag("told") == Some(true) { Act::Dispose } else { Act::Look }
}

/// Waits for one.
pub(crate) async fn one(call: Call) -> Answer {
    let id = call.task(act(&call)).await?;
    let answer = call.app.engine.wait(&[id], WaitMode::All, call.query.millis("timeout_ms")).await?;
    let Some(task) = answer.items.first() else {
        return Err(Refusal::new(Code::Internal, "a wait for one task was answered with none"));
    };
    tell(&call, &answer).await?;
    json_with(status(answer.done), task)
}

/// Waits for several.
pub(crate) async fn several(call: Call) -> Answer {
    let references: Vec<String> = call.query.words("ids")?;
    if references.is_empty() {
        return Err(Refusal::invalid("`ids` is missing: name at least one task"));
    }
    let mut ids: Vec<TaskId> = Vec::with_capacity(references.len());
    for reference in &references {
        ids.push(call.resolve(reference, act(&call)).await?);
    }
    let mode = if call.query.text("mode") == Some("any") { WaitMode::Any } else { WaitMode::All };
    let answer = call.app.engine.wait(&ids, mode, call.query.millis("timeout_ms")).await?;
    tell(&call, &answer).await?;
    json_with(status(answer.done), &answer)
}

/// Holds what the owner is told by this answer.
async fn tell(call: &Call, answer: &WaitAnswer) -> Result<(), Refusal> {
    let shown = answer.done || call.query.flag("partial") == Some(true);
    if shown && call.query.flag("told") == Some(true) {
        let owner = call.owner()?;
        let ended = answer.items.iter().filter(|task| task.status.is_terminal() && task.owner == owner);
        let ended = ended.map(|task| task.id.clone()).collect();
        match call.standing.limited_to() {
            Some(inside) => call.app.engine.told_inside(inside, owner, ended).await?,
            None => call.app.engine.told(owner, ended).await?,
        }
    }
    Ok(())
}
