//! MCP tasks (`io.modelcontextprotocol/tasks`): homing's own tasks, under the same ids.
//!
//! Nothing is kept here. An id is given only after the task is durable, and every question is answered from the ledger: by this daemon, by the
//! next one, or after the task was forgotten by its tombstone. So an id that was issued is never unknown (P12).
//!
//! An end that is polled is told (P6): the answer is the hand-over, and the client's next call confirms it.

use homing_agents::registry::session_of;
use homing_api::{Code, StopRequest};
use homing_model::{Status, Task, TaskId, Timestamp};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, ErrorCode, ErrorData, GetTaskResult, JsonObject,
    ProtocolVersion, Task as McpTask, TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::access::Access;
use crate::polls::Polls;
use crate::refusal::Refusal;
use crate::summary::{sentence, why};
use crate::tools;

/// How often a client should ask, in milliseconds.
const POLL_MS: u64 = 1_000;

/// Whether a client gets a task where it asks for a long job. Declaring the extension is not enough: some clients do so on connections of
/// protocols that have no tasks, and would show an empty result.
pub(crate) fn wanted(context: &RequestContext<RoleServer>) -> bool {
    let speaks = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    speaks && context.client_capabilities().is_some_and(|declared| declared.supports_tasks())
}

/// A task that was accepted, for a client that will ask for it.
pub(crate) fn created(task: &Task) -> CreateTaskResult {
    CreateTaskResult::new(facts(task, status(task)))
}

/// What is known of a task now.
pub(crate) async fn get(access: &Access, id: &str, polls: &Polls) -> Result<GetTaskResult, ErrorData> {
    let task = match find(access, id).await {
        Ok(task) => task,
        Err(refusal) if refusal.code() == Some(Code::RecordExpired) => return Ok(expired(id, &refusal)),
        Err(refusal) => return Err(refused(&refusal)),
    };
    if task.owner == access.owner {
        polls.seen(access, &task).await.map_err(|refusal| refused(&refusal))?;
    }
    let payload = match status(&task) {
        ended if ended.is_terminal() && is_of_another_conversation(&task.owner, &access.owner) => {
            return Ok(elsewhere(&task));
        }
        TaskStatus::Completed => TaskPayload::Completed { result: result(access, &task).await? },
        TaskStatus::Failed => TaskPayload::Failed {
            error: object(json!({
                "code": ErrorCode::INTERNAL_ERROR.0,
                "message": format!(
                    "{}: homing could not see it through; what it printed is readable with the tool `output`{}",
                    sentence(&task),
                    why(&task)
                ),
            })),
        },
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        _ => TaskPayload::Working,
    };
    if payload.status().is_terminal() && task.owner == access.owner {
        // Last: calls in the owner's name confirm what was told before them.
        let marked = access.client.mark_delivered(std::slice::from_ref(&task.id)).await;
        marked.map_err(|error| refused(&error.into()))?;
    }
    Ok(GetTaskResult::new(DetailedTask::new(facts(&task, payload.status()), payload)))
}

/// Whether a task belongs to another conversation of the agent that asks. A client that has begun a new one polls on for the tasks of the old.
fn is_of_another_conversation(owner: &str, caller: &str) -> bool {
    match (session_of(owner), session_of(caller)) {
        (Some(owner), Some(caller)) => owner.agent == caller.agent && owner.id != caller.id,
        _ => false,
    }
}

/// The end of a task of another conversation. Its own client is answered when that is resumed; any end told here would start a turn of the wrong one.
fn elsewhere(task: &Task) -> GetTaskResult {
    let facts = facts(task, TaskStatus::Working)
        .with_status_message(format!("{} belongs to another conversation ({})", task.id, task.owner));
    GetTaskResult::new(DetailedTask::new(facts, TaskPayload::Working))
}

/// No task of homing asks its client for anything, so there is nothing to answer; that is heard, as the extension wants it.
pub(crate) async fn update(access: &Access, id: &str) -> Result<(), ErrorData> {
    find(access, id).await.map(drop).map_err(|refusal| refused(&refusal))
}

/// Begins to stop a task of the caller's own. Of one that has ended nothing is changed.
pub(crate) async fn cancel(access: &Access, id: &str) -> Result<(), ErrorData> {
    let stopped = async {
        let task = match find(access, id).await {
            Err(refusal) if refusal.code() == Some(Code::RecordExpired) => return Ok(()),
            found => found?,
        };
        tools::own(access, &task, "stop")?;
        if !task.status.is_terminal() {
            let request = StopRequest { by: Some(access.owner.clone()), ..StopRequest::default() };
            access.client.stop(task.id.as_str(), &request).await?;
        }
        Ok(())
    };
    stopped.await.map_err(|refusal: Refusal| refused(&refusal))
}

/// By its whole id: a client has no other name for it.
async fn find(access: &Access, id: &str) -> Result<Task, Refusal> {
    let id: TaskId = id.parse().map_err(|error: homing_model::id::Malformed| {
        Refusal::from(homing_api::Problem::new(Code::UnknownTask, error.to_string()))
    })?;
    Ok(access.client.task(id.as_str()).await?)
}

/// What a status means to MCP: a command that ran and failed was carried out, and `failed` is for what homing itself could not do.
fn status(task: &Task) -> TaskStatus {
    match task.status {
        Status::Queued | Status::Starting | Status::Running | Status::Paused | Status::Stopping => {
            TaskStatus::Working
        }
        // Of a start that failed the reason says why, in a result that can be read.
        Status::Succeeded | Status::Failed | Status::TimedOut | Status::StartFailed => TaskStatus::Completed,
        Status::Stopped => TaskStatus::Cancelled,
        Status::Lost => TaskStatus::Failed,
    }
}

fn facts(task: &Task, status: TaskStatus) -> McpTask {
    let updated = task.ended_at.or(task.started_at).unwrap_or(task.created_at);
    let facts = McpTask::new(task.id.as_str(), status, task.created_at.to_string(), updated.to_string());
    let facts = facts.with_status_message(sentence(task));
    if status.is_terminal() { facts } else { facts.with_poll_interval_ms(POLL_MS) }
}

/// What `run` would have given, had it waited.
async fn result(access: &Access, task: &Task) -> Result<JsonObject, ErrorData> {
    let reply = tools::ended(access, task).await.map_err(|refusal| refused(&refusal))?;
    let value = serde_json::to_value(CallToolResult::from(reply));
    Ok(object(value.unwrap_or_default()))
}

/// It ended, longer ago than anybody remembers how.
fn expired(id: &str, refusal: &Refusal) -> GetTaskResult {
    let error = json!({ "code": ErrorCode::INTERNAL_ERROR.0, "message": refusal.text() });
    let long_ago = Timestamp::from_millis(0).to_string();
    let facts =
        McpTask::new(id, TaskStatus::Failed, long_ago.clone(), long_ago).with_status_message(refusal.text());
    GetTaskResult::new(DetailedTask::new(facts, TaskPayload::Failed { error: object(error) }))
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => JsonObject::from_iter([("value".to_owned(), other)]),
    }
}

/// As JSON-RPC refuses: what the client named wrongly is its mistake, the rest is ours.
fn refused(refusal: &Refusal) -> ErrorData {
    let data = json!({ "code": refusal.problem().code, "advice": refusal.problem().advice });
    match refusal.code() {
        Some(Code::UnknownTask | Code::ForeignTask | Code::InvalidRequest) => {
            ErrorData::invalid_params(refusal.text(), Some(data))
        }
        _ => ErrorData::internal_error(refusal.text(), Some(data)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_conversation_is_one_of_the_same_agent() {
        assert!(is_of_another_conversation("claude:a", "claude:b"));
        for (owner, caller) in [("claude:a", "claude:a"), ("codex:a", "claude:b"), ("user", "claude:b")] {
            assert!(!is_of_another_conversation(owner, caller), "{owner} {caller}");
        }
    }
}
