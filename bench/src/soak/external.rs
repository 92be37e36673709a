//! What somebody else runs: tracked by a lease or by a process, heard of or not, and completed by more than one who all believe to be first.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use homing_testkit::Random;
use serde_json::{Value, json};

use super::field::Field;
use super::load::{EXTERNAL, OWNERS, Script, repeated};
use super::story::{External, Submit, now};

/// The lease of those that are heard of.
const LEASE_MS: u64 = 4_000;

/// Begins one after the other until it is over.
pub(crate) fn track(field: &Field, seed: u64, next: &AtomicU64) {
    let mut random = Random::new(seed);
    while !field.is_over() {
        let number = EXTERNAL + next.fetch_add(1, Ordering::Relaxed);
        one(field, number, &mut random);
        field.pause(&mut random, 400);
    }
}

fn one(field: &Field, number: u64, random: &mut Random) {
    let owner = Script::of(number).plan(field).owner;
    let mut body = json!({
        "kind": "external", "owner": owner, "labels": { "number": number.to_string() },
        "notify": { "on": "always", "targets": ["inbox"] },
    });
    let kind = random.below(4);
    let process = (kind == 0).then(|| {
        let time = format!("0.{:03}", random.below(999));
        Command::new("sleep").arg(time).stdin(Stdio::null()).spawn().ok()
    });
    let mut process = process.flatten();
    match &process {
        Some(child) => body["pid"] = child.id().into(),
        None => body["lease_ms"] = if kind == 1 { 300 + random.below(300) } else { LEASE_MS }.into(),
    }
    // Its lease runs from before the answer to its submit.
    let began = now();
    let answers = repeated(field, number, &body);
    let id = answers.first().cloned();
    field.story().submits.push(Submit { number, answers });
    // Where no answer came nobody knows its id: whether it was accepted or not, nothing is said of it any more.
    let may_be_lost = kind < 2 || id.is_none();
    field.story().externals.insert(number, External { may_be_lost, ..External::default() });
    if let Some(id) = id.filter(|_| kind > 1) {
        complete(field, number, (&id, began), &owner, random);
    }
    if let Some(child) = &mut process {
        let _ = child.wait();
    }
}

/// Lets it be heard of for a while; then several complete it at once.
fn complete(field: &Field, number: u64, (id, began): (&str, u64), owner: &str, random: &mut Random) {
    let headers = [("homing-owner", owner)];
    let (mut heard, mut silence) = (began, 0);
    for _ in 0..random.below(5) {
        field.pause(random, 300);
        let target = format!("/v1/tasks/{id}/heartbeat");
        if field.ask_with("POST", &target, &headers, Some(&json!({}))).is_some() {
            silence = silence.max(now() - heard);
            heard = now();
        }
    }
    let stranger = OWNERS.iter().find(|other| **other != owner).copied().unwrap_or("mallory");
    let by_stranger = say(field, id, stranger, "stolen").is_some();
    let mut said: Vec<(String, Option<bool>)> = Vec::new();
    std::thread::scope(|scope| {
        let rivals: Vec<_> = (0..3)
            .map(|rival| {
                let answer = format!("{number} by {rival}");
                scope.spawn(move || (answer.clone(), say(field, id, owner, &answer)))
            })
            .collect();
        said.extend(rivals.into_iter().filter_map(|rival| rival.join().ok()));
    });
    // Whoever was not answered asks again, until somebody is: one of them counts in the end.
    while said.iter().all(|(_, answer)| answer.is_none()) && !field.is_over() {
        field.pause(random, 100);
        let answer = format!("{number} later {}", said.len());
        let done = say(field, id, owner, &answer);
        said.push((answer, done));
    }
    silence = silence.max(now() - heard);
    let unsaid = said.iter().all(|(_, answer)| answer.is_none());
    let mut story = field.story();
    let external = story.externals.entry(number).or_default();
    external.completions = said;
    external.by_stranger = by_stranger;
    external.may_be_lost = unsaid || silence / 1_000_000 > LEASE_MS / 2;
}

/// Whether this completion counted; nothing if no answer came, or it was refused.
fn say(field: &Field, id: &str, owner: &str, answer: &str) -> Option<bool> {
    let target = format!("/v1/tasks/{id}/complete");
    let reply =
        field.ask_with("POST", &target, &[("homing-owner", owner)], Some(&json!({ "answer": answer })))?;
    let reply: Value = serde_json::from_slice(&reply).ok()?;
    reply["completed"].as_bool()
}
