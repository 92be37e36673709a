//! Wears homing down: tasks with a known truth, and `kill -9` of whatever stands behind them, at random moments.
//!
//! `cargo xtask soak [KILLS [SEED]]`. Afterwards the history is checked: every acknowledged task is there, ran exactly once, and ended as
//! the kernel said; `lost` only where its own shim was killed; output whole to the byte; nothing is left running.

mod check;
mod random;
mod victim;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use homing_testkit::Home;

use random::Random;

/// What the submitters and the killer tell the checker.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Task number by acknowledged id.
    acknowledged: Mutex<HashMap<String, u64>>,
    /// Numbers whose submit failed: they ran once at most.
    refused: Mutex<Vec<u64>>,
    /// Main processes whose shim was killed.
    shims_killed: Mutex<Vec<u32>>,
}

/// What a task of this number does: prints this many lines, waits, and ends with this code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    lines: u64,
    pause_ms: u64,
    code: u64,
}

impl Script {
    fn of(number: u64) -> Self {
        let mut random = Random::new(number.wrapping_add(77));
        Self { lines: random.below(200), pause_ms: random.below(150), code: random.below(4) }
    }

    /// The shell line. It leaves a mark of its own beside homing's books: a line per run.
    fn line(self, truth: &Path, number: u64) -> String {
        let file = truth.join(number.to_string());
        let Self { lines, pause_ms, code } = self;
        format!(
            "echo $$ >> '{}'; seq 1 {lines}; sleep 0.{pause_ms:03}; seq 1 {lines} >&2; exit {code}",
            file.display()
        )
    }
}

/// Runs the soak.
pub(crate) fn run(program: &Path, kills: u64, seed: u64) -> Result<()> {
    let home = Home::new(program);
    let truth = home.scratch().join("truth");
    std::fs::create_dir(&truth)?;
    let history = History::default();
    let next = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let _ = home.daemon_pid();
    let began = Instant::now();
    eprintln!("soak: {kills} kills, seed {seed}");
    let tally = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| submit(&home, &truth, &history, &next, &over));
        }
        let tally = victim::kill(&home, &history, kills, seed);
        over.store(true, Ordering::Relaxed);
        tally
    })?;
    let checked = check::check(&home, &truth, &history)?;
    println!("{} kills ({tally}) in {:.0} s: {checked}", kills, began.elapsed().as_secs_f64());
    Ok(())
}

/// Submits one task after the other until it is over.
fn submit(home: &Home, truth: &Path, history: &History, next: &AtomicU64, over: &AtomicBool) {
    let lock = |error: std::sync::PoisonError<_>| error.into_inner();
    while !over.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let line = Script::of(number).line(truth, number);
        let label = format!("number={number}");
        let output = home.cli(["run", "--label", &label, "-c", &line]);
        if output.code == 0 {
            history.acknowledged.lock().unwrap_or_else(lock).insert(output.text(), number);
        } else {
            history.refused.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(number);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// From the command line.
pub(crate) fn main(arguments: &[&str]) -> Result<()> {
    let [program, rest @ ..] = arguments else {
        anyhow::bail!("usage: homing-bench soak PATH-OF-HOMING [KILLS [SEED]]")
    };
    let kills = rest.first().map_or(Ok(500), |text| text.parse()).context("KILLS")?;
    let seed = rest.get(1).map_or(Ok(1), |text| text.parse()).context("SEED")?;
    run(&PathBuf::from(program).canonicalize()?, kills, seed)
}
