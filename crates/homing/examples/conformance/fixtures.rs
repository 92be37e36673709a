//! What the suite wants to be there, beside what is.

use std::time::Duration;

use homing_client::Client;
use homing_mcp::Handler;
use homing_model::shell::quote;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    CompleteRequestParams, CompleteResult, ContentBlock, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value, json};

use crate::{asking, content, prompts, rounds};

/// homing's handler, and the fixtures.
#[derive(Clone)]
pub(crate) struct Fixtures {
    handler: Handler,
    client: Client,
}

/// Tools and the fields that they take.
const TOOLS: &[(&str, &[(&str, &str)])] = &[
    ("greet", &[("name", "string")]),
    ("slow_compute", &[("seconds", "number"), ("label", "string")]),
    ("failing_job", &[]),
    ("protocol_error_job", &[]),
    ("confirm_delete", &[("filename", "string")]),
    ("multi_input", &[]),
    ("test_tool_with_task", &[]),
    ("test_simple_text", &[]),
    ("test_image_content", &[]),
    ("test_audio_content", &[]),
    ("test_embedded_resource", &[]),
    ("test_multiple_content_types", &[]),
    ("test_error_handling", &[]),
    ("test_tool_with_progress", &[]),
    ("test_missing_capability", &[]),
    ("test_logging_tool", &[]),
    ("test_streaming_elicitation", &[]),
];

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn tools() -> Vec<Tool> {
    let plain = TOOLS.iter().map(|(name, fields)| {
        let fields = fields.iter().map(|(field, kind)| ((*field).to_owned(), json!({ "type": kind })));
        let schema = json!({ "type": "object", "properties": fields.collect::<Map<_, _>>() });
        Tool::new(*name, "A fixture of the conformance suite", object(schema))
    });
    let odd = [("json_schema_2020_12_tool", content::schema()), ("test_header", content::header_schema())];
    let odd = odd.map(|(name, schema)| Tool::new(name, "A fixture of the conformance suite", object(schema)));
    let asking = rounds::names().map(|name| {
        Tool::new(
            name,
            "A fixture of the conformance suite",
            object(json!({ "type": "object", "properties": {} })),
        )
    });
    plain.chain(odd).chain(asking).collect()
}

fn text(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn tasks_required() -> ErrorData {
    ErrorData::missing_required_client_capability(ClientCapabilities::builder().enable_tasks().build())
}

impl Fixtures {
    pub(crate) fn new(handler: Handler, client: Client) -> Self {
        Self { handler, client }
    }

    /// A command as a task, by homing's own tool.
    async fn run(
        &self,
        arguments: Value,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut arguments = object(arguments);
        arguments.insert("notify_on_complete".to_owned(), true.into());
        arguments.insert("wait_ms".to_owned(), 60_000.into());
        let call = CallToolRequestParams::new("run").with_arguments(arguments);
        Box::pin(self.handler.call_tool(call, context)).await
    }

    async fn progress(&self, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        for step in [0, 50, 100] {
            if let Some(token) = context.meta.get_progress_token() {
                let mut news = ProgressNotificationParam::new(token, f64::from(step));
                news.total = Some(100.0);
                let _ = context.peer.notify_progress(news).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(text("done"))
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = |name: &str| {
            request.arguments.as_ref().and_then(|all| all.get(name)).cloned().unwrap_or_default()
        };
        let declared = context.client_capabilities();
        if let Some(answer) = rounds::call(&request, declared.as_ref()) {
            return answer;
        }
        let declared = declared.is_some_and(|declared| declared.supports_tasks());
        match request.name.as_ref() {
            "greet" => Ok(text(&format!("Hello, {}!", given("name").as_str().unwrap_or("nobody")))),
            "slow_compute" => {
                let seconds = given("seconds").as_f64().unwrap_or(0.0);
                self.run(json!({ "command": format!("sleep {seconds}; echo computed") }), context).await
            }
            "failing_job" | "protocol_error_job" | "confirm_delete" | "multi_input" if !declared => {
                Err(tasks_required())
            }
            "failing_job" => self.run(json!({ "command": "sleep 1; echo it failed; exit 1" }), context).await,
            // Nobody is left who could say how it ended: homing's own failure.
            "protocol_error_job" => self.run(json!({ "command": "kill -9 $PPID; sleep 60" }), context).await,
            "confirm_delete" => self.run(asking::task(&["confirm"]), context).await,
            "multi_input" => self.run(asking::task(&["first", "second"]), context).await,
            "test_tool_with_task" => {
                match request.input_responses.as_ref().and_then(|all| all.get("user_name")) {
                    None => Ok(rounds::question(&["user_name"], None).into()),
                    Some(answer) => {
                        let name =
                            answer.pointer("/content/name").and_then(Value::as_str).unwrap_or("nobody");
                        self.run(json!({ "command": format!("echo Hello, {}", quote(name)) }), context).await
                    }
                }
            }
            "test_streaming_elicitation" => Ok(rounds::question(&["user_name"], None).into()),
            "test_missing_capability" => {
                let sampling = serde_json::from_value(json!({ "sampling": {} })).unwrap_or_default();
                Err(ErrorData::missing_required_client_capability(sampling))
            }
            "test_tool_with_progress" => self.progress(&context).await,
            "test_simple_text" => Ok(text("This is a simple text response for testing.")),
            "test_error_handling" => {
                let said = "This tool intentionally returns an error for testing";
                Ok(CallToolResult::error(vec![ContentBlock::text(said)]).into())
            }
            name => match content::of(name) {
                Some(content) => Ok(CallToolResult::success(content).into()),
                None if TOOLS.iter().any(|(known, _)| *known == name) || name == "test_header" => {
                    Ok(text("done"))
                }
                None => self.handler.call_tool(request, context).await,
            },
        }
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.handler.get_info();
        info.capabilities.prompts = Some(Default::default());
        info.capabilities.completions = Some(Default::default());
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.handler.list_tools(request, context).await?;
        listed.tools.extend(tools());
        Ok(listed)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.handler.get_tool(name).or_else(|| tools().into_iter().find(|tool| tool.name == name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Box::pin(self.call(request, context)).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.handler.list_resources(request, context).await?;
        listed.resources.extend(content::resources());
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.handler.list_resource_templates(request, context).await?;
        listed.resource_templates.push(content::template());
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match content::read(&request.uri) {
            Some(read) => Ok(read.into()),
            None => self.handler.read_resource(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request)
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::default())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let found = self.handler.get_task(request, context).await?;
        Ok(asking::waiting(&self.client, found).await)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        asking::answer(&self.client, &request).await;
        self.handler.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.handler.cancel_task(request, context).await
    }
}
