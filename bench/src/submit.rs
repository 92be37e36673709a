//! `homing run -- true` as a process, against task-spooler, with an empty and with a full ledger.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};
use homing_testkit::Home;

use crate::report::{Report, median, ms};
use crate::{Bench, listing};

const CALLS: usize = 200;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    eprintln!("submit: {CALLS} calls of the command line");
    let home = bench.home();
    let mut empty = time(|| run(&home))?;
    let empty = median(&mut empty);
    if which("tsp") {
        let socket = home.scratch().join("tsp.sock");
        let tsp = || {
            let mut command = Command::new("tsp");
            command.env("TS_SOCKET", &socket).env("TS_MAXFINISHED", "10");
            command.env("TMPDIR", home.scratch()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        ensure!(tsp().args(["-S", "8"]).status()?.success(), "tsp cannot be set up");
        let mut theirs = time(|| tsp().arg("true").status().is_ok_and(|status| status.success()))?;
        let theirs = median(&mut theirs);
        let _ = tsp().arg("-K").status();
        let ratio = empty / theirs;
        let figure = format!("{empty:.2} ms");
        let baseline = format!("`tsp true` {theirs:.2} ms");
        report.ratio("`homing run -- true`, p50", &figure, &baseline, ratio, "at most 2.5", ratio <= 2.5);
    } else {
        report.note("`homing run -- true`, p50", &format!("{empty:.2} ms"), "tsp is not installed");
    }
    let home = bench.fresh();
    listing::fill(&home, 100_000)?;
    let _ = home.daemon_pid();
    let mut full = time(|| run(&home))?;
    let full = median(&mut full);
    let ratio = full / empty;
    report.ratio(
        "the same with 100,000 finished tasks",
        &format!("{full:.2} ms"),
        &format!("empty {empty:.2} ms"),
        ratio,
        "below 1.2",
        ratio < 1.2,
    );
    Ok(())
}

fn run(home: &Home) -> bool {
    let status = home.command().args(["run", "--", "true"]).stdout(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn time(mut call: impl FnMut() -> bool) -> Result<Vec<f64>> {
    let mut samples = Vec::with_capacity(CALLS);
    for number in 0..CALLS + 20 {
        let began = Instant::now();
        ensure!(call(), "a call failed");
        if number >= 20 {
            samples.push(ms(began.elapsed()));
        }
    }
    Ok(samples)
}

pub(crate) fn which(program: &str) -> bool {
    Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}
