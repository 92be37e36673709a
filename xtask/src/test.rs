//! `cargo xtask test`: everything that has to hold before a change goes in.
//!
//! The cheap checks come first, the tests last, so that what the test runner says is the last thing on the screen.

use std::process::ExitCode;

use anyhow::Result;

use crate::{bench, deny, generate, step, tools, verifiers};

/// Arguments are passed on to `cargo test`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    step::timed("tools", || {
        tools::provide();
        verifiers::provide_all()
    })?;
    step::timed("cargo fmt", || step::run(&mut step::cargo(&["fmt", "--all", "--check"])))?;
    step::timed("cargo clippy", || {
        let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        step::run(&mut step::cargo(&lints))
    })?;
    step::timed("dependencies", deny::check)?;
    step::timed("generated files", generate::check)?;
    // Who names tests wants those.
    if arguments.is_empty() {
        step::timed("short soak and sweep", bench::short)?;
    }
    step::announce("cargo test");
    let mut tests = step::cargo(&["test", "--workspace", "--no-fail-fast"]);
    if !step::is_set("RUST_TEST_THREADS") {
        // Most tests wait for processes most of the time.
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        tests.env("RUST_TEST_THREADS", (2 * cores).to_string());
    }
    let status = step::status(tests.args(arguments))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
