//! `cargo xtask deny`: what deny.toml asks of the dependencies holds, and each of them has the text of its licence.
//!
//! The rules are cargo-deny's to judge; `verifiers` builds it, at the version that is pinned there. Not looked at are the advisories, which need a database
//! from the network.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::dist::{self, licences};
use crate::{packages, step, verifiers};

/// The check, by itself.
pub(crate) fn run(_arguments: &[String]) -> Result<ExitCode> {
    step::timed("tools", || verifiers::provide(&[verifiers::CARGO_DENY]))?;
    step::timed("dependencies", check)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails with everything that is wrong.
pub(crate) fn check() -> Result<()> {
    let root = step::root();
    let mut bare = Vec::new();
    for package in packages::linked_with(&root, &[dist::host()?], "homing")? {
        if licences::texts(&root, &package)?.is_empty() {
            bare.push(format!(
                "{} {}: packaging/licences/{}.txt",
                package.name, package.version, package.name
            ));
        }
    }
    if !bare.is_empty() {
        bail!("these come without the text of their licence; put it there:\n  {}", bare.join("\n  "));
    }
    let program = step::target()?.join("verifiers").join(verifiers::CARGO_DENY).join("bin/cargo-deny");
    if !program.exists() {
        println!("   cargo-deny is missing; skipped: licences, bans and sources by deny.toml");
        return Ok(());
    }
    step::run(
        Command::new(program).args(["--locked", "check", "licenses", "bans", "sources"]).current_dir(root),
    )
}
