//! `cargo xtask test`: everything that has to hold before a change goes in.
//!
//! The cheap checks come first, the tests last, so that what the test runner says is the last thing on the screen.

use std::process::{Command, ExitCode, Stdio};

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
    let mut tests = heedful(step::cargo(&["test", "--workspace", "--no-fail-fast"]));
    if !step::is_set("RUST_TEST_THREADS") {
        // Most tests wait for processes most of the time.
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        tests.env("RUST_TEST_THREADS", (2 * cores).to_string());
    }
    let status = step::status(tests.args(arguments))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The same with every signal as it usually is, where `env` can do that: what whoever calls us ignores (`nohup`, `&` in a script), all that the
/// tests start would ignore too.
fn heedful(command: Command) -> Command {
    let mut env = Command::new("env");
    env.arg("--default-signal");
    let works = Command::new("env").args(["--default-signal", "true"]).stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        return command;
    }
    env.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        env.current_dir(folder);
    }
    env
}
