//! What others run: the published Standard Webhooks verifiers, for the tests of homing-deliver; the MCP conformance suite, Inspector and
//! Python SDK, for those of the command line.
//!
//! They go beside what cargo builds. Without them those tests skip themselves, which under CI is a failure, here and there.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::step;

const PYTHON: &str = "standardwebhooks==1.1.0";
const NODE: &str = "standardwebhooks@1.1.1";

const MCP_PYTHON: &str = "mcp==2.3.0";
/// They need a newer Node than most systems have, which npm has too.
const MCP_NODE: [&str; 3] =
    ["node@22", "@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0"];

/// How one is installed into a folder.
type Install = fn(&Path) -> Result<()>;

/// Installs those that are not there yet.
pub(crate) fn provide() -> Result<()> {
    let folder = step::target()?.join("verifiers");
    std::fs::create_dir_all(&folder).with_context(|| format!("{} could not be made", folder.display()))?;
    let ci = std::env::vars_os().any(|(name, value)| name == "CI" && !value.is_empty());
    let all: [(&str, Install); 4] = [
        ("python", |folder| python(folder, PYTHON)),
        ("node", |folder| node(folder, &[NODE], false)),
        ("mcp-python", |folder| python(folder, MCP_PYTHON)),
        ("mcp-node", |folder| node(folder, &MCP_NODE, true)),
    ];
    for (name, install) in all {
        let place = folder.join(name);
        if place.exists() {
            continue;
        }
        println!("   installing {name}");
        // Made under another name, so that what is half done is not taken for done.
        let making = folder.join(format!("{name}.new"));
        let _ = std::fs::remove_dir_all(&making);
        match install(&making).and_then(|()| Ok(std::fs::rename(&making, &place)?)) {
            Ok(()) => {}
            Err(error) if ci => return Err(error.context(format!("the verifiers in {name}"))),
            Err(error) => println!("   {error:#}; skipped: what is tested with {name}"),
        }
    }
    Ok(())
}

/// An environment of its own; its programs are called by way of `bin/python`, which may be moved.
fn python(folder: &Path, package: &str) -> Result<()> {
    step::run(quiet(Command::new("python3").args(["-m", "venv"]).arg(folder)))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
    step::run(quiet(Command::new(folder.join("bin/python")).args(pip)))
}

/// Scripts of packages are run only where one is needed: the package `node` fetches its program by one.
fn node(folder: &Path, packages: &[&str], scripts: bool) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(folder).args(packages);
    if !scripts {
        npm.arg("--ignore-scripts");
    }
    step::run(quiet(&mut npm))
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null())
}
