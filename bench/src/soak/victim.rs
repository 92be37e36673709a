//! Whom the soak kills.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use homing_sys::home::KEEPER_LOCK;
use homing_sys::process;
use homing_testkit::{Home, Random, drift, freeze, thaw};

use super::field::Field;
use super::story::{Away, now};

/// When the killing ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// After so many.
    Kills(u64),
    /// After this time.
    Time(Duration),
}

/// How often each was killed.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    daemon: u64,
    keeper: u64,
    both: u64,
    shim: u64,
    task: u64,
}

impl Tally {
    pub(crate) const fn all(&self) -> u64 {
        self.daemon + self.keeper + self.both + self.shim + self.task
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { daemon, keeper, both, shim, task } = self;
        write!(f, "daemon {daemon}, keeper {keeper}, both at once {both}, shims {shim}, tasks {task}")
    }
}

/// Kills, with a random pause between, until it is time.
pub(crate) fn kill(field: &Field, until: Until, seed: u64) -> Result<Tally> {
    let (home, began) = (&field.home, Instant::now());
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    let mut misses = 0;
    let (mut told, mut minute) = (0, 1);
    loop {
        match until {
            Until::Kills(kills) if tally.all() >= kills => return Ok(tally),
            Until::Time(time) if began.elapsed() >= time => return Ok(tally),
            Until::Kills(_) | Until::Time(_) if field.is_over() => return Ok(tally),
            Until::Kills(_) | Until::Time(_) => {}
        }
        field.pause(&mut random, if matches!(until, Until::Kills(_)) { 200 } else { 700 });
        let hit = match random.below(12) {
            0..=5 => {
                let daemon = home.find_daemon().map(|found| found.pid);
                let from = now();
                let hit = one(home, daemon, &mut tally.daemon);
                note(field, daemon, from);
                hit
            }
            6 | 7 => one(home, keeper(home), &mut tally.keeper),
            8 => {
                let keeper = keeper(home);
                let daemon = home.find_daemon().map(|found| found.pid);
                let both = keeper.is_some() && daemon.is_some();
                let from = now();
                for pid in [keeper, daemon].into_iter().flatten() {
                    home.kill(pid);
                }
                note(field, daemon, from);
                tally.both += u64::from(both);
                both
            }
            9 => task(field, &mut random, &mut tally.task),
            _ => shim(field, &mut random, &mut tally.shim),
        };
        misses = if hit { 0 } else { misses + 1 };
        ensure!(misses < 300, "nobody to kill was found for a long time: homing did not come back");
        if tally.all() >= told + 50 || began.elapsed() >= Duration::from_secs(60 * minute) {
            told = tally.all();
            minute = began.elapsed().as_secs() / 60 + 1;
            eprintln!("  {:.0} s: {told} kills", began.elapsed().as_secs_f64());
        }
    }
}

/// Notes that a daemon is away since then. Only once it is gone, so that whoever answers from now on is the next.
fn note(field: &Field, daemon: Option<u32>, from: u64) {
    let Some(daemon) = daemon else { return };
    while process::stat(daemon).is_some_and(|found| !found.zombie && is_daemon(daemon)) {
        drift(Duration::from_millis(1));
    }
    field.story().killed.away.push(Away { from, until: None });
}

/// Whether this is still a daemon, and not somebody who was given its number.
fn is_daemon(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| line.split(|byte| *byte == 0).nth(1) == Some(b"__homing-daemon"))
}

/// Looks for the next daemon after each kill, until nobody kills any more and the last one was found.
pub(crate) fn watch(field: &Field, killing: &AtomicBool) {
    loop {
        let open = field.story().killed.away.iter().filter(|away| away.until.is_none()).count();
        if open == 0 && !killing.load(Ordering::Acquire) {
            return;
        }
        if open > 0 {
            let known = field.story().killed.away.len();
            if field.ask("GET", "/v1/status", None).is_some() {
                let (mut story, at) = (field.story(), now());
                // Who was killed while this was asked is not among those.
                let before = story.killed.away.iter_mut().take(known);
                before.filter(|away| away.until.is_none()).for_each(|away| away.until = Some(at));
            }
        }
        drift(Duration::from_millis(3));
    }
}

/// By its own word: a shim that it has just forked has its name for a moment, also when it is gone itself by then.
fn keeper(home: &Home) -> Option<u32> {
    let said = std::fs::read_to_string(home.path().join(KEEPER_LOCK)).ok()?;
    let (pid, start) = said.trim().split_once(' ')?;
    let (pid, start): (u32, u64) = (pid.parse().ok()?, start.parse().ok()?);
    process::stat(pid).filter(|found| found.start == start && !found.zombie).map(|found| found.pid)
}

fn is_named(pid: u32, name: &str) -> bool {
    process::stat(pid).is_some_and(|found| found.name == name)
}

fn one(home: &Home, pid: Option<u32>, count: &mut u64) -> bool {
    if let Some(pid) = pid {
        home.kill(pid);
        *count += 1;
    }
    pid.is_some()
}

/// A shim, and its children as they are while it stands still.
fn frozen_shim(field: &Field, random: &mut Random) -> Option<(u32, Vec<u32>)> {
    let shim = random.pick(&field.home.processes("homing-shim"))?.pid;
    freeze(shim);
    // A command that is about to be executed has its shim's name for a moment.
    let found = process::stat(shim)?;
    if found.name != "homing-shim" || is_named(found.parent, "homing-shim") {
        thaw(shim);
        return None;
    }
    let children = process::all().into_iter().filter(|found| found.parent == shim).map(|found| found.pid);
    Some((shim, children.collect()))
}

/// The task whose folder a shim holds open.
fn task_of(shim: u32) -> Option<String> {
    let open = std::fs::read_dir(format!("/proc/{shim}/fd")).ok()?;
    open.flatten().find_map(|entry| {
        let held = std::fs::read_link(entry.path()).ok()?;
        let id = held.iter().skip_while(|part| *part != "tasks").nth(1)?;
        Some(id.to_str()?.to_owned())
    })
}

/// A shim: the tasks of its children may be `lost`, and no others.
fn shim(field: &Field, random: &mut Random, count: &mut u64) -> bool {
    let Some((shim, children)) = frozen_shim(field, random) else { return false };
    {
        let killed = &mut field.story().killed;
        killed.shims += 1;
        killed.touched.extend(children.iter().copied().chain([shim]));
        killed.under_shims.extend(children);
        killed.of_shims.extend(task_of(shim));
    }
    field.home.kill(shim);
    *count += 1;
    true
}

/// The main process of a task, or what else its shim has as a child.
fn task(field: &Field, random: &mut Random, count: &mut u64) -> bool {
    let Some((shim, children)) = frozen_shim(field, random) else { return false };
    let child = random.pick(&children).copied();
    if let Some(child) = child {
        {
            let killed = &mut field.story().killed;
            killed.tasks.insert(child);
            killed.touched.extend([shim, child]);
        }
        field.home.kill(child);
        *count += 1;
    }
    thaw(shim);
    child.is_some()
}
