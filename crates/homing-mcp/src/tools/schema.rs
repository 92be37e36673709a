//! Schemas as clients and models can use them: standard words only, nothing twice.
//!
//! What Rust's types make of themselves has formats that no validator knows (`uint64`) and a null beside every optional field; some model APIs
//! refuse a tool for either.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// What a tool takes: a field that may be left out is not also null. The server still takes a null for it.
pub(super) fn of_input<T: JsonSchema>() -> JsonObject {
    let mut schema = raw::<T>(SchemaSettings::draft2020_12());
    schema.remove("title");
    schema.remove("description");
    plain(&mut schema);
    without_null(&mut schema);
    schema
}

/// What a tool gives: it explains itself, and the list of tools is paid for in every conversation. What is left out where there is nothing to
/// say is not required: clients check.
pub(super) fn of_output<T: JsonSchema>() -> JsonObject {
    let mut schema = raw::<T>(SchemaSettings::draft2020_12().for_serialize());
    plain(&mut schema);
    unexplained(&mut schema);
    schema
}

fn raw<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
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

/// Without formats that are only Rust's.
fn plain(schema: &mut JsonObject) {
    let foreign = |value: &Value| {
        value.as_str().is_some_and(|format| {
            ["uint", "int", "double", "float"].iter().any(|own| format.starts_with(own))
        })
    };
    // A field may have this name, and its schema is an object; a format is a text.
    schema.retain(|name, value| !(name == "format" && foreign(value)));
    each(schema, plain);
}

fn unexplained(schema: &mut JsonObject) {
    schema.retain(|name, value| !(matches!(name.as_str(), "description" | "title") && value.is_string()));
    each(schema, unexplained);
}

fn without_null(schema: &mut JsonObject) {
    if schema.get("default") == Some(&Value::Null) {
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
            let only = only.clone();
            schema.remove("anyOf");
            schema.extend(only);
        }
    }
    each(schema, without_null);
}
