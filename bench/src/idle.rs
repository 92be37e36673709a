//! What homing costs while nothing happens: memory and wake-ups.

use std::collections::HashMap;
use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use homing_model::Spec;
use tokio::runtime::Runtime;

use crate::report::Report;
use crate::{Bench, client, listing};

/// Long enough for the safety-net pass, which is the only thing that may wake the daemon.
const WATCHED: Duration = Duration::from_secs(21);
const RUNNING: usize = 200;

pub(crate) fn measure(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    eprintln!("idle: memory and wake-ups, about {} s", WATCHED.as_secs());
    let home = bench.home();
    let daemon = home.daemon_pid();
    std::thread::sleep(Duration::from_secs(1));
    let resident = field(daemon, "status", "VmRSS:")? as f64 / 1024.0;
    report.figure("daemon, idle, resident", &format!("{resident:.1} MB"), "at most 15 MB", resident <= 15.0);
    let before = switches(daemon)?;
    std::thread::sleep(WATCHED);
    let woken: u64 = switches(daemon)?
        .into_iter()
        .map(|(thread, now)| now - before.get(&thread).copied().unwrap_or(0))
        .sum();
    // Two passes: each wakes the timer's thread, and the ledger's threads that answer it.
    let figure = format!("{woken} switches in {} s, 2 passes", WATCHED.as_secs());
    report.figure("daemon, idle, wake-ups", &figure, "only the safety net's", woken <= 40);

    let home = bench.fresh();
    listing::fill(&home, 10_000)?;
    let daemon = home.daemon_pid();
    let client = client(&home);
    let spec = Spec { argv: vec!["sleep".into(), "600".into()], ..Spec::default() };
    let mut ids = Vec::new();
    for _ in 0..RUNNING {
        ids.push(runtime.block_on(client.submit(&spec, None))?.task.id);
    }
    let running = || runtime.block_on(client.status()).map_or(0, |status| status.tasks.running);
    homing_testkit::wait_for("all to run", || (running() == RUNNING as u64).then_some(()));
    std::thread::sleep(Duration::from_secs(1));
    let resident = field(daemon, "status", "VmRSS:")? as f64 / 1024.0;
    let figure = format!("{resident:.1} MB");
    report.figure(
        "daemon, 10,000 finished and 200 running, resident",
        &figure,
        "at most 30 MB",
        resident <= 30.0,
    );
    let shims = home.processes("homing-shim");
    ensure!(!shims.is_empty(), "no shim was found");
    let mut private = Vec::new();
    for shim in &shims {
        let kb = field(shim.pid, "smaps_rollup", "Private_Clean:")?
            + field(shim.pid, "smaps_rollup", "Private_Dirty:")?;
        private.push(kb as f64);
    }
    let private = crate::report::median(&mut private);
    report.figure(
        "a running task's shim, private memory",
        &format!("{private:.0} kB"),
        "at most 120 kB",
        private <= 120.0,
    );
    Ok(())
}

/// A number of kilobytes, or a count, from a file of `/proc`.
fn field(pid: u32, file: &str, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}"))?;
    let line =
        text.lines().find(|line| line.starts_with(name)).with_context(|| format!("{name} in {file}"))?;
    Ok(line.split_ascii_whitespace().nth(1).context("a number")?.parse()?)
}

/// Voluntary context switches of each thread.
fn switches(pid: u32) -> Result<HashMap<OsString, u64>> {
    let mut all = HashMap::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?;
        let text = std::fs::read_to_string(thread.path().join("status"))?;
        let line =
            text.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).context("switches")?;
        let count = line.split_ascii_whitespace().nth(1).context("a number")?.parse()?;
        all.insert(thread.file_name(), count);
    }
    Ok(all)
}
