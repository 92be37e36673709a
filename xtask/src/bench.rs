//! Figures and wear, of the release binary. A short piece of the wear, of the debug binary, is one of the tests.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::{step, tools};

/// The short soak: two minutes, and the seed, always the same so that a failure can be had again.
const SHORT_SOAK: [&str; 3] = ["--minutes", "2", "7"];

/// The short sweep: system calls that are few in a task's life and each the edge of something durable or of a process.
const SHORT_SWEEP: [&str; 6] = ["mkdir", "socketpair", "fdatasync", "fallocate", "clone3", "linkat"];

/// The short sweep of failures: calls of launches and recoveries that are few, about 20 s.
const SHORT_FAILURES: [&str; 9] = [
    "failures",
    "accept4",
    "clone3",
    "fallocate",
    "fdatasync",
    "ftruncate",
    "mkdirat",
    "socketpair",
    "unlinkat",
];

/// A short soak and short sweeps, judged: an error if homing lost, doubled or made up anything.
pub(crate) fn short() -> Result<()> {
    // Built as the tests are, so that nothing is built twice.
    step::run(&mut step::cargo(&["build", "--workspace", "--bins", "--tests"]))?;
    let target = step::target()?.join("debug");
    let judge = |kind: &str, rest: &[&str]| {
        let mut bench = std::process::Command::new(target.join("homing-bench"));
        let status = step::status(bench.arg(kind).arg(target.join("homing")).args(rest))?;
        ensure!(status.success(), "the {kind} found a violation");
        Ok(())
    };
    judge("soak", &SHORT_SOAK)?;
    if tools::is_there("strace") {
        judge("sweep", &SHORT_SWEEP)?;
        judge("sweep", &SHORT_FAILURES)?;
    }
    Ok(())
}

/// Builds the release binaries and hands over to the benchmark's program.
fn hand_over(arguments: &[&str], rest: &[String]) -> Result<ExitCode> {
    // Each by itself: what one wants of a library the other would get too, and homing is to be the one that is installed.
    step::timed("release build", || {
        ["homing-bench", "homing"].iter().try_for_each(|package| {
            step::run(&mut step::cargo(&["build", "--release", "--package", package]))
        })
    })?;
    let target = step::target()?.join("release");
    let homing = target.join("homing");
    let mut bench = std::process::Command::new(target.join("homing-bench"));
    bench.args(arguments).arg(homing).args(rest);
    step::announce("measuring");
    let status = step::status(&mut bench)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `cargo xtask bench [throughput|submit|latency|idle|list|output|notices|agents|adopt|panel|page]…`.
pub(crate) fn run(rest: &[String]) -> Result<ExitCode> {
    hand_over(&[], rest)
}

/// `cargo xtask soak [KILLS | --minutes N | --webhooks ROUNDS | --events COUNT] [SEED]`.
pub(crate) fn soak(rest: &[String]) -> Result<ExitCode> {
    hand_over(&["soak"], rest)
}

/// `cargo xtask race [ROUNDS]`.
pub(crate) fn race(rest: &[String]) -> Result<ExitCode> {
    hand_over(&["race"], rest)
}

/// `cargo xtask sweep [CALL…]`.
pub(crate) fn sweep(rest: &[String]) -> Result<ExitCode> {
    hand_over(&["sweep"], rest)
}
