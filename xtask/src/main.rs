//! `cargo xtask TASK`: what the project does to itself. One file per task; this one only finds it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "telling a person what happens is what xtask is for"
)]

mod agents;
mod bench;
mod deny;
mod dist;
mod generate;
mod guarantees;
#[cfg(test)]
mod layers;
mod packages;
mod record;
mod step;
mod test;
mod tools;
mod verifiers;

use std::process::ExitCode;

use anyhow::Result;

/// One task: its name, what it is for, and what does it with the rest of the command line.
struct Task {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<ExitCode>,
}

const TASKS: &[Task] = &[
    Task {
        name: "test",
        about: "formatting, lints, dependencies, generated files, a short soak and sweep, all tests",
        run: test::run,
    },
    Task {
        name: "generate",
        about: "write what docs/ says of the code: openapi.json, api.md, errors.md, cli.md, man/, the lists in guarantees.md",
        run: generate::run,
    },
    Task {
        name: "record",
        about: "run the samples of the book and write down what they print: README.md, docs/, docs/session.svg",
        run: record::run,
    },
    Task { name: "bench", about: "figures against baselines in the same run, as one table", run: bench::run },
    Task {
        name: "soak",
        about: "random `kill -9`, 500 times, as many as asked or for `--minutes N`, then a check of the history; \
                `--webhooks 200` and `--events 10000` do one thing only",
        run: bench::soak,
    },
    Task {
        name: "deny",
        about: "licences, bans and sources of all dependencies, by deny.toml; `--advisories` checks those instead",
        run: deny::run,
    },
    Task {
        name: "dist",
        about: "a Debian package, a tarball and their checksums in target/dist/out, tried; `--binary PATH` packs that \
                program, `--check-reproducible` builds twice and compares",
        run: dist::run,
    },
    Task { name: "race", about: "stop against the natural end, a thousand times", run: bench::race },
    Task {
        name: "sweep",
        about: "`kill -9` at every interesting system call of a task's life; `failures` lets the calls fail instead",
        run: bench::sweep,
    },
    Task {
        name: "agents",
        about: "the real agent programs, from npm, against a scripted model: `claude`, `codex`, `gemini`, `opencode` or all",
        run: agents::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        return usage(None);
    };
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        return usage(Some(name));
    };
    (task.run)(rest).unwrap_or_else(|error| {
        eprintln!("\nxtask: {error:#}");
        ExitCode::FAILURE
    })
}

fn usage(unknown: Option<&str>) -> ExitCode {
    if let Some(name) = unknown {
        eprintln!("xtask: there is no task `{name}`\n");
    }
    eprintln!("Usage: cargo xtask TASK\n");
    for task in TASKS {
        eprintln!("  {:<10} {}", task.name, task.about);
    }
    ExitCode::from(2)
}
