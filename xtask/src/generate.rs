//! `cargo xtask generate`: documents that are made of the code, and the check that they still are.
//!
//! The program that knows their contents is the example `documents` of homing-server. It is built with the features of the whole
//! workspace, so that nothing is compiled twice, and lies beside this program.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::step;

/// The files that `documents` writes.
const FILES: &[&str] = &["openapi.json", "api.md", "errors.md", "config.md", "config.default.toml"];

/// Writes them into `docs/`, and the lists of tests in `guarantees.md`, which its own test checks.
pub(crate) fn run(_arguments: &[String]) -> Result<ExitCode> {
    let docs = step::root().join("docs");
    step::timed("generate", || {
        crate::guarantees::write()?;
        write(&docs)?;
        // Its own test compares them otherwise, so there is nothing to do for `check`.
        let manual = ["test", "-q", "-p", "homing", "--bin", "homing", "--", "man::", "reference::"];
        step::run(step::cargo(&manual).env("HOMING_WRITE_MAN", "1"))
    })?;
    for file in FILES.iter().chain(&["guarantees.md", "cli.md", "man/"]) {
        println!("   docs/{file}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails with the names of those that no longer say what the code says.
pub(crate) fn check() -> Result<()> {
    let fresh = folder_of_this_program()?.join("generated");
    std::fs::create_dir_all(&fresh).with_context(|| format!("{} could not be made", fresh.display()))?;
    write(&fresh)?;
    let docs = step::root().join("docs");
    let read = |folder: &Path, file: &str| std::fs::read(folder.join(file)).unwrap_or_default();
    let stale: Vec<_> = FILES.iter().filter(|file| read(&fresh, file) != read(&docs, file)).collect();
    if !stale.is_empty() {
        bail!("out of date in docs/: {stale:?}; `cargo xtask generate` writes them anew");
    }
    Ok(())
}

fn write(folder: &Path) -> Result<()> {
    step::run(&mut step::cargo(&["build", "--workspace", "--example", "documents"]))?;
    step::run(Command::new(folder_of_this_program()?.join("examples/documents")).arg(folder))
}

fn folder_of_this_program() -> Result<PathBuf> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    Ok(program.parent().context("this program is in no folder")?.to_owned())
}
