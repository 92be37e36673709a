//! What a tool gives back: the same facts twice, as data and as a short text, since some clients show a model the one and some the other.

use homing_model::TaskId;
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde::Serialize;
use serde_json::Value;

use crate::resources;
use crate::summary::NOTE;

/// No result of a tool is larger, in bytes of JSON.
pub const LARGEST: usize = 128 * 1024;

/// A result under construction.
#[derive(Debug)]
pub(crate) struct Reply {
    text: String,
    data: Value,
    links: Vec<Resource>,
    failed: bool,
}

impl Reply {
    /// These facts, and these words.
    pub(crate) fn new(text: String, data: &impl Serialize) -> Self {
        // Plain structures of texts and numbers: there is nothing in them that JSON lacks.
        let data = serde_json::to_value(data).unwrap_or_default();
        Self { text, data, links: Vec::new(), failed: false }
    }

    /// With a note beside the summaries of tasks in the data, which some clients show a model without the text. No schema names it: the list
    /// of tools is paid for in every conversation.
    pub(crate) fn noted(mut self) -> Self {
        if let Some(fields) = self.data.as_object_mut() {
            fields.insert("note".to_owned(), NOTE.into());
        }
        self
    }

    /// With a link to all that the task printed.
    pub(crate) fn linked(mut self, task: &TaskId) -> Self {
        self.links.push(resources::output(task));
        self
    }

    /// What was run did not succeed. The facts are no less true for that.
    pub(crate) fn failed(self, failed: bool) -> Self {
        Self { failed, ..self }
    }
}

impl From<Reply> for CallToolResult {
    fn from(reply: Reply) -> Self {
        let mut content = vec![ContentBlock::text(reply.text)];
        content.extend(reply.links.into_iter().map(ContentBlock::resource_link));
        let mut result = if reply.failed { Self::error(content) } else { Self::success(content) };
        result.structured_content = Some(reply.data);
        result
    }
}
