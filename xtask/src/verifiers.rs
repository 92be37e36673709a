//! What receivers of webhooks run: the published Standard Webhooks verifiers, for the tests of homing-deliver.
//!
//! They go beside what cargo builds. Without them those tests skip themselves, which under CI is a failure, here and there.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::step;

const PYTHON: &str = "standardwebhooks==1.1.0";
const NODE: &str = "standardwebhooks@1.1.1";

/// Installs those that are not there yet.
pub(crate) fn provide() -> Result<()> {
    let folder = step::target()?.join("verifiers");
    std::fs::create_dir_all(&folder).with_context(|| format!("{} could not be made", folder.display()))?;
    let ci = std::env::vars_os().any(|(name, value)| name == "CI" && !value.is_empty());
    for (name, install) in [("python", python as fn(&Path) -> Result<()>), ("node", node)] {
        let place = folder.join(name);
        if place.exists() {
            continue;
        }
        println!("   installing the webhook verifier for {name}");
        // Made under another name, so that what is half done is not taken for done.
        let making = folder.join(format!("{name}.new"));
        let _ = std::fs::remove_dir_all(&making);
        match install(&making).and_then(|()| Ok(std::fs::rename(&making, &place)?)) {
            Ok(()) => {}
            Err(error) if ci => return Err(error.context(format!("the webhook verifier for {name}"))),
            Err(error) => println!("   {error:#}; skipped: webhooks by the published verifier for {name}"),
        }
    }
    Ok(())
}

/// An environment of its own; its programs are called by way of `bin/python`, which may be moved.
fn python(folder: &Path) -> Result<()> {
    step::run(quiet(Command::new("python3").args(["-m", "venv"]).arg(folder)))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYTHON];
    step::run(quiet(Command::new(folder.join("bin/python")).args(pip)))
}

fn node(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let npm = ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
    step::run(quiet(Command::new("npm").args(npm).arg(folder).arg(NODE)))
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null())
}
