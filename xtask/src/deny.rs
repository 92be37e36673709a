//! `cargo xtask deny`: what deny.toml asks of the dependencies holds, and each of them has the text of its licence.
//!
//! The rules are cargo-deny's to judge; `verifiers` builds it, at the version that is pinned there. Advisories need a database from the network, so they are
//! not part of `cargo xtask test`: `cargo xtask deny --advisories` checks them, and `cargo xtask dist` refuses to make a release that did not pass.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::dist::{self, licences};
use crate::{packages, step, verifiers};

/// The check, by itself; with `--advisories` that of the advisories instead.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    step::timed("tools", || verifiers::provide(&[verifiers::CARGO_DENY]))?;
    match arguments {
        [] => step::timed("dependencies", check)?,
        [option] if option == "--advisories" => step::timed("advisories", check_advisories)?,
        _ => bail!("usage: cargo xtask deny [--advisories]"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if a dependency has a known vulnerability, is unmaintained or was yanked, and if the database cannot be fetched.
///
/// A missing cargo-deny is an error here, not a reason to skip: a release depends on the answer.
pub(crate) fn check_advisories() -> Result<()> {
    let program = cargo_deny()?;
    if !program.exists() {
        bail!("cargo-deny could not be built, so the advisories were not checked");
    }
    step::run(Command::new(program).args(["--locked", "check", "advisories"]).current_dir(step::root()))
        .context("advisories: update the crate, or run this where the advisory database can be fetched")
}

fn cargo_deny() -> Result<PathBuf> {
    Ok(step::target()?.join("verifiers").join(verifiers::CARGO_DENY).join("bin/cargo-deny"))
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
    let program = cargo_deny()?;
    if !program.exists() {
        println!("   cargo-deny is missing; skipped: licences, bans and sources by deny.toml");
        return Ok(());
    }
    step::run(
        Command::new(program).args(["--locked", "check", "licenses", "bans", "sources"]).current_dir(root),
    )
}
