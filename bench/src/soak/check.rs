//! Compares homing's books with the marks that the tasks left themselves.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;

use anyhow::{Result, bail, ensure};
use homing_testkit::Home;
use serde_json::Value;

use super::{History, Script};

/// Waits for every task to end and checks all of them; answers what was found.
pub(crate) fn check(home: &Home, truth: &Path, history: &History) -> Result<String> {
    let acknowledged = history.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
    let shims_killed = history.shims_killed.lock().unwrap_or_else(PoisonError::into_inner).len();
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let mut problems = Vec::new();
    for (id, number) in acknowledged.iter() {
        let task = home.ended(id);
        let status = task["status"].as_str().unwrap_or("?").to_owned();
        *ends.entry(status).or_default() += 1;
        if let Err(problem) = check_one(home, truth, id, *number, &task) {
            problems.push(format!("{id} (number {number}): {problem:#}"));
        }
    }
    let lost = ends.get("lost").copied().unwrap_or(0);
    if lost as usize > shims_killed {
        problems.push(format!(
            "{lost} tasks are lost, but only {shims_killed} processes were counted at killed shims"
        ));
    }
    for number in history.refused.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let runs = runs(truth, *number);
        if runs > 1 {
            problems.push(format!("number {number} was never acknowledged and ran {runs} times"));
        }
    }
    let left = home.task_processes();
    if !left.is_empty() {
        problems.push(format!("left running: {left:?}"));
    }
    if problems.is_empty() {
        return Ok(format!("{} tasks, {ends:?}, no violation", acknowledged.len()));
    }
    for problem in problems.iter().take(20) {
        eprintln!("VIOLATION {problem}");
    }
    bail!("{} violations in {} tasks ({ends:?})", problems.len(), acknowledged.len())
}

fn runs(truth: &Path, number: u64) -> usize {
    std::fs::read_to_string(truth.join(number.to_string())).map_or(0, |text| text.lines().count())
}

fn check_one(home: &Home, truth: &Path, id: &str, number: u64, task: &Value) -> Result<()> {
    let script = Script::of(number);
    let runs = runs(truth, number);
    if task["status"] == "lost" {
        ensure!(runs <= 1, "lost, and ran {runs} times");
        ensure!(task["outcome"]["exit_code"].is_null(), "lost, with an exit code");
        return Ok(());
    }
    ensure!(runs == 1, "ran {runs} times: {task}");
    let expected = if script.code == 0 { "succeeded" } else { "failed" };
    ensure!(
        task["status"] == expected && task["outcome"]["exit_code"] == script.code,
        "{task}, expected code {}",
        script.code
    );
    let lines: String = (1..=script.lines).map(|line| format!("{line}\n")).collect();
    let output = home.output(id);
    ensure!(
        output == format!("{lines}{lines}").into_bytes(),
        "output of {} bytes is not what was printed",
        output.len()
    );
    let took = task["duration_ms"].as_u64().unwrap_or(0);
    ensure!(took >= script.pause_ms, "it took {took} ms, less than its pause of {} ms", script.pause_ms);
    Ok(())
}
