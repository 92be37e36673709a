//! What others run: the published Standard Webhooks verifiers, for the tests of homing-deliver; the MCP conformance suite, Inspector and
//! Python SDK, what drives a browser, and a parser of Prometheus' format, for those of the command line; and cargo-deny.
//!
//! They go beside what cargo builds, all at once, since most of the time each waits for the network. Without them what needs them skips
//! itself, which under CI is a failure, here and there.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::step;

const PYTHON: &str = "standardwebhooks==1.1.0";
const NODE: &str = "standardwebhooks@1.1.1";

const MCP_PYTHON: &str = "mcp==2.3.0";
/// Reads what `/metrics` says, by the authors of Prometheus.
const PROMETHEUS_PYTHON: &str = "prometheus-client==0.22.1";
/// They need a newer Node than most systems have, which npm has too.
const MCP_NODE: [&str; 3] =
    ["node@22", "@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0"];

/// What drives the browser on the page, and what looks at the page for those who cannot see it.
const PAGE_NODE: [&str; 2] = ["playwright-core@1.65.0", "axe-core@4.14.0"];

/// Judges the dependencies by deny.toml.
pub(crate) const CARGO_DENY: &str = "cargo-deny";
const CARGO_DENY_VERSION: &str = "0.20.2";

/// How one is installed into a folder.
type Install = fn(&Path) -> Result<()>;

const ALL: [(&str, Install); 7] = [
    // First, since it takes longest.
    (CARGO_DENY, cargo_deny),
    ("python", |folder| python(folder, PYTHON)),
    ("node", |folder| node(folder, &[NODE], false)),
    ("mcp-python", |folder| python(folder, MCP_PYTHON)),
    ("prometheus-python", |folder| python(folder, PROMETHEUS_PYTHON)),
    ("mcp-node", |folder| node(folder, &MCP_NODE, true)),
    ("page-node", |folder| node(folder, &PAGE_NODE, false)),
];

/// Installs all that are not there yet.
pub(crate) fn provide_all() -> Result<()> {
    provide(&ALL.map(|(name, _)| name))
}

/// Installs those of these that are not there yet.
pub(crate) fn provide(names: &[&str]) -> Result<()> {
    let folder = step::target()?.join("verifiers");
    std::fs::create_dir_all(&folder).with_context(|| format!("{} could not be made", folder.display()))?;
    let ci = step::is_set("CI");
    let lacking = ALL.iter().filter(|(name, _)| names.contains(name) && !folder.join(name).exists());
    std::thread::scope(|scope| {
        let begun: Vec<_> = lacking
            .map(|(name, install)| {
                println!("   installing {name}");
                let folder = &folder;
                (name, scope.spawn(move || place(folder, name, *install)))
            })
            .collect();
        for (name, installing) in begun {
            match installing.join().unwrap_or_else(|_| Err(anyhow::anyhow!("its installation broke off"))) {
                Ok(()) => {}
                Err(error) if ci => return Err(error.context(format!("the verifiers in {name}"))),
                Err(error) => println!("   {error:#}; skipped: what is tested with {name}"),
            }
        }
        Ok(())
    })
}

/// Made under another name, so that what is half done is not taken for done.
fn place(folder: &Path, name: &str, install: Install) -> Result<()> {
    let making = folder.join(format!("{name}.new"));
    let _ = std::fs::remove_dir_all(&making);
    install(&making)?;
    Ok(std::fs::rename(&making, folder.join(name))?)
}

/// Built as quickly as can be: it runs for a second.
fn cargo_deny(folder: &Path) -> Result<()> {
    let build = folder.join("build");
    let mut cargo = step::cargo(&["install", CARGO_DENY, "--version", CARGO_DENY_VERSION]);
    cargo.args(["--locked", "--quiet", "--debug", "--root"]).arg(folder).arg("--target-dir").arg(&build);
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    step::run(quiet(&mut cargo))?;
    Ok(std::fs::remove_dir_all(build)?)
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
