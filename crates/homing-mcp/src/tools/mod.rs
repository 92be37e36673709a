//! The tools: what each is called, what it teaches a model, what it takes and gives.

mod ask;
mod inbox;
mod input;
mod list;
mod output;
mod run;
mod schema;
mod stop;
mod wait;

use std::sync::{Arc, OnceLock};

use homing_api::{Code, Problem};
use homing_model::nesting::Rule;
use homing_model::{Task, unsure};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, JsonObject, Tool,
    ToolAnnotations,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::access::{Access, Context};
use crate::refusal::Refusal;
use crate::summary;

pub(crate) use run::ended;

/// A description of a tool that takes `I` and gives `O`.
fn tool<I: JsonSchema, O: JsonSchema>(
    name: &'static str,
    description: &'static str,
    annotations: ToolAnnotations,
) -> Tool {
    Tool::new(name, description, schema::of_input::<I>())
        .with_raw_output_schema(Arc::new(schema::of_output::<O>()))
        .with_annotations(annotations)
}

/// Every tool, in the order in which a model should think of them. Made once.
pub(crate) fn all() -> &'static [Tool] {
    static TOOLS: OnceLock<Vec<Tool>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        vec![
            run::tool(),
            ask::tool(),
            list::tool(),
            output::tool(),
            wait::tool(),
            stop::tool(),
            input::tool(),
            inbox::tool(),
        ]
    })
}

/// Calls a tool. What it refuses is a result too, one that the model can read.
pub(crate) async fn call(
    access: &Access,
    request: CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let (name, given) = (request.name.as_ref(), request.arguments.unwrap_or_default());
    match carry_out(access, name, given, context).await {
        Ok(Some(CallToolResponse::Complete(result))) if name != "inbox" => {
            Ok(with_waiting(access, result).await.into())
        }
        Ok(Some(done)) => Ok(done),
        Ok(None) => {
            let message = format!("there is no tool `{}`", summary::line(name, 64));
            Err(ErrorData::invalid_params(message, None))
        }
        Err(refusal) => Ok(refusal.into_result().into()),
    }
}

/// So many notices are counted.
const COUNTED: u32 = 10;

/// The same result with a word on what waits in the caller's inbox, in both of its forms. What this very call told is not among that.
async fn with_waiting(access: &Access, mut result: CallToolResult) -> CallToolResult {
    // In nobody's name: a look confirms nothing. Where it is refused, as inside a command's task, there is nothing to say.
    let looking = access.reader.inbox_up_to(&access.owner, Some(COUNTED), None);
    let count = looking.await.map_or(0, |answer| answer.items.len());
    let more = if count < COUNTED as usize { "" } else { " or more" };
    let word = match count {
        0 => return result,
        1 => "1 notice waits: call `inbox`.".to_owned(),
        count => format!("{count}{more} notices wait: call `inbox`."),
    };
    if let Some(fields) = result.structured_content.as_mut().and_then(serde_json::Value::as_object_mut) {
        fields.insert("inbox".to_owned(), word.clone().into());
    }
    // Before the links.
    let at = result.content.len().min(1);
    result.content.insert(at, ContentBlock::text(word));
    result
}

/// What the tool of that name comes to; nothing if there is none.
async fn carry_out(
    access: &Access,
    name: &str,
    given: JsonObject,
    context: &Context,
) -> Result<Option<CallToolResponse>, Refusal> {
    let reply = match name {
        "run" => return run::call(access, parameters(given)?, context).await.map(Some),
        "ask" => return ask::call(access, parameters(given)?, context).await.map(Some),
        "list" => list::call(access, parameters(given)?).await?,
        "output" => output::call(access, parameters(given)?, context).await?,
        "wait" => wait::call(access, parameters(given)?, context).await?,
        "stop" => stop::call(access, parameters(given)?, context).await?,
        "input" => input::call(access, parameters(given)?).await?,
        "inbox" => inbox::call(access, parameters(given)?, context).await?,
        _ => return Ok(None),
    };
    Ok(Some(CallToolResult::from(reply).into()))
}

/// The parameters of a call.
fn parameters<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, Refusal> {
    serde_json::from_value(arguments.into())
        .map_err(|error| Refusal::invalid(summary::line(&error.to_string(), 500)))
}

/// The task that a call of this tool names.
async fn find(access: &Access, tool: &str, id: &str) -> Result<Task, Refusal> {
    let refused = |error| {
        let what = format!("`{tool}` of task `{}`", summary::line(id, 64));
        Refusal::from(error).naming(Rule::Foreign, &what)
    };
    access.client.task(id).await.map_err(refused)
}

/// The same, where it is the caller's own: another's is refused before anything is done to it.
async fn find_own(access: &Access, tool: &str, id: &str) -> Result<Task, Refusal> {
    let task = find(access, tool, id).await?;
    own(access, &task, tool)?;
    unsure::certain(id, &task.id, task.name.as_deref()).map_err(Problem::from)?;
    Ok(task)
}

/// Another's task is refused. A task never changes its owner.
pub(crate) fn own(access: &Access, task: &Task, tool: &str) -> Result<(), Refusal> {
    if access.is_own(&task.owner) {
        return Ok(());
    }
    let (theirs, ours) = (summary::line(&task.owner, 64), summary::line(&access.owner, 64));
    let detail = format!("`{tool}` of task {} is not for {ours}: it belongs to {theirs}", task.id);
    Err(Problem::new(Code::ForeignTask, detail).into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_tool_says_what_it_takes_and_gives() {
        let names: Vec<_> = all().iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["run", "ask", "list", "output", "wait", "stop", "input", "inbox"]);
        for tool in all() {
            let schema =
                |schema: &JsonObject| schema.get("properties").and_then(|all| all.as_object().cloned());
            let takes = schema(&tool.input_schema).unwrap_or_default();
            assert!(!takes.is_empty(), "{}: {:?}", tool.name, tool.input_schema);
            for (name, field) in &takes {
                assert!(field.get("description").is_some(), "{}.{name} is not described", tool.name);
            }
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
            let text = serde_json::to_string(tool).unwrap_or_default();
            assert!(!text.contains("uint") && !text.contains("\"default\":null"), "{text}");
            assert!(!text.contains("\"null\""), "{text}");
            let gives = tool.output_schema.as_deref().and_then(schema).unwrap_or_default();
            assert!(!gives.is_empty(), "{}", tool.name);
            assert!(tool.annotations.is_some(), "{}", tool.name);
        }
    }

    /// A model is given names, descriptions and input schemas in every conversation.
    #[test]
    fn what_a_model_is_given_of_the_tools_is_small() {
        let given: Vec<_> = all()
            .iter()
            .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": *tool.input_schema }))
            .collect();
        let bytes = |json: Value| json.to_string().len();
        let (given, whole) = (bytes(given.into()), bytes(serde_json::to_value(all()).unwrap()));
        // 6,200 bytes of this were measured as 1,490 tokens (o200k_base), 8,300 of the whole list as 2,000.
        assert!(given <= 6_250, "{given} bytes");
        assert!(whole <= 8_400, "{whole} bytes");
    }
}
