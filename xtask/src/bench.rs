//! Figures and wear: all of it runs the release binary, and none of it is a test.

use std::process::ExitCode;

use anyhow::Result;

use crate::step;

/// Builds the release binaries and hands over to the benchmark's program.
fn hand_over(arguments: &[&str], rest: &[String]) -> Result<ExitCode> {
    let build = ["build", "--release", "--package", "homing", "--package", "homing-bench"];
    step::timed("release build", || step::run(&mut step::cargo(&build)))?;
    let target = step::target()?.join("release");
    let homing = target.join("homing");
    let mut bench = std::process::Command::new(target.join("homing-bench"));
    bench.args(arguments).arg(homing).args(rest);
    step::announce("measuring");
    let status = step::status(&mut bench)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `cargo xtask bench [throughput|submit|latency|idle|list|output|adopt]…`.
pub(crate) fn run(rest: &[String]) -> Result<ExitCode> {
    hand_over(&[], rest)
}

/// `cargo xtask soak [KILLS [SEED]]`.
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
