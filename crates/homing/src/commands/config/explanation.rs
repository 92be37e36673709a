//! `homing config explain`: what a key means, what it is by default, and what is in force.

use std::path::Path;

use homing_api::{Code, Problem};
use homing_engine::config::manual::{self, Key, SECTIONS, Section};
use homing_model::slip;
use serde_json::json;

use super::{InForce, ask, last_good, next};
use crate::cli::context::Context;
use crate::cli::entry;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::options::configuration;
use crate::render::columns;

/// Explains a key, or every key of a section.
pub(super) fn run(name: &str, path: &Path, context: &Context) -> Result<u8, Failure> {
    let name = name.trim_matches(['[', ']']);
    let asked: Vec<(&Section, &Key)> = match SECTIONS.iter().find(|section| section.name == name) {
        Some(section) => section.keys.iter().map(|key| (section, key)).collect(),
        None => vec![manual::find(name).ok_or_else(|| unknown(name))?],
    };
    let in_force = match (ask(context)?, entry::configuration(path)) {
        (Some(told), _) => told,
        (None, Ok(config)) => next(config, path, context),
        (None, Err(problem)) => last_good(context).ok_or(problem)?,
    };
    if context.json {
        let items: Vec<_> = asked.iter().map(|(section, key)| described(section, key, &in_force)).collect();
        context.console.json(&json!({ "items": items }))?;
        return Ok(exit_code::DONE);
    }
    let width = context.console.width.unwrap_or(100).min(100);
    // What a key says is said within its section, and alone it may be no sentence at all.
    if let Some((section, _)) = asked.first() {
        let mut lines = vec![format!("[{}]", section.name)];
        lines.extend(columns::wrap(section.about, width));
        context.console.line(&lines.join("\n"))?;
    }
    for (section, key) in &asked {
        let mut lines = vec![format!("{}.{}", section.name, key.name)];
        lines.extend(columns::wrap(key.about, width));
        lines.extend(columns::wrap(&standing(section, key, &in_force), width));
        context.console.line(&format!("\n{}", lines.join("\n")))?;
    }
    Ok(exit_code::DONE)
}

fn value(section: &Section, key: &Key, in_force: &InForce) -> Option<String> {
    let values = configuration::values(&in_force.config);
    values.get(&format!("{}.{}", section.name, key.name)).map(ToString::to_string)
}

fn standing(section: &Section, key: &Key, in_force: &InForce) -> String {
    let default = manual::default_of(section.name, key.name);
    let now = value(section, key, in_force);
    let default_text = match (&default, key.example) {
        (Some(default), _) => format!("default {default}"),
        (None, Some(example)) => format!("no default, for instance {example}"),
        (None, None) => "no default".to_owned(),
    };
    match now {
        Some(now) if Some(&now) == default.as_ref() => format!("{default_text}, which is in force"),
        Some(now) => format!("{default_text}; {now} is in force"),
        None => default_text,
    }
}

fn described(section: &Section, key: &Key, in_force: &InForce) -> serde_json::Value {
    json!({
        "key": format!("{}.{}", section.name, key.name), "about": key.about,
        "default": manual::default_of(section.name, key.name), "example": key.example,
        "in_force": value(section, key, in_force),
    })
}

fn unknown(name: &str) -> Problem {
    let all: Vec<_> = SECTIONS
        .iter()
        .flat_map(|section| section.keys.iter().map(move |key| format!("{}.{}", section.name, key.name)))
        .collect();
    let meant =
        slip::meant(name, all.iter().map(String::as_str).chain(SECTIONS.iter().map(|section| section.name)));
    let mut problem = Problem::new(Code::InvalidRequest, format!("there is no key `{name}`{meant}"));
    problem.advice = "`homing config default` shows every key.".to_owned();
    problem
}
