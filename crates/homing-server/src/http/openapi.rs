//! The OpenAPI 3.1 document, made of the table of routes and the types' own schemas.

use std::sync::LazyLock;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::http::route::{Content, Given, Kind, Parameter, Route, Taken, Verb};
use crate::http::route_table::ROUTES;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
    text.push('\n');
    text
});

/// The document, always in the same order. `docs/openapi.json` is this text.
#[must_use]
pub fn openapi_json() -> &'static str {
    &DOCUMENT
}

/// Bodies are described as they are read, answers as they are written: what is optional in one is always there in the other.
struct Schemas {
    taken: SchemaGenerator,
    given: SchemaGenerator,
}

fn document() -> Value {
    let settings = || {
        SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
    };
    let mut schemas = Schemas {
        taken: settings().for_deserialize().into_generator(),
        given: settings().for_serialize().into_generator(),
    };
    let mut paths = Map::new();
    for route in ROUTES {
        let verb = match route.verb {
            Verb::Get => "get",
            Verb::Post => "post",
            Verb::Delete => "delete",
        };
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[verb] = operation(route, &mut schemas);
    }
    let mut components = schemas.given.take_definitions(true);
    components.extend(schemas.taken.take_definitions(true));
    components.sort_keys();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "homing",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Runs commands in the background and brings every result home.",
            "description": "Served on the Unix socket `homing.sock` in the home. Every error is `application/problem+json` with a stable `code`; unknown fields and parameters are refused by name. Objects only ever grow. Only what cannot be read as HTTP at all has an answer without a body: 400, 414 for an address beyond 64 KiB, 431 for a head beyond 96 KiB; the connection is closed then.",
            "license": { "name": "MIT OR Apache-2.0" }
        },
        "servers": [{ "url": "http://homing", "description": "Over the Unix socket; the host name is not looked at." }],
        "paths": paths,
        "components": { "schemas": components }
    })
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut parameters: Vec<_> = Vec::new();
    let named = [
        ("ref", "An id, a unique start of one, a name that is unique among live tasks, or `@last`."),
        ("owner", "Whose inbox."),
        ("id", "The id of a delivery; or a task, for all of its; or a state, for all in it."),
    ];
    for (name, about) in named {
        if route.path.contains(&format!("{{{name}}}")) {
            parameters.push(json!({
                "name": name, "in": "path", "required": true, "schema": { "type": "string" },
                "description": about
            }));
        }
    }
    parameters.extend(route.query.iter().map(|parameter| described("query", parameter)));
    parameters.extend(route.headers.iter().map(|parameter| described("header", parameter)));
    let mut operation = json!({ "operationId": route.name, "summary": route.about });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(Taken { contents, required, .. }) = route.takes {
        operation["requestBody"] =
            json!({ "required": required, "content": content(contents, &mut schemas.taken) });
    }
    let mut responses = Map::new();
    for given in route.gives {
        responses.insert(given.status.to_string(), response(given, &mut schemas.given));
    }
    let refused = Given::new(0, "Refused, with a code and what to do next.", &[Content::Problem]);
    responses.insert("default".to_owned(), response(&refused, &mut schemas.given));
    operation["responses"] = responses.into();
    operation
}

fn response(given: &Given, generator: &mut SchemaGenerator) -> Value {
    let mut response = json!({ "description": given.about, "content": content(given.contents, generator) });
    for (name, about) in given.headers {
        response["headers"][*name] = json!({ "description": about, "schema": { "type": "string" } });
    }
    response
}

fn content(contents: &[Content], generator: &mut SchemaGenerator) -> Value {
    let mut media = Map::new();
    for content in contents {
        let described = match content {
            Content::Json(schema) | Content::Lines(schema) => json!({ "schema": schema(generator) }),
            Content::Problem => json!({ "schema": Content::PROBLEM(generator) }),
            Content::Frames { taken, given } => {
                json!({ "x-frames": { "sent": taken(generator), "received": given(generator) } })
            }
            // OpenAPI 3.1: no schema means any bytes.
            Content::Bytes => json!({}),
            Content::Text => json!({ "schema": { "type": "string" } }),
            Content::Events(events) => {
                let events: Map<_, _> = events
                    .iter()
                    .map(|(name, schema)| ((*name).to_owned(), schema(generator).to_value()))
                    .collect();
                json!({ "schema": { "type": "string" }, "x-events": events })
            }
        };
        media.insert(content.media_type().to_owned(), described);
    }
    media.into()
}

fn described(place: &str, parameter: &Parameter) -> Value {
    let schema = match parameter.kind {
        Kind::Text | Kind::Words if parameter.repeated => {
            json!({ "type": "array", "items": { "type": "string" } })
        }
        Kind::Text | Kind::Words => json!({ "type": "string" }),
        Kind::OneOf(words) => json!({ "type": "string", "enum": words }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Number { least, most: u64::MAX } => json!({ "type": "integer", "minimum": least }),
        Kind::Number { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
    };
    json!({ "name": parameter.name, "in": place, "description": parameter.about, "schema": schema })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn the_committed_document_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == openapi_json(),
            "docs/openapi.json is out of date: write `openapi_json()` to it"
        );
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 20);
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn every_variable_of_a_path_is_declared_and_every_operation_has_its_own_name() {
        let document = document();
        let mut names = HashSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{operation}");
                assert!(operation["responses"].as_object().unwrap().len() > 1);
                let declared = |parameter: &&Value| parameter["in"] == "path";
                let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
                let declared: Vec<_> =
                    parameters.iter().filter(declared).map(|found| found["name"].as_str()).collect();
                let variables: Vec<_> = path.split(['{', '}']).skip(1).step_by(2).map(Some).collect();
                assert_eq!(declared, variables, "{path}");
            }
        }
        assert_eq!(names.len(), ROUTES.len());
    }

    #[test]
    fn a_type_that_is_read_and_written_is_described_once() {
        let mut schemas = Vec::new();
        for serialize in [true, false] {
            let settings = SchemaSettings::draft2020_12();
            let settings = if serialize { settings.for_serialize() } else { settings.for_deserialize() };
            let mut generator = settings.into_generator();
            for route in ROUTES {
                let contents = route.gives.iter().flat_map(|given| given.contents);
                if serialize {
                    content(&contents.copied().collect::<Vec<_>>(), &mut generator);
                } else if let Some(taken) = route.takes {
                    content(taken.contents, &mut generator);
                }
            }
            schemas.push(generator.take_definitions(true));
        }
        for (name, schema) in &schemas[0] {
            assert!(schemas[1].get(name).is_none_or(|other| other == schema), "{name}");
        }
    }
}
