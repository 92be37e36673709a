//! A day of use in less than a minute: thousands of tasks under a clock that the test moves leave the home within its limits, and the engine within its
//! memory figure.
//!
//! The day is lived by a process of its own, since memory is a process's. Its clock begins 24 hours ago and goes five minutes at a time: what somebody else runs
//! ends by that clock, and is dropped by its age; commands end by the machine's, and are dropped by their number and their output.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::path::Path;
use std::process::Command;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use homing_api::CompleteRequest;
use homing_engine::config::{Period, Retention, Size};
use homing_engine::{Caller, Clock, Config, Engine, SystemClock, WaitMode};
use homing_model::environment::DEFAULT_OWNER;
use homing_model::{Kind, Spec, Status, Timestamp};
use homing_testkit::Home;

const HOUR: u64 = 60;
/// Minutes between two looks, and what somebody else does meanwhile.
const STEP: u64 = 5;
const AT_ONCE: u64 = 20;
/// All that was done in a day.
const ALL: u64 = 24 * HOUR / STEP * (AT_ONCE + 1);
const COUNT: u64 = 400;
const BYTES: u64 = 1 << 20;
/// docs/performance.md: the daemon's figure with thousands of finished tasks.
const FIGURE: u64 = 30 << 20;
/// A build that is not optimised has larger code and stacks.
const UNOPTIMISED: u64 = 20 << 20;
const LIVED: &str = "HOMING_TEST_DAY";

struct Moved(AtomicI64);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

/// Bytes of output below a folder.
fn output(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => output(&entry.path()),
        Ok(meta) if entry.file_name().to_string_lossy().ends_with(".log") => meta.len(),
        Ok(_) | Err(_) => 0,
    });
    sizes.sum()
}

fn folders(home: &Home) -> u64 {
    std::fs::read_dir(home.path().join("tasks")).map_or(0, |entries| entries.count() as u64)
}

async fn tracked(engine: &Engine, minute: u64, place: u64) {
    let owner = format!("owner-{}", place % 3);
    let spec = Spec {
        kind: Kind::External,
        name: Some(format!("job-{minute}-{place}")),
        owner: Some(owner.clone()),
        lease_ms: Some(3_600_000),
        ..Spec::default()
    };
    let task = engine.submit(spec, Caller::default(), None).await.unwrap().task;
    let request = CompleteRequest { answer: Some("done ".repeat(40)), ..CompleteRequest::default() };
    engine.complete(task.id.as_str(), &owner, request).await.unwrap();
    // One of them never looks into its inbox: what waits there is not dropped by any limit (P6).
    if place > 0 {
        engine.acknowledge(&owner, &[task.id.to_string()]).await.unwrap();
    }
}

async fn ran(engine: &Engine) {
    let line = "head -c 8192 /dev/zero | tr '\\0' x".to_owned();
    let spec = Spec { shell: Some(line.into()), ..Spec::default() };
    let task = engine.submit(spec, Caller::default(), None).await.unwrap().task;
    let patience = Some(Duration::from_secs(60));
    let ended = engine.wait(slice::from_ref(&task.id), WaitMode::All, patience).await.unwrap();
    assert!(format!("{ended:?}").contains("Succeeded"), "{ended:?}");
    engine.acknowledge(DEFAULT_OWNER, &[task.id.to_string()]).await.unwrap();
}

#[expect(
    clippy::print_stdout,
    reason = "the test that called this process reads it, and so does whoever wants the figures"
)]
async fn lived(home: &Home) {
    let clock = Arc::new(Moved(AtomicI64::new(SystemClock.now().plus_millis(-24 * 3_600_000).as_millis())));
    let hours = |count: u64| Period(Duration::from_secs(count * 3_600));
    let retention = Retention { age: hours(2), count: COUNT, bytes: Size(BYTES), tombstones: hours(4) };
    let config = Config { retention, ..Config::default() };
    let builder = Engine::builder(home.path()).helper(home.program().to_owned()).clock(clock.clone());
    let engine = builder.config(config).open().await.unwrap();
    let mut halves = Vec::new();
    for minute in (STEP..=24 * HOUR).step_by(usize::try_from(STEP).unwrap()) {
        clock.0.fetch_add(i64::try_from(STEP).unwrap() * 60_000, Ordering::Relaxed);
        let jobs: Vec<_> = (0..AT_ONCE)
            .map(|place| {
                let engine = engine.clone();
                tokio::spawn(async move { tracked(&engine, minute, place).await })
            })
            .collect();
        ran(&engine).await;
        for job in jobs {
            job.await.unwrap();
        }
        if minute % (2 * STEP) == 0 {
            // What the passes of the safety net do by themselves; they go by the machine's clock.
            let _ = engine.gc().await.unwrap();
            let finished = engine.status().await.unwrap().tasks.finished;
            assert!(finished <= COUNT && folders(home) <= COUNT, "minute {minute}: {finished} finished");
        }
        if minute % (12 * HOUR) == 0 {
            let figures = engine.figures().await.unwrap();
            halves.push((resident(), figures.ledger_bytes, figures.census.inbox));
        }
    }
    let figures = engine.figures().await.unwrap();
    let (output, folders) = (output(&home.path().join("tasks")), folders(home));
    assert_eq!(figures.submitted.iter().sum::<u64>(), ALL);
    assert_eq!(figures.ended.first(), Some(&ALL), "all of them succeeded");
    assert!(figures.census.tasks(Status::Succeeded) <= COUNT);
    assert!(
        output > 0 && output <= BYTES && folders <= 1 + BYTES / 8192,
        "{output} bytes in {folders} folders"
    );
    let ((early, then, waited), (late, now, wait)) = (halves[0], halves[1]);
    assert!(now < 32 << 20 && now <= then + then / 2, "the ledger grows: {then}, {now}");
    assert_eq!(
        (waited, wait),
        (12 * HOUR / STEP, 24 * HOUR / STEP),
        "what nobody took still waits, and nothing else"
    );
    let most = FIGURE + if cfg!(debug_assertions) { UNOPTIMISED } else { 0 };
    assert!(late <= most && late <= early + (6 << 20), "the memory grows: {early}, {late}");
    println!(
        "resident {early} and {late}, ledger {then} and {now}, inbox {waited} and {wait}, output {output}"
    );
}

/// Called by the test below, in a process of its own.
#[test]
#[ignore = "it is a part of another test"]
fn the_day_itself() {
    if !std::env::vars_os().any(|(name, _)| name == LIVED) {
        return;
    }
    let home = super::home();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(lived(&home));
}

#[test]
fn a_day_of_thousands_of_tasks_leaves_the_home_within_its_limits_and_the_memory_within_its_figure() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["day::the_day_itself", "--exact", "--ignored", "--nocapture"]).env(LIVED, "1");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("resident "),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
