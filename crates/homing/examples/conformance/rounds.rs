//! Tools that ask before they answer, in rounds. What a client must bring back unchanged is signed.

use homing_model::digest::sha256;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ErrorData,
    InputRequests, InputRequiredResult,
};
use serde_json::{Value, json};

const PREFIX: &str = "test_input_required_result_";

/// Tools, with the questions of each round, and whether a state goes with them.
const TOOLS: &[(&str, &[&[&str]], bool)] = &[
    ("elicitation", &[&["user_name"]], false),
    ("sampling", &[&["capital_question"]], false),
    ("list_roots", &[&["client_roots"]], false),
    ("request_state", &[&["confirm"]], true),
    ("multiple_inputs", &[&["user_name", "greeting", "client_roots"]], true),
    ("multi_round", &[&["step1"], &["step2"]], true),
    ("tampered_state", &[&["confirm"]], true),
    ("capabilities", &[&["user_name", "capital_question", "client_roots"]], false),
];

/// The names of these tools.
pub(crate) fn names() -> impl Iterator<Item = String> {
    TOOLS.iter().map(|(name, ..)| format!("{PREFIX}{name}"))
}

/// What is asked of the client.
pub(crate) fn request(question: &str) -> Value {
    let field = match question {
        "capital_question" | "greeting" => {
            let message = json!({ "role": "user", "content": { "type": "text", "text": "What is the capital of France?" } });
            return json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": 100 } });
        }
        "client_roots" => return json!({ "method": "roots/list", "params": {} }),
        "confirm" => json!({ "ok": { "type": "boolean" } }),
        "step2" => json!({ "color": { "type": "string" } }),
        "user_context" => json!({ "context": { "type": "string" } }),
        _ => json!({ "name": { "type": "string" } }),
    };
    let required: Vec<_> =
        field.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
    let form = json!({ "type": "object", "properties": field, "required": required });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": question, "requestedSchema": form } })
}

/// A question instead of a result.
pub(crate) fn question(questions: &[&str], state: Option<String>) -> InputRequiredResult {
    let all = questions.iter().map(|question| ((*question).to_owned(), request(question)));
    let requests: InputRequests = serde_json::from_value(Value::Object(all.collect())).unwrap_or_default();
    InputRequiredResult::new(Some(requests), state)
}

/// A state that nobody else can make.
fn signed(tool: &str, round: usize) -> String {
    format!("{round}.{}", sha256(format!("a secret of the fixtures, {tool}, {round}").as_bytes()))
}

/// The answer of one of these tools; `None` if it is none of them.
pub(crate) fn call(
    request: &CallToolRequestParams,
    declared: Option<&ClientCapabilities>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let name = request.name.strip_prefix(PREFIX)?;
    let (_, rounds, stateful) = TOOLS.iter().find(|(known, ..)| *known == name)?;
    let declared = serde_json::to_value(declared).unwrap_or_default();
    let possible = |question: &&str| {
        let capability = match *question {
            "capital_question" | "greeting" => "sampling",
            "client_roots" => "roots",
            _ => "elicitation",
        };
        name != "capabilities" || !declared[capability].is_null()
    };
    let none = Default::default();
    let answers = request.input_responses.as_ref().unwrap_or(&none);
    let answered = |question: &&str| answers.get(*question).is_some_and(Value::is_object);
    let mut round = 0;
    if let (true, Some(state)) = (*stateful, &request.request_state) {
        match (0..rounds.len()).find(|round| signed(name, *round) == *state) {
            Some(known) => round = known,
            None => return Some(Err(ErrorData::invalid_params("the request state is not ours", None))),
        }
    }
    let asked = rounds.get(round)?;
    if asked.iter().all(answered) {
        round += 1;
    }
    Some(Ok(match rounds.get(round) {
        Some(asked) => {
            let asked: Vec<&str> = asked.iter().copied().filter(possible).collect();
            question(&asked, stateful.then(|| signed(name, round))).into()
        }
        None => {
            let name = answers
                .get("user_name")
                .and_then(|answer| answer.pointer("/content/name"))
                .and_then(Value::as_str);
            let said = format!("Hello, {}! state-ok {}", name.unwrap_or("nobody"), json!(answers));
            CallToolResult::success(vec![ContentBlock::text(said)]).into()
        }
    }))
}
