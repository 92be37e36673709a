//! Whom the soak kills.

use std::fmt;
use std::sync::PoisonError;
use std::time::Duration;

use anyhow::{Result, ensure};
use homing_shim::process;
use homing_testkit::Home;

use super::History;
use super::random::Random;

/// How often each was killed.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    daemon: u64,
    keeper: u64,
    both: u64,
    shim: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { daemon, keeper, both, shim } = self;
        write!(f, "daemon {daemon}, keeper {keeper}, both at once {both}, shims {shim}")
    }
}

/// Kills so many times, with a random pause between.
pub(crate) fn kill(home: &Home, history: &History, kills: u64, seed: u64) -> Result<Tally> {
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    let mut misses = 0;
    let mut done = 0;
    while done < kills {
        std::thread::sleep(Duration::from_millis(random.below(200)));
        let hit = match random.below(10) {
            0..=5 => one(home, home.find_daemon().map(|found| found.pid), &mut tally.daemon),
            6 | 7 => one(home, keeper(home), &mut tally.keeper),
            8 => {
                let keeper = keeper(home);
                let daemon = home.find_daemon().map(|found| found.pid);
                let both = keeper.is_some() && daemon.is_some();
                for pid in [keeper, daemon].into_iter().flatten() {
                    home.kill(pid);
                }
                tally.both += u64::from(both);
                both
            }
            _ => shim(home, history, &mut random, &mut tally.shim),
        };
        done += u64::from(hit);
        misses = if hit { 0 } else { misses + 1 };
        ensure!(misses < 300, "nobody to kill was found for a long time: homing did not come back");
        if hit && done.is_multiple_of(50) {
            eprintln!("  {done} kills");
        }
    }
    Ok(tally)
}

fn keeper(home: &Home) -> Option<u32> {
    home.processes("homing-keeper").first().map(|found| found.pid)
}

fn one(home: &Home, pid: Option<u32>, count: &mut u64) -> bool {
    if let Some(pid) = pid {
        home.kill(pid);
        *count += 1;
    }
    pid.is_some()
}

/// A shim, with its children noted first: their task may be `lost`, and no other.
fn shim(home: &Home, history: &History, random: &mut Random, count: &mut u64) -> bool {
    let shims = home.processes("homing-shim");
    let at = usize::try_from(random.below(shims.len() as u64)).unwrap_or(0);
    let Some(shim) = shims.get(at) else { return false };
    let children = process::all().into_iter().filter(|found| found.parent == shim.pid).map(|found| found.pid);
    let mut killed = history.shims_killed.lock().unwrap_or_else(PoisonError::into_inner);
    killed.push(shim.pid);
    killed.extend(children);
    drop(killed);
    home.kill(shim.pid);
    *count += 1;
    true
}
