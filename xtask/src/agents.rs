//! `cargo xtask agents [AGENT | CHECK]…`: the real agent programs against a model that is a script.
//!
//! Opt-in, because it downloads more than a gigabyte and takes minutes. The programs come from npm, at the versions that are pinned here, into
//! `target/agents`; a run installs what is missing and nothing else. Then `xtask/agents/run.py` tries each in a home of its own, with an empty
//! environment, a dummy key and, where the kernel lets us, a network that is loopback alone. What is tried is a copy of the program: a build that
//! somebody makes meanwhile changes nothing under a run, and one run nothing under another.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::step;

/// What is tried, and the Node that Gemini CLI, Qwen Code and the samples need.
const PACKAGES: [&str; 6] = [
    "@anthropic-ai/claude-code@2.1.325",
    "@openai/codex@0.166.0",
    "opencode-ai@1.18.33",
    "@google/gemini-cli@0.61.0",
    "@qwen-code/qwen-code@0.24.4",
    "node@22.23.3",
];

/// A network namespace of our own, as the user we are.
const ALONE: [&str; 5] = ["unshare", "--user", "--map-current-user", "--keep-caps", "--net"];

/// Arguments name agents or checks; none means all.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let folder = step::target()?.join("agents");
    step::timed("agents", || install(&folder))?;
    step::timed("homing", || step::run(&mut step::cargo(&["build", "--package", "homing"])))?;
    let tried = copy(&folder)?;
    step::announce("checks");
    let mut checks = alone();
    checks.args(["python3", "-B"]).arg(step::root().join("xtask/agents/run.py")).args(arguments);
    checks.env("HOMING_LAB_AGENTS", &folder).env("HOMING_LAB_BINARY", tried.join("homing"));
    let status = step::status(&mut checks)?;
    std::fs::remove_dir_all(&tried).context("the copy of homing could not be removed")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A folder with a copy of homing, for this run alone.
fn copy(folder: &Path) -> Result<PathBuf> {
    let tried = folder.join(format!("tried-{}", std::process::id()));
    std::fs::create_dir_all(&tried).with_context(|| format!("{} could not be made", tried.display()))?;
    std::fs::copy(step::target()?.join("debug/homing"), tried.join("homing"))
        .context("homing could not be copied")?;
    Ok(tried)
}

/// Installs what is pinned, unless just that is there.
fn install(folder: &Path) -> Result<()> {
    let stamp = folder.join("installed");
    let pinned = PACKAGES.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == pinned) {
        return Ok(());
    }
    std::fs::create_dir_all(folder).with_context(|| format!("{} could not be made", folder.display()))?;
    let npm = ["install", "--silent", "--no-audit", "--no-fund", "--no-save", "--prefix"];
    step::run(Command::new("npm").args(npm).arg(folder).args(PACKAGES).stdin(Stdio::null()))?;
    std::fs::write(&stamp, pinned).context("the list of what is installed could not be written")
}

/// A command in a network of its own, where that can be made; otherwise one that only promises to stay on loopback, and says so.
fn alone() -> Command {
    let mut probe = Command::new(ALONE[0]);
    let possible = probe
        .args(&ALONE[1..])
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if possible {
        let mut command = Command::new(ALONE[0]);
        command.args(&ALONE[1..]);
        return command;
    }
    println!("   no network namespace can be made here: the programs could reach the network");
    Command::new("env")
}
