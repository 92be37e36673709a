//! Stop against the natural end, a thousand times: whichever comes first, the books say what the kernel said.
//!
//! `cargo xtask race [ROUNDS]`. The moment of the stop homes in on the end: earlier after a task that ended by itself, later after one that
//! was stopped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use homing_api::StopRequest;
use homing_client::{Client, Mode};
use homing_model::{Spec, Status, Task};
use homing_testkit::Home;

/// From the command line.
pub(crate) fn main(arguments: &[&str]) -> Result<()> {
    let [program, rest @ ..] = arguments else { bail!("usage: homing-bench race PATH-OF-HOMING [ROUNDS]") };
    let rounds = rest.first().map_or(Ok(1000), |text| text.parse()).context("ROUNDS")?;
    let program = PathBuf::from(program).canonicalize()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (stopped, ended) = runtime.block_on(race(&program, rounds))?;
    println!("{rounds} races: {stopped} stopped, {ended} ended by themselves; every outcome is the kernel's");
    Ok(())
}

async fn race(program: &Path, rounds: u32) -> Result<(u32, u32)> {
    let home = Home::new(program);
    let _ = home.daemon_pid();
    let client = Client::new(home.path(), "race");
    let spec = Spec { shell: Some("exec sleep 0.005".into()), ..Spec::default() };
    let (mut stopped, mut ended) = (0, 0);
    let mut wait = Duration::from_millis(5);
    for round in 0..rounds {
        let id = client.submit(&spec, None).await?.task.id;
        tokio::time::sleep(wait).await;
        let request = StopRequest { wait: true, ..StopRequest::default() };
        let answer = client.stop(id.as_str(), &request).await?;
        let task = client.wait(std::slice::from_ref(&id), Mode::All, None).await?.items.remove(0);
        check(&task).with_context(|| format!("round {round}: {task:?}"))?;
        ensure!(
            answer.stopping || task.status == Status::Succeeded,
            "told that it had ended, and then {}",
            task.status
        );
        let step = Duration::from_micros(150);
        if task.status == Status::Stopped {
            stopped += 1;
            wait += step;
        } else {
            ended += 1;
            wait = wait.saturating_sub(step);
        }
    }
    ensure!(stopped > rounds / 20 && ended > rounds / 20, "not a race: {stopped} stopped, {ended} ended");
    Ok((stopped, ended))
}

/// `sleep` does not handle SIGTERM. So a task that the signal reached ends by it, and any other has its own exit code.
fn check(task: &Task) -> Result<()> {
    let outcome = task.outcome.as_ref().context("an outcome")?;
    let by_itself = outcome.exit_code == Some(0) && outcome.signal.is_none();
    let by_us = outcome.exit_code.is_none() && outcome.signal == Some(15);
    match task.status {
        Status::Succeeded => ensure!(by_itself, "succeeded, but without exit code 0"),
        Status::Stopped => {
            // A stop that comes before the start keeps the command from being executed.
            let not_started =
                task.started_at.is_none() && outcome.exit_code.is_none() && outcome.signal.is_none();
            ensure!(by_us || not_started, "stopped, but not by the signal");
        }
        status => bail!("ended as {status}"),
    }
    Ok(())
}
