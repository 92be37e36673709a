//! What the soak runs: tasks whose truth is known from their number alone.

use std::path::Path;
use std::sync::atomic::Ordering;

use homing_testkit::Random;
use serde_json::{Value, json};

use super::field::Field;
use super::story::{Plan, Run, Submit};

/// Whose tasks they are, where no session of an agent submits.
pub(crate) const OWNERS: [&str; 3] = ["ann", "bob", "eve"];
/// From here on: what tasks submit from inside.
pub(crate) const NESTED: u64 = 1_000_000;
/// What somebody else runs.
pub(crate) const EXTERNAL: u64 = 2_000_000;
/// What sessions submit: so many numbers for each.
pub(crate) const SESSIONS: u64 = 3_000_000;
pub(crate) const EACH: u64 = 1_000_000;
/// What the watch of a watched task looks for.
const WATCHED: &str = "^hit";
/// How often a request that was not answered is repeated.
const REPEATS: u32 = 40;

/// What kind of work a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Plain,
    /// So many of its lines are watched for.
    Watched(u64),
    /// It submits another from inside.
    Nests,
    /// A sub-agent answers.
    Asks,
}

/// What a task of this number does: prints lines, waits, prints them again to the other stream, and ends with this code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    number: u64,
    work: Work,
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
        let mut script = Self {
            number,
            work: Work::Plain,
            lines: random.below(200),
            pause_ms: random.below(400),
            code: random.below(4),
            receiver: Some(random.below(6)),
            hook: random.below(5) == 0,
            owner: random.below(OWNERS.len() as u64),
        };
        if number >= NESTED {
            (script.receiver, script.hook) = (None, false);
        }
        script.work = match (number, random.below(12)) {
            (NESTED..SESSIONS, _) => Work::Plain,
            (_, 0..=2) => Work::Watched(random.below(9)),
            (..NESTED, 3 | 4) => Work::Nests,
            (..NESTED, 5 | 6) => Work::Asks,
            _ => Work::Plain,
        };
        script
    }

    fn endpoint<'a>(&self, field: &'a Field) -> Option<&'a str> {
        field.receivers.endpoint(self.receiver?)
    }

    /// Whose it is. What a task submits from inside is its owner's.
    fn owner(&self, field: &Field) -> String {
        if let Some(session) = self.number.checked_sub(SESSIONS) {
            return field.sessions.owner(session / EACH).to_owned();
        }
        let outer = Self::of(self.number % NESTED).owner;
        let at = if (NESTED..EXTERNAL).contains(&self.number) { outer } else { self.owner };
        usize::try_from(at).ok().and_then(|at| OWNERS.get(at)).copied().unwrap_or("ann").to_owned()
    }

    /// The shell line. It leaves marks of its own beside homing's books.
    pub(crate) fn line(&self, field: &Field) -> String {
        let Self { number, lines, pause_ms, code, .. } = self;
        let extra = match self.work {
            Work::Watched(hits) => format!("for i in $(seq 1 {hits}); do echo hit $i; sleep 0.04; done; "),
            Work::Nests => {
                let inner = Self::of(NESTED + number);
                // Its quotes go through one more shell.
                let line = inner.line(field).replace('\'', r"'\''");
                format!(
                    "'{}' run --label number={} -c '{line}' > $t.inner 2> $t.refused; ",
                    field.home.program().display(),
                    inner.number
                )
            }
            Work::Plain | Work::Asks => String::new(),
        };
        format!(
            "t='{}'; echo \"$HOMING_ATTEMPT $$ $(date +%s%N)\" >> $t; {extra}seq 1 {lines}; sleep 0.{pause_ms:03}; \
             seq 1 {lines} >&2; echo \"$HOMING_ATTEMPT $(date +%s%N) {code} end\" >> $t; exit {code}",
            field.truth.join(number.to_string()).display()
        )
    }

    /// What the agent that is asked is told; [`super::stand_ins`] knows what to do with it.
    fn prompt(&self) -> String {
        format!("{} {} 0.{:03}", self.number, self.code, self.pause_ms)
    }

    fn answer(&self) -> Option<String> {
        (self.work == Work::Asks).then(|| format!("answer of {}", self.number))
    }

    fn prints(&self) -> Vec<u8> {
        let number = self.number;
        let lines: String = (1..=self.lines).map(|line| format!("{line}\n")).collect();
        match self.work {
            Work::Asks => format!(
                "{{\"session_id\":\"s-{number}\"}}\n{{\"result\":\"part of {number}\"}}\n{{\"result\":\"answer of {number}\"}}\n{{\"result\":\"hal"
            )
            .into_bytes(),
            Work::Watched(hits) => {
                let hits: String = (1..=hits).map(|hit| format!("hit {hit}\n")).collect();
                format!("{hits}{lines}{lines}").into_bytes()
            }
            Work::Plain | Work::Nests => format!("{lines}{lines}").into_bytes(),
        }
    }

    /// What must come of it.
    pub(crate) fn plan(&self, field: &Field) -> Plan {
        let external = (EXTERNAL..SESSIONS).contains(&self.number);
        let session = self.number.checked_sub(SESSIONS);
        Plan {
            code: self.code,
            prints: if external { Vec::new() } else { self.prints() },
            webhook: self.endpoint(field).map(str::to_owned),
            hook: self.hook,
            wake: session.and_then(|session| field.sessions.wake(session / EACH)),
            owner: self.owner(field),
            hits: match self.work {
                Work::Watched(hits) => Some(hits),
                Work::Plain | Work::Nests | Work::Asks => None,
            },
            answer: self.answer(),
            external,
        }
    }

    fn targets(&self, field: &Field) -> Vec<String> {
        let mut targets = vec!["inbox".to_owned()];
        targets.extend(self.endpoint(field).map(str::to_owned));
        targets.extend(self.hook.then(|| hook(field)));
        targets
    }

    /// What the command line is told of what is watched.
    pub(crate) fn watches(&self) -> &'static [&'static str] {
        match self.work {
            Work::Watched(_) => &["--watch", WATCHED, "--heartbeat", "100ms"],
            Work::Plain | Work::Nests | Work::Asks => &[],
        }
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
    let (label, owner) = (format!("number={number}"), script.owner(field));
    let asks = script.work == Work::Asks;
    let mut arguments = if asks { vec!["ask", "--agent", "stand"] } else { vec!["run"] };
    arguments.extend(["--owner", &owner, "--label", &label]);
    arguments.extend(script.watches());
    let targets = script.targets(field);
    for target in &targets {
        arguments.extend(["--notify", target]);
    }
    let said = if asks { script.prompt() } else { script.line(field) };
    if !asks {
        arguments.push("-c");
    }
    arguments.push(&said);
    let output = field.home.cli(arguments);
    if output.code == 0 { vec![output.text()] } else { Vec::new() }
}

/// Repeats the request under its key until it is answered, and now and then once more.
fn by_http(field: &Field, number: u64) -> Vec<String> {
    let script = Script::of(number);
    let mut body = json!({
        "owner": script.owner(field), "labels": { "number": number.to_string() }, "cwd": field.truth,
        "notify": { "on": "always", "targets": script.targets(field) },
    });
    match script.work {
        Work::Asks => {
            body["kind"] = "agent".into();
            (body["agent"], body["prompt"]) = ("stand".into(), script.prompt().into());
        }
        Work::Watched(_) => {
            (body["watch"], body["heartbeat_ms"]) = (json!([WATCHED]), 100.into());
            body["shell"] = script.line(field).into();
        }
        Work::Plain | Work::Nests => {
            body["shell"] = script.line(field).into();
            // As the command line would: homing is called from inside, for this home.
            body["env"] = json!({ "HOMING_HOME": field.home.path(), "PATH": "/usr/local/bin:/usr/bin:/bin" });
        }
    }
    repeated(field, number, &body)
}

/// One request under one key until it is answered; all the ids that it was answered with.
pub(crate) fn repeated(field: &Field, number: u64, body: &Value) -> Vec<String> {
    let key = format!("soak-{number}");
    let mut answers = Vec::new();
    let mut random = Random::new(number);
    for _ in 0..REPEATS {
        let reply = field.ask_with("POST", "/v1/tasks", &[("idempotency-key", &key)], Some(body));
        let answer: Option<Value> = reply.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        answers.extend(answer.and_then(|task| Some(task["id"].as_str()?.to_owned())));
        if !answers.is_empty() && random.below(8) != 0 {
            break;
        }
        field.pause(&mut random, 50);
    }
    answers
}

/// What tasks submitted from inside: asked for by every run that got so far, and answered where it says so.
pub(crate) fn nested(truth: &Path, number: u64) -> Option<Submit> {
    let answer = std::fs::read_to_string(truth.join(format!("{number}.inner"))).ok()?;
    let answers = answer.lines().filter(|line| line.starts_with("t-")).map(|line| line.trim().to_owned());
    Some(Submit { number: NESTED + number, answers: answers.collect() })
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
