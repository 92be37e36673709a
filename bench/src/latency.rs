//! From a process's exit to the return of whoever waits for it.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use homing_client::Mode;
use homing_model::Spec;
use homing_testkit::Home;
use tokio::runtime::Runtime;

use crate::peers::{Peer, Pueue, Spooler};
use crate::report::{Report, percentile};
use crate::{Bench, client};

const TASKS: usize = 200;

/// As a task: waits, writes the time as its last act, and ends.
pub(crate) fn stamp(file: &str, millis: &str) -> Result<()> {
    // Made before: what is measured begins at the exit, not at the making of a file.
    let mut file = std::fs::File::create(file)?;
    std::thread::sleep(Duration::from_millis(millis.parse()?));
    Ok(file.write_all(now_ms().to_string().as_bytes())?)
}

pub(crate) fn now_ms() -> f64 {
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
    let what = "exit to waiting client, p50 / p99";
    let figure = format!("{p50:.2} ms / {p99:.2} ms");
    report.figure(what, &figure, "2.2 ms / 6 ms", p50 <= 2.2 && p99 <= 6.0);
    // Their waiters are processes, and a result of theirs is not on disk, or not synced.
    let (spooler, pueue) = (Spooler::start(&home)?, Pueue::start(&home)?);
    if let Some(spooler) = &spooler {
        let theirs = waited(spooler, &home, 50)?;
        report.beside(what, &figure, &format!("`tsp -w` p50 {theirs:.2} ms"), p50 / theirs);
    }
    if let Some(pueue) = &pueue {
        let theirs = waited(pueue, &home, 5)?;
        report.beside(what, &figure, &format!("`pueue wait` p50 {theirs:.2} ms"), p50 / theirs);
    }
    Ok(())
}

/// From a process's exit to the return of a peer's waiter, the middle of so many.
fn waited(peer: &dyn Peer, home: &Home, tasks: usize) -> Result<f64> {
    let program = Bench::stamper()?;
    let mut samples = Vec::new();
    for number in 0..tasks {
        let file = home.scratch().join(format!("peer-{number}"));
        let _ = std::fs::remove_file(&file);
        peer.submit().arg(&program).arg("stamp").arg(&file).arg("30").status()?;
        peer.wait().status()?;
        let returned = now_ms();
        let stamped: f64 = std::fs::read_to_string(&file).context("the stamp")?.parse()?;
        samples.push(returned - stamped);
    }
    Ok(percentile(&mut samples, 0.5))
}
