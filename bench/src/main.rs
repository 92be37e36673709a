//! Measures homing against baselines in the same run.
//!
//! `cargo xtask bench` builds the release binary and calls this with its path. Absolute times move from machine to machine, so every
//! figure stands beside a baseline that was measured in the same run. A missed figure is printed, not failed; soak and sweep fail on a
//! violation, and `cargo xtask test` runs a short piece of each.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and waits in real time")]

mod adopt;
mod agents;
mod failures;
mod idle;
mod latency;
mod listing;
mod notices;
mod page;
mod panel;
mod peers;
mod pipeline;
mod race;
mod report;
mod soak;
mod submit;
mod sweep;
mod throughput;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result};
use homing_client::Client;
use homing_testkit::Home;

use crate::report::Report;

/// What one measurement works with.
pub(crate) struct Bench {
    program: PathBuf,
    runs: usize,
    /// All homes live until the end: a filesystem that has just freed thousands of inodes is slow to make new ones, and would charge one
    /// measurement for the clean-up after another.
    homes: RefCell<Vec<Rc<Home>>>,
}

impl Bench {
    /// A home of its own, with nothing running.
    fn fresh(&self) -> Rc<Home> {
        let home = Rc::new(Home::new(&self.program));
        self.homes.borrow_mut().push(Rc::clone(&home));
        home
    }

    /// A home of its own, with its daemon running.
    fn home(&self) -> Rc<Home> {
        let home = self.fresh();
        let _ = home.daemon_pid();
        home
    }

    /// This program, as a task that stamps the time of its end.
    fn stamper() -> Result<PathBuf> {
        std::env::current_exe().context("the benchmark's own path")
    }
}

fn client(home: &Home) -> Client {
    Client::new(home.path(), "bench")
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["stamp", file, millis] => latency::stamp(file, millis),
        ["soak", rest @ ..] => soak::main(rest),
        ["sweep", rest @ ..] => sweep::main(rest),
        ["race", rest @ ..] => race::main(rest),
        [program, only @ ..] => measure(program.as_ref(), only),
        [] => anyhow::bail!(
            "usage: homing-bench PATH-OF-HOMING [throughput|submit|latency|idle|list|output|notices|agents|adopt|panel|page]…"
        ),
    }
}

fn measure(program: &std::path::Path, only: &[&str]) -> Result<()> {
    let bench = Bench {
        program: program.canonicalize().context("the homing binary")?,
        runs: 3,
        homes: RefCell::default(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut report = Report::default();
    let wanted = |name: &str| only.is_empty() || only.contains(&name);
    let _enter = runtime.enter();
    if wanted("throughput") {
        throughput::measure(&bench, &runtime, &mut report)?;
    }
    if wanted("submit") {
        submit::measure(&bench, &mut report)?;
    }
    if wanted("latency") {
        latency::measure(&bench, &runtime, &mut report)?;
    }
    if wanted("idle") {
        idle::measure(&bench, &runtime, &mut report)?;
    }
    if wanted("list") {
        listing::measure(&bench, &runtime, &mut report)?;
    }
    if wanted("output") {
        pipeline::measure(&bench, &runtime, &mut report)?;
    }
    if wanted("notices") {
        notices::measure(&bench, &runtime, &mut report)?;
    }
    if wanted("agents") {
        agents::measure(&bench, &runtime, &mut report)?;
    }
    if wanted("adopt") {
        adopt::measure(&bench, &runtime, &mut report)?;
    }
    if wanted("panel") {
        panel::measure(&bench, &runtime, &mut report)?;
    }
    if wanted("page") {
        page::measure(&bench, &mut report)?;
    }
    report.print();
    Ok(())
}
