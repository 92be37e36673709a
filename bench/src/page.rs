//! How soon the page is painted with a thousand tasks, and how soon it shows what happens while fifty print. Measured in Chromium, by its own clock, by `measure.mjs` beside
//! the scenarios of the tests.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Bench;
use crate::report::Report;

/// A figure of the script, its name, the most milliseconds that it may be, and whether the worst counts and not the median.
const FIGURES: [(&str, &str, f64, bool); 6] = [
    ("first_paint", "page, 1,000 tasks, first paint", 300.0, false),
    ("shown", "page, 1,000 tasks, tasks shown", 300.0, false),
    ("again", "page, 1,000 tasks, tasks shown, files kept", 300.0, false),
    ("start", "page, 50 tasks print, start shown", 100.0, true),
    ("output", "page, 50 tasks print, output shown", 100.0, true),
    ("end", "page, 50 tasks print, end shown", 100.0, true),
];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let target = bench.program.parent().and_then(Path::parent).context("the target folder")?;
    let modules = target.join("verifiers/page-node");
    if !modules.exists() || !Path::new("/usr/bin/chromium").exists() {
        eprintln!(
            "page: left out, Chromium or {} is not there; `cargo xtask test` installs them",
            modules.display()
        );
        return Ok(());
    }
    eprintln!("page: first paint and latencies, about a minute");
    let home = bench.home();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/homing/tests/page/measure.mjs");
    let mut node = Command::new("node");
    node.arg(script).stdin(Stdio::null()).stderr(Stdio::inherit()).current_dir(home.scratch());
    node.env("HOMING", &bench.program).env("HOMING_HOME", home.path()).env("MODULES", modules);
    let output = node.env("SCRATCH", home.scratch()).env("TMPDIR", home.scratch()).output()?;
    ensure!(output.status.success(), "measure.mjs: {}", output.status);
    let figures: Value = serde_json::from_slice(&output.stdout)?;
    for (name, what, most, by_worst) in FIGURES {
        let figure = |which: &str| {
            figures[name][which].as_f64().with_context(|| format!("{name}.{which} is not in {figures}"))
        };
        let (median, worst) = (figure("median")?, figure("worst")?);
        let judged = if by_worst { worst } else { median };
        let told = format!("{median:.0} ms, at worst {worst:.0}");
        report.figure(what, &told, &format!("at most {most} ms"), judged <= most);
    }
    Ok(())
}
