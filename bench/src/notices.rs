//! From a process's exit to whoever is told: a webhook's receiver, a follower of the events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use homing_client::{EventQuery, Record};
use homing_model::notify::When;
use homing_model::{EventKind, Notify, Spec, Target};
use tokio::runtime::Runtime;

use crate::latency::now_ms;
use crate::report::{Report, percentile};
use crate::{Bench, client, listing};

const TASKS: usize = 200;
const DRAINED: u32 = 5_000;
/// Three events each: a million.
const LOGGED: u64 = 334_000;
/// Nothing here takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn measure(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    told(bench, runtime, report)?;
    drained(bench, report)?;
    resumed(bench, runtime, report)
}

/// A receiver that takes everything, and tells when each came.
fn receive() -> Result<(u16, Receiver<f64>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (came, times) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let came = came.clone();
            std::thread::spawn(move || take(stream, &came));
        }
    });
    Ok((port, times))
}

fn take(stream: TcpStream, came: &Sender<f64>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).ok()?;
    came.send(now_ms()).ok()?;
    reader.into_inner().write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").ok()
}

fn hook(port: u16) -> Result<Notify> {
    let target: Target = format!("http://127.0.0.1:{port}/hook").parse()?;
    Ok(Notify { on: When::Always, targets: vec![target], secret: None })
}

/// By turns: a task with a webhook, and one that nobody but the follower of the events hears of.
fn told(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    eprintln!("notices: exit to webhook and to event, {TASKS} tasks each");
    let home = bench.home();
    let client = client(&home);
    let (port, times) = receive()?;
    let program = Bench::stamper()?;
    let mut follower =
        client.follow_events(EventQuery { kinds: vec![EventKind::TaskCompleted], ..EventQuery::default() });
    let (mut posts, mut events) = (Vec::new(), Vec::new());
    for number in 0..2 * TASKS {
        let file = home.scratch().join(format!("told-{number}"));
        let wait = (20 + number * 7 % 30).to_string();
        let argv = [program.as_os_str(), "stamp".as_ref(), file.as_os_str(), wait.as_ref()];
        let argv = argv.map(|text| text.to_owned().into()).to_vec();
        let posting = number % 2 == 0;
        let notify = if posting { hook(port)? } else { Notify::usual() };
        let spec = Spec { argv, notify: Some(notify), ..Spec::default() };
        let seen = runtime.block_on(async {
            client.submit(&spec, None).await?;
            loop {
                if let Record::Event { .. } = follower.next().await? {
                    return anyhow::Ok(now_ms());
                }
            }
        })?;
        let posted = posting.then(|| times.recv_timeout(PATIENCE).context("a webhook")).transpose()?;
        let stamped: f64 = std::fs::read_to_string(&file).context("the stamp")?.parse()?;
        match posted {
            Some(posted) => posts.push(posted - stamped),
            None => events.push(seen - stamped),
        }
    }
    let (p50, p99) = (percentile(&mut posts, 0.5), percentile(&mut posts, 0.99));
    let figure = format!("{p50:.2} ms / {p99:.2} ms");
    report.figure("exit to webhook received, p50 / p99", &figure, "5 ms / 20 ms", p50 <= 5.0 && p99 <= 20.0);
    let p50 = percentile(&mut events, 0.5);
    report.figure("exit to event received, p50", &format!("{p50:.2} ms"), "at most 2 ms", p50 <= 2.0);
    Ok(())
}

fn drained(bench: &Bench, report: &mut Report) -> Result<()> {
    eprintln!("notices: {DRAINED} webhooks that wait for a daemon");
    let home = bench.fresh();
    let (port, times) = receive()?;
    listing::fill_telling(&home, u64::from(DRAINED), Some(&hook(port)?))?;
    let _ = home.daemon_pid();
    let first = times.recv_timeout(PATIENCE).context("the first webhook")?;
    let mut last = first;
    for _ in 1..DRAINED {
        last = times.recv_timeout(PATIENCE).context("a webhook")?;
    }
    let rate = f64::from(DRAINED - 1) / (last - first) * 1e3;
    report.figure(
        "5,000 webhooks drained to a fast receiver",
        &format!("{rate:.0}/s"),
        "at least 1,000/s",
        rate >= 1_000.0,
    );
    Ok(())
}

fn resumed(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    eprintln!("notices: a log of a million events");
    let home = bench.fresh();
    listing::fill(&home, LOGGED)?;
    let _ = home.daemon_pid();
    let client = client(&home);
    let mut samples = Vec::new();
    for number in 0..21_u64 {
        let after = 500_000 + number * 1_000;
        let began = Instant::now();
        let seq = runtime.block_on(async {
            match client.follow_events(EventQuery { after, ..EventQuery::default() }).next().await? {
                Record::Event { seq, .. } => anyhow::Ok(seq),
                Record::Reset { .. } => anyhow::bail!("the log was trimmed"),
            }
        })?;
        ensure!(seq == after + 1, "resumed after {after} at {seq}");
        samples.push(crate::report::ms(began.elapsed()));
    }
    let p50 = percentile(&mut samples, 0.5);
    report.figure(
        "resume in the middle of 1,000,000 events, p50",
        &format!("{p50:.2} ms"),
        "at most 5 ms",
        p50 <= 5.0,
    );
    Ok(())
}
