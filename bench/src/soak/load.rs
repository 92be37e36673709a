//! What the soak runs: tasks whose truth is known from their number alone.

use std::path::Path;
use std::sync::atomic::Ordering;

use homing_testkit::Random;
use serde_json::json;

use super::field::Field;
use super::story::{Plan, Run, Submit};

/// Whose tasks they are.
pub(crate) const OWNERS: [&str; 3] = ["ann", "bob", "eve"];

/// How often a request that was not answered is repeated.
const REPEATS: u32 = 40;

/// What a task of this number does: prints lines, waits, prints them again to the other stream, and ends with this code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    lines: u64,
    pause_ms: u64,
    code: u64,
    receiver: Option<u64>,
    hook: bool,
    owner: u64,
}

impl Script {
    pub(crate) fn of(number: u64) -> Self {
        let mut random = Random::new(number.wrapping_add(77));
        Self {
            lines: random.below(200),
            pause_ms: random.below(400),
            code: random.below(4),
            receiver: Some(random.below(6)),
            hook: random.below(5) == 0,
            owner: random.below(OWNERS.len() as u64),
        }
    }

    fn endpoint<'a>(&self, field: &'a Field) -> Option<&'a str> {
        field.receivers.endpoint(self.receiver?)
    }

    fn owner(&self) -> &'static str {
        usize::try_from(self.owner).ok().and_then(|at| OWNERS.get(at)).copied().unwrap_or("ann")
    }

    /// The shell line. It leaves marks of its own beside homing's books.
    fn line(&self, truth: &Path, number: u64) -> String {
        let file = truth.join(number.to_string());
        let Self { lines, pause_ms, code, .. } = self;
        format!(
            "t='{}'; echo \"$HOMING_ATTEMPT $$ $(date +%s%N)\" >> $t; seq 1 {lines}; sleep 0.{pause_ms:03}; \
             seq 1 {lines} >&2; echo \"$HOMING_ATTEMPT $(date +%s%N) {code} end\" >> $t; exit {code}",
            file.display()
        )
    }

    /// What must come of it.
    pub(crate) fn plan(&self, field: &Field) -> Plan {
        let lines: String = (1..=self.lines).map(|line| format!("{line}\n")).collect();
        Plan {
            code: self.code,
            prints: format!("{lines}{lines}").into_bytes(),
            webhook: self.endpoint(field).map(str::to_owned),
            hook: self.hook,
        }
    }

    fn targets(&self, field: &Field) -> Vec<String> {
        let mut targets = vec!["inbox".to_owned()];
        targets.extend(self.endpoint(field).map(str::to_owned));
        targets.extend(self.hook.then(|| hook(field)));
        targets
    }
}

/// A command that is told: busy for a third of its processes, else it keeps what it got.
fn hook(field: &Field) -> String {
    let folder = field.told.display();
    format!(
        "exec:d='{folder}'; cat > $d/part.$$; [ $(($$ % 3)) -ne 0 ] || exit 75; mv $d/part.$$ $d/told.$$.$(date +%s%N)"
    )
}

/// Submits one task after the other until it is over, by the command line or by HTTP.
pub(crate) fn submit(field: &Field, seed: u64) {
    let mut random = Random::new(seed);
    while !field.is_over() {
        let number = field.next.fetch_add(1, Ordering::Relaxed);
        let answers =
            if number.is_multiple_of(2) { by_command(field, number) } else { by_http(field, number) };
        field.story().submits.push(Submit { number, answers });
        field.pause(&mut random, 250);
    }
}

fn by_command(field: &Field, number: u64) -> Vec<String> {
    let script = Script::of(number);
    let label = format!("number={number}");
    let mut arguments = vec!["run", "--owner", script.owner(), "--label", &label];
    let targets = script.targets(field);
    for target in &targets {
        arguments.extend(["--notify", target]);
    }
    let line = script.line(&field.truth, number);
    arguments.extend(["-c", &line]);
    let output = field.home.cli(arguments);
    if output.code == 0 { vec![output.text()] } else { Vec::new() }
}

/// Repeats the request under its key until it is answered, and now and then once more.
fn by_http(field: &Field, number: u64) -> Vec<String> {
    let script = Script::of(number);
    let body = json!({
        "shell": script.line(&field.truth, number), "owner": script.owner(), "labels": { "number": number.to_string() },
        "notify": { "on": "always", "targets": script.targets(field) }, "cwd": field.truth,
    });
    let key = format!("soak-{number}");
    let mut answers = Vec::new();
    let mut random = Random::new(number);
    for _ in 0..REPEATS {
        let reply = field.ask_with("POST", "/v1/tasks", &[("idempotency-key", &key)], Some(&body));
        let answer: Option<serde_json::Value> = reply.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        answers.extend(answer.and_then(|task| Some(task["id"].as_str()?.to_owned())));
        if !answers.is_empty() && random.below(8) != 0 {
            break;
        }
        field.pause(&mut random, 50);
    }
    answers
}

/// What a task itself wrote.
pub(crate) fn runs(truth: &Path, number: u64) -> Vec<Run> {
    let text = std::fs::read_to_string(truth.join(number.to_string())).unwrap_or_default();
    let mut runs: Vec<Run> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        let attempt = u32::try_from(number(0)).unwrap_or(0);
        if words.last() == Some(&"end") {
            let run = runs.iter_mut().rev().find(|run| run.attempt == attempt);
            run.into_iter().for_each(|run| run.ended = Some((number(1), number(2))));
        } else {
            runs.push(Run {
                attempt,
                pid: u32::try_from(number(1)).unwrap_or(0),
                began: number(2),
                ended: None,
            });
        }
    }
    runs
}
