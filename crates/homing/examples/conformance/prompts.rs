//! Prompts, which homing itself has none of.

use rmcp::model::{ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult};
use serde_json::{Value, json};

use crate::{content, rounds};

/// Their names, and what each takes.
const PROMPTS: &[(&str, &[&str])] = &[
    ("test_simple_prompt", &[]),
    ("test_prompt_with_arguments", &["arg1", "arg2"]),
    ("test_prompt_with_embedded_resource", &["resourceUri"]),
    ("test_prompt_with_image", &[]),
    ("test_input_required_result_prompt", &[]),
];

pub(crate) fn list() -> ListPromptsResult {
    let prompts: Vec<_> = PROMPTS
        .iter()
        .map(|(name, takes)| {
            let arguments: Vec<_> = takes.iter().map(|name| json!({ "name": name, "required": true })).collect();
            json!({ "name": name, "description": "A fixture of the conformance suite", "arguments": arguments })
        })
        .collect();
    serde_json::from_value(json!({ "resultType": "complete", "prompts": prompts })).unwrap_or_default()
}

pub(crate) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let given = |name: &str| {
        let value = request.arguments.as_ref().and_then(|all| all.get(name));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let text = |text: &str| json!({ "type": "text", "text": text });
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![text(&format!("Prompt with arguments: arg1='{}', arg2='{}'", given("arg1"), given("arg2")))]
        }
        "test_prompt_with_embedded_resource" => {
            let said = "Embedded resource content for testing.";
            let resource = json!({ "uri": given("resourceUri"), "mimeType": "text/plain", "text": said });
            vec![
                json!({ "type": "resource", "resource": resource }),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => {
            let image = json!({ "type": "image", "data": content::PNG, "mimeType": "image/png" });
            vec![image, text("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => {
            match request.input_responses.as_ref().and_then(|all| all.get("user_context")) {
                None => return Ok(rounds::question(&["user_context"], None).into()),
                Some(answer) => vec![text(&answer.to_string())],
            }
        }
        _ => return Err(ErrorData::invalid_params("there is no such prompt", None)),
    };
    let messages: Vec<_> =
        contents.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
    let result: Result<GetPromptResult, _> =
        serde_json::from_value(json!({ "resultType": "complete", "messages": messages }));
    result.map(Into::into).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
