//! From a process's exit to the return of whoever waits for it.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use homing_client::Mode;
use homing_model::Spec;
use tokio::runtime::Runtime;

use crate::report::{Report, percentile};
use crate::{Bench, client, submit};

const TASKS: usize = 200;

/// As a task: waits, writes the time as its last act, and ends.
pub(crate) fn stamp(file: &str, millis: &str) -> Result<()> {
    // Made before: what is measured begins at the exit, not at the making of a file.
    let mut file = std::fs::File::create(file)?;
    std::thread::sleep(Duration::from_millis(millis.parse()?));
    Ok(file.write_all(now_ms().to_string().as_bytes())?)
}

fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3
}

pub(crate) fn measure(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    eprintln!("latency: exit to waiter, {TASKS} tasks");
    let home = bench.home();
    let client = client(&home);
    let program = Bench::stamper()?;
    let mut samples = Vec::new();
    for number in 0..TASKS {
        let file = home.scratch().join(format!("stamp-{number}"));
        let wait = (20 + number * 7 % 30).to_string();
        let argv = [program.as_os_str(), "stamp".as_ref(), file.as_os_str(), wait.as_ref()];
        let spec = Spec { argv: argv.map(|text| text.to_owned().into()).to_vec(), ..Spec::default() };
        let returned = runtime.block_on(async {
            let task = client.submit(&spec, None).await?.task;
            client.wait(&[task.id], Mode::All, None).await?;
            anyhow::Ok(now_ms())
        })?;
        let stamped: f64 = std::fs::read_to_string(&file).context("the stamp")?.parse()?;
        samples.push(returned - stamped);
    }
    let (p50, p99) = (percentile(&mut samples, 0.5), percentile(&mut samples, 0.99));
    let theirs = spooler(&home)?;
    let figure = format!("{p50:.2} ms / {p99:.2} ms");
    let met = p50 <= 2.0 && p99 <= 6.0;
    match theirs {
        Some(theirs) => {
            let baseline = format!("`tsp -w` p50 {theirs:.2} ms");
            report.ratio(
                "exit to waiting client, p50 / p99",
                &figure,
                &baseline,
                p50 / theirs,
                "2 ms / 6 ms",
                met,
            );
        }
        None => report.figure("exit to waiting client, p50 / p99", &figure, "2 ms / 6 ms", met),
    }
    Ok(())
}

/// task-spooler's figure, where it is installed. Its waiter is a process, and its result is not on disk.
fn spooler(home: &homing_testkit::Home) -> Result<Option<f64>> {
    if !submit::which("tsp") {
        return Ok(None);
    }
    let socket = home.scratch().join("tsp.sock");
    let tsp = || {
        let mut command = std::process::Command::new("tsp");
        command
            .env("TS_SOCKET", &socket)
            .env("TMPDIR", home.scratch())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let program = Bench::stamper()?;
    let mut samples = Vec::new();
    for number in 0..50 {
        let file = home.scratch().join(format!("tsp-{number}"));
        tsp().arg("-n").arg(&program).arg("stamp").arg(&file).arg("30").status()?;
        tsp().arg("-w").status()?;
        let returned = now_ms();
        let stamped: f64 = std::fs::read_to_string(&file).context("the stamp")?.parse()?;
        samples.push(returned - stamped);
    }
    let _ = tsp().arg("-K").status();
    Ok(Some(percentile(&mut samples, 0.5)))
}
