//! What is known of a route: enough to serve it, to check what is sent to it, and to describe it.

use std::future::Future;
use std::pin::Pin;

use homing_api::Problem;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::http::answer::Answer;
use crate::http::call::Call;

/// How an address is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Delete,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// Any of these, separated by commas.
    Words,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number in these bounds.
    Number { least: u64, most: u64 },
}

impl Kind {
    /// Any whole number.
    pub(crate) const ANY_NUMBER: Self = Self::Number { least: 0, most: u64::MAX };
}

/// One parameter of the query, or one header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// May be given more than once.
    pub(crate) repeated: bool,
    pub(crate) about: &'static str,
}

impl Parameter {
    pub(crate) const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, repeated: false, about }
    }

    pub(crate) const fn repeated(self) -> Self {
        Self { repeated: true, ..self }
    }
}

/// The schema of a type, as a reference into the document where it has a name.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub(crate) fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What is in a body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content {
    Json(SchemaOf),
    Problem,
    Bytes,
    /// Plain text.
    Text,
    /// JSON lines.
    Lines(SchemaOf),
    /// Server-sent events, by name.
    Events(&'static [(&'static str, SchemaOf)]),
    /// Text frames of a WebSocket, from the viewer and to it.
    Frames {
        taken: SchemaOf,
        given: SchemaOf,
    },
}

/// What a route takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) contents: &'static [Content],
    pub(crate) required: bool,
    /// In bytes.
    pub(crate) limit: usize,
}

/// What a route gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    pub(crate) status: u16,
    pub(crate) about: &'static str,
    pub(crate) contents: &'static [Content],
    /// Response headers and what they say.
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

impl Given {
    pub(crate) const fn new(status: u16, about: &'static str, contents: &'static [Content]) -> Self {
        Self { status, about, contents, headers: &[] }
    }
}

/// What serves a route.
pub(crate) type Handler = fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One route.
pub(crate) struct Route {
    pub(crate) verb: Verb,
    /// In the spelling that axum and OpenAPI share; `{ref}` is the only variable.
    pub(crate) path: &'static str,
    /// The name of the operation; unique.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) query: &'static [Parameter],
    pub(crate) headers: &'static [Parameter],
    pub(crate) takes: Option<Taken>,
    pub(crate) gives: &'static [Given],
    pub(crate) handler: Handler,
}

impl Content {
    /// Its media type.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Json(_) => "application/json",
            Self::Problem => "application/problem+json",
            Self::Bytes => "application/octet-stream",
            Self::Text => "text/plain",
            Self::Lines(_) => "application/x-ndjson",
            Self::Events(_) => "text/event-stream",
            Self::Frames { .. } => "application/json",
        }
    }

    /// The schema that every problem has.
    pub(crate) const PROBLEM: SchemaOf = schema::<Problem>;
}
