//! Fixed texts, pictures and sounds.

use rmcp::model::{ContentBlock, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

/// One red pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// No sound at all.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// The content that a tool of this name returns.
pub(crate) fn of(tool: &str) -> Option<Vec<ContentBlock>> {
    let embedded = |uri: &str, mime: &str, text: &str| {
        ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime))
    };
    Some(match tool {
        "test_image_content" => vec![ContentBlock::image(PNG, "image/png")],
        "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
        "test_embedded_resource" => {
            vec![embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PNG, "image/png"),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ],
        _ => return None,
    })
}

pub(crate) fn resources() -> Vec<Resource> {
    let one = |uri: &str, name: &str, mime: &str| {
        Resource::new(uri, name).with_description("A fixture of the conformance suite").with_mime_type(mime)
    };
    vec![
        one("test://static-text", "static-text", "text/plain"),
        one("test://static-binary", "static-binary", "image/png"),
    ]
}

pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new("test://template/{id}/data", "template")
        .with_description("A fixture of the conformance suite")
        .with_mime_type("application/json")
}

pub(crate) fn read(uri: &str) -> Option<ReadResourceResult> {
    let contents = match uri {
        "test://static-text" => {
            ResourceContents::text("This is the content of the static text resource.", uri)
        }
        "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
        }
    };
    Some(ReadResourceResult::new(vec![contents]))
}

/// A schema with all that JSON Schema 2020-12 allows.
pub(crate) fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": { "$anchor": "addressDef", "type": "object", "properties": {
            "street": { "type": "string" }, "city": { "type": "string" } } } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// A schema with a field that is repeated in a header.
pub(crate) fn header_schema() -> Value {
    json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } })
}
