//! A gibibyte of output, against a plain redirect to a file.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use homing_client::{Client, Mode};
use homing_model::{Spec, Status, TaskId};
use tokio::runtime::Runtime;

use crate::report::{Report, median};
use crate::{Bench, client};

const LINE: &str = "head -c 1073741824 /dev/zero";

pub(crate) fn measure(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    eprintln!("output: 1 GiB");
    let home = bench.home();
    let client = client(&home);
    let (mut plain, mut ours, mut followed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        // What one leaves to be written must not be charged to the next.
        rustix::fs::sync();
        plain.push(redirect(home.scratch())?);
        rustix::fs::sync();
        ours.push(runtime.block_on(task(&client, false))?);
        rustix::fs::sync();
        followed.push(runtime.block_on(task(&client, true))?);
    }
    let (plain, ours, followed) = (median(&mut plain), median(&mut ours), median(&mut followed));
    let baseline = format!("redirect {plain:.2} s");
    let ratio = plain / ours;
    report.ratio(
        "1 GiB of output, rate",
        &format!("{ours:.2} s"),
        &baseline,
        ratio,
        "at least 1.0",
        ratio >= 1.0,
    );
    let ratio = plain / followed;
    let figure = format!("{followed:.2} s");
    report.ratio(
        "the same with a follower attached",
        &figure,
        &baseline,
        ratio,
        "at least 0.7",
        ratio >= 0.7,
    );
    Ok(())
}

fn redirect(folder: &std::path::Path) -> Result<f64> {
    let path = folder.join("plain");
    let file = std::fs::File::create(&path)?;
    let began = Instant::now();
    let status = Command::new("sh").args(["-c", LINE]).stdin(Stdio::null()).stdout(file).status()?;
    let took = began.elapsed().as_secs_f64();
    ensure!(status.success(), "the redirect failed");
    std::fs::remove_file(path)?;
    Ok(took)
}

async fn task(client: &Client, follow: bool) -> Result<f64> {
    // All of it is kept, as the redirect keeps it.
    let spec = Spec { shell: Some(LINE.into()), max_output_bytes: Some(4 << 30), ..Spec::default() };
    let began = Instant::now();
    let id = client.submit(&spec, None).await?.task.id;
    let follower = follow.then(|| tokio::spawn(drain(client.clone(), id.clone())));
    let ended = client.wait(std::slice::from_ref(&id), Mode::All, None).await?;
    let took = began.elapsed().as_secs_f64();
    let task = ended.items.first().context("the task")?;
    ensure!(
        task.status == Status::Succeeded && task.output.bytes == 1 << 30 && task.output.dropped == 0,
        "{}",
        serde_json::to_string(task)?
    );
    if let Some(follower) = follower {
        follower.await??;
    }
    client.forget(id.as_str()).await?;
    Ok(took)
}

async fn drain(client: Client, id: TaskId) -> Result<u64> {
    let mut follow = client.follow(&id, 0, None);
    let mut bytes = 0;
    while let Some(chunk) = follow.next().await? {
        bytes += chunk.bytes.len() as u64;
    }
    Ok(bytes)
}
