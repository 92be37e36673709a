//! How long until a killed daemon is back and has every running task in its hands again.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use homing_model::Spec;
use tokio::runtime::Runtime;

use crate::report::Report;
use crate::{Bench, client};

const RUNNING: u64 = 1000;

pub(crate) fn measure(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    eprintln!("adopt: {RUNNING} live tasks after kill -9");
    let home = bench.home();
    let client = client(&home);
    let spec = Spec { argv: vec!["sleep".into(), "600".into()], ..Spec::default() };
    for _ in 0..RUNNING {
        runtime.block_on(client.submit(&spec, None))?;
    }
    let running = || runtime.block_on(client.status()).map_or(0, |status| status.tasks.running);
    homing_testkit::wait_for("all to run", || (running() == RUNNING).then_some(()));
    let mut times = Vec::new();
    for _ in 0..bench.runs {
        let daemon = home.daemon_pid();
        let began = Instant::now();
        home.kill(daemon);
        let status = loop {
            // A client of its own: its connection must be to the new daemon.
            let client = crate::client(&home);
            if let Ok(status) = runtime.block_on(client.status())
                && status.daemon.pid != daemon
            {
                break status;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        times.push(began.elapsed().as_secs_f64());
        ensure!(
            status.tasks.running == RUNNING && status.reconcile.adopted == RUNNING,
            "not all were adopted"
        );
    }
    let seconds = crate::report::median(&mut times);
    report.figure(
        "1,000 live tasks adopted after kill -9",
        &format!("{seconds:.2} s"),
        "at most 0.5 s",
        seconds <= 0.5,
    );
    Ok(())
}
