//! Schemas as clients and models can use them: standard words only, and as few as possible, since the list of tools is paid for in every
//! conversation.
//!
//! What Rust's types make of themselves has formats that no validator knows (`uint64`) and a null beside every optional field; some model APIs
//! refuse a tool for either. What says nothing (the dialect that MCP assumes anyway, a minimum or default of 0, a default of false, a full
//! stop) is left out.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// What a tool takes: a field that may be left out is not also null. The server still takes a null for it.
pub(super) fn of_input<T: JsonSchema>() -> JsonObject {
    without_noise(raw::<T>(SchemaSettings::draft2020_12()))
}

/// What a tool gives: its fields and what kind of value each has. Results explain themselves, so the fields of the fields are not listed.
/// What is left out where there is nothing to say is not required: clients check.
pub(super) fn of_output<T: JsonSchema>() -> JsonObject {
    let mut schema = without_noise(raw::<T>(SchemaSettings::draft2020_12().for_serialize()));
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for field in fields.values_mut() {
            let kind = field.get("type").cloned().unwrap_or_else(|| "object".into());
            *field = json!({ "type": kind });
        }
    }
    schema
}

fn without_noise(mut schema: JsonObject) -> JsonObject {
    // Those of the type: the tool has its own.
    schema.remove("title");
    schema.remove("description");
    plain(&mut schema);
    without_null(&mut schema);
    schema
}

fn raw<T: JsonSchema>(mut settings: SchemaSettings) -> JsonObject {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    match settings.into_generator().into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => schema,
        // A schema that allows or forbids everything; none of ours does.
        _ => JsonObject::new(),
    }
}

fn each(schema: &mut JsonObject, change: fn(&mut JsonObject)) {
    fn within(value: &mut Value, change: fn(&mut JsonObject)) {
        match value {
            Value::Object(object) => change(object),
            Value::Array(items) => items.iter_mut().for_each(|item| within(item, change)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    schema.values_mut().for_each(|value| within(value, change));
}

/// Without formats that are only Rust's, and without what says nothing.
fn plain(schema: &mut JsonObject) {
    let foreign = |value: &Value| {
        value.as_str().is_some_and(|format| {
            ["uint", "int", "double", "float"].iter().any(|own| format.starts_with(own))
        })
    };
    // A field may have one of these names, and its schema is an object.
    schema.retain(|name, value| match name.as_str() {
        "format" => !foreign(value),
        "minimum" => value.as_u64() != Some(0),
        "default" => !matches!(value, Value::Bool(false)) && value.as_u64() != Some(0),
        _ => true,
    });
    if let Some(Value::String(text)) = schema.get_mut("description") {
        text.truncate(text.trim_end_matches('.').len());
    }
    each(schema, plain);
}

fn without_null(schema: &mut JsonObject) {
    if schema
        .get("default")
        .is_some_and(|value| value.is_null() || *value == json!([]) || *value == json!(""))
    {
        schema.remove("default");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let mut only = only.clone();
            // The field's own description, not that of its type.
            only.remove("description");
            schema.remove("anyOf");
            schema.extend(only);
        }
    }
    each(schema, without_null);
}
