//! Short tasks a second, submit to recorded end, against bare spawn-and-wait.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use homing_client::{Client, Mode};
use homing_model::{Spec, Status};
use tokio::runtime::Runtime;

use crate::report::{Report, median};
use crate::{Bench, client};

const TASKS: usize = 1000;
const WORKERS: usize = 8;

pub(crate) fn measure(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    eprintln!("throughput: {TASKS} x true, concurrency {WORKERS}");
    let home = bench.home();
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        bare.push(spawn_and_wait()?);
        ours.push(runtime.block_on(through_the_api(&client(&home)))?);
    }
    let (ours, bare) = (median(&mut ours), median(&mut bare));
    let ratio = ours / bare;
    report.ratio(
        "1,000 `true`, concurrency 8, submit to recorded end",
        &format!("{ours:.0}/s"),
        &format!("bare spawn-and-wait {bare:.0}/s"),
        ratio,
        "at least 0.25",
        ratio >= 0.25,
    );
    Ok(())
}

async fn through_the_api(client: &Client) -> Result<f64> {
    let began = Instant::now();
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                for _ in 0..TASKS / WORKERS {
                    let spec = Spec { argv: vec!["true".into()], ..Spec::default() };
                    let task = client.submit(&spec, None).await?.task;
                    let answer = client.wait(&[task.id], Mode::All, None).await?;
                    let ended = answer.items.first().context("the task")?;
                    ensure!(ended.status == Status::Succeeded, "a task ended as {}", ended.status);
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for worker in workers {
        worker.await??;
    }
    Ok(TASKS as f64 / began.elapsed().as_secs_f64())
}

fn spawn_and_wait() -> Result<f64> {
    let began = Instant::now();
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            std::thread::spawn(|| {
                for _ in 0..TASKS / WORKERS {
                    let mut child = Command::new("true").stdin(Stdio::null()).spawn()?;
                    ensure!(child.wait()?.success(), "true failed");
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for worker in workers {
        worker.join().map_err(|_| anyhow::anyhow!("a baseline thread panicked"))??;
    }
    Ok(TASKS as f64 / began.elapsed().as_secs_f64())
}
