//! One step of a task: named when it begins, timed when it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The folder of the workspace, wherever xtask was called from.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where cargo puts what it builds: this program is in `debug` below it.
pub(crate) fn target() -> Result<PathBuf> {
    let program = std::env::current_exe().context("the path of xtask")?;
    let target = program.parent().and_then(Path::parent).context("the target folder")?;
    Ok(target.to_owned())
}

/// A call of cargo in the workspace. `cargo xtask` has chosen the toolchain; this one is the same.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root());
    // Set by .cargo/config.toml for this process. In the environment of another cargo they would look changed, and every C
    // library would be built again whenever `cargo` and `cargo xtask` take turns.
    for name in ["HOST_CFLAGS", "TARGET_CFLAGS", "LIBSQLITE3_FLAGS"] {
        command.env_remove(name);
    }
    command
}

/// Says what is about to happen.
pub(crate) fn announce(what: &str) {
    println!("\n== {what}");
}

/// Does it, says how long it took, and fails with its name.
pub(crate) fn timed(what: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    announce(what);
    #[expect(clippy::disallowed_methods, reason = "a person wants to know how long a step took")]
    let begun = Instant::now();
    work().with_context(|| format!("`{what}` failed"))?;
    println!("   {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a program with our own terminal, and fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a program with our own terminal.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("{} could not be started", shown(command)))
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Whether a variable of the environment has a value.
pub(crate) fn is_set(variable: &str) -> bool {
    std::env::vars_os().any(|(name, value)| name == variable && !value.is_empty())
}
