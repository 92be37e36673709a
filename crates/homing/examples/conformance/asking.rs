//! Tasks that ask their client for something. What was asked is in the description of a real task, what was answered in its output: nothing is
//! remembered here.

use std::time::Duration;

use bytes::Bytes;
use homing_client::{Client, OutputQuery};
use homing_model::Status;
use rmcp::model::{DetailedTask, GetTaskResult, TaskPayload, TaskStatus, UpdateTaskParams};
use serde_json::{Value, json};

use crate::rounds;

/// What the description of such a task begins with.
const MARK: &str = "asks ";

/// The arguments of a run that reads an answer to each question and repeats it.
pub(crate) fn task(questions: &[&str]) -> Value {
    let line = format!("{}echo all was answered", "read -r line; echo \"$line\"; ".repeat(questions.len()));
    json!({ "command": line, "stdin": true, "description": format!("{MARK}{}", questions.join(" ")) })
}

/// What a running task still asks for.
async fn pending(client: &Client, id: &str) -> Vec<String> {
    let Ok(task) = client.task(id).await else { return Vec::new() };
    let asked =
        task.description.as_deref().and_then(|text| text.strip_prefix(MARK)).unwrap_or_default().to_owned();
    if asked.is_empty() || task.status != Status::Running {
        return Vec::new();
    }
    let printed =
        client.output(id, &OutputQuery::default()).await.map(|chunk| chunk.bytes).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let answered = |question: &str| printed.lines().any(|line| line.split(' ').next() == Some(question));
    asked.split(' ').filter(|question| !answered(question)).map(str::to_owned).collect()
}

/// The same task; waiting for input, if it is.
pub(crate) async fn waiting(client: &Client, found: GetTaskResult) -> GetTaskResult {
    if found.task.task.status != TaskStatus::Working {
        return found;
    }
    let asked = pending(client, &found.task.task.task_id).await;
    if asked.is_empty() {
        return found;
    }
    let asked: Vec<_> = asked.iter().map(String::as_str).collect();
    let input_requests = rounds::question(&asked, None).input_requests.unwrap_or_default();
    GetTaskResult::new(DetailedTask::new(found.task.task, TaskPayload::InputRequired { input_requests }))
}

/// Passes answers on, and waits until the task has taken each.
pub(crate) async fn answer(client: &Client, request: &UpdateTaskParams) {
    let id = request.task_id.as_str();
    for (question, answer) in &request.input_responses {
        if !pending(client, id).await.contains(question) {
            continue;
        }
        let Ok(before) = client.output(id, &OutputQuery::default()).await else { return };
        let line = Bytes::from(format!("{question} {answer}\n"));
        if client.input(id, line, false).await.is_err() {
            return;
        }
        let wait = Some(Duration::from_secs(10));
        let query = OutputQuery { offset: Some(before.end), wait, ..OutputQuery::default() };
        let _ = client.output(id, &query).await;
    }
}
