//! `GET /v1/tasks/{ref}/wait` and `GET /v1/wait`: an answer when tasks have ended, or when the time is up.

use axum::http::StatusCode;
use homing_api::{Code, WaitAnswer};
use homing_engine::{Question, WaitMode};
use homing_model::TaskId;
use homing_model::nesting::Act;

use tokio_util::sync::CancellationToken;

use crate::http::answer::{Answer, json_with};
use crate::http::call::Call;
use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};

/// Tasks in one answer.
const MAX_TASKS: usize = 1_000;

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

const ASKS: Parameter = Parameter::new(
    "asks",
    Kind::Flag,
    "`true`: the owner (`Homing-Owner`) stays with these and is told by a call with `told` that follows. For as long as this one is open, \
     and 10 s after its answer, nobody else tells it their ends; the answer itself tells nothing.",
);

const AGAIN: Parameter = Parameter::new(
    "again",
    Kind::Flag,
    "`true`: this call goes on with an earlier one, or says what came of it. It is no sign that the owner has heard what it was told since, and \
     acknowledges nothing.",
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
    ASKS,
    AGAIN,
];

/// 202 is no error: the task goes on.
const fn status(done: bool) -> StatusCode {
    if done { StatusCode::OK } else { StatusCode::ACCEPTED }
}

fn is(call: &Call, flag: &str) -> bool {
    call.query.flag(flag) == Some(true)
}

/// Who is told takes it from the inbox, and who asks keeps others from it.
fn act(call: &Call) -> Act {
    if is(call, "told") || is(call, "asks") { Act::Dispose } else { Act::Look }
}

/// Waits for one.
pub(crate) async fn one(call: Call) -> Answer {
    let ids = [call.task(act(&call)).await?];
    let (answer, question) = wait(&call, &ids, WaitMode::All).await?;
    let Some(task) = answer.items.first() else {
        return Err(Refusal::new(Code::Internal, "a wait for one task was answered with none"));
    };
    if let Some(question) = question.filter(|_| answer.done) {
        tell(&call, &answer, question).await?;
    }
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
        ids.push(call.resolve(reference, act(&call)).await?);
    }
    let mode = if call.query.text("mode") == Some("any") { WaitMode::Any } else { WaitMode::All };
    let (answer, question) = wait(&call, &ids, mode).await?;
    let shown = is(&call, "told") && (answer.done || is(&call, "partial"));
    match question {
        Some(question) if shown => tell(&call, &answer, question).await?,
        Some(question) => question.stands().await,
        None => {}
    }
    json_with(status(answer.done), &answer)
}

/// Waits; with `told` or `asks`, as a question of the owner, which is open before the first look.
async fn wait(
    call: &Call,
    ids: &[TaskId],
    mode: WaitMode,
) -> Result<(WaitAnswer, Option<Question>), Refusal> {
    let (engine, timeout) = (&call.app.engine, call.query.millis("timeout_ms"));
    if act(call) == Act::Look {
        return Ok((engine.wait(ids, mode, timeout).await?, None));
    }
    let mut asking = Asking {
        question: Some(engine.ask(call.owner()?, ids, timeout).await),
        shutdown: call.app.shutdown.clone(),
    };
    let waiting = engine.wait(ids, mode, timeout);
    let answer = match &mut asking.question {
        Some(question) => question.during(waiting).await?,
        None => waiting.await?,
    };
    Ok((answer, asking.question.take()))
}

/// A question while its answer is waited for. Cut off because the daemon leaves, it stands: its client asks the next one.
struct Asking {
    question: Option<Question>,
    shutdown: CancellationToken,
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(question) = self.question.take()
            && self.shutdown.is_cancelled()
        {
            question.left_standing();
        }
    }
}

/// Holds what the owner is told by this answer.
async fn tell(call: &Call, answer: &WaitAnswer, question: Question) -> Result<(), Refusal> {
    let owner = call.owner()?;
    let ended = answer.items.iter().filter(|task| task.status.is_terminal() && task.owner == owner);
    let ended = ended.map(|task| task.id.clone()).collect();
    Ok(question.answered(ended, call.standing.limited_to()).await?)
}
