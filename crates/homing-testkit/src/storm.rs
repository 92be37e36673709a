//! A storm of events, read by clients that come and go while the daemon is killed: each sees every one, once, in order. Keeps P3.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::home::Home;
use crate::random::Random;
use crate::wait::wait_for;

/// What to do.
#[derive(Debug, Clone, Copy)]
pub struct Storm {
    /// Events, at least.
    pub events: u64,
    /// Clients.
    pub clients: u64,
    /// How often the daemon is killed.
    pub kills: u64,
    /// For all that is random.
    pub seed: u64,
}

/// What was seen.
#[derive(Debug)]
pub struct Stormed {
    /// Events in the log, which each client has seen.
    pub events: usize,
    /// Connections of all clients.
    pub connections: u64,
    /// Daemons that served.
    pub daemons: usize,
}

impl fmt::Display for Stormed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, connections, daemons } = self;
        write!(
            f,
            "{events} events under {daemons} daemons, {connections} connections: each client saw each once, in order"
        )
    }
}

/// Those who write at once.
const WRITERS: u64 = 16;

/// What all threads share.
#[derive(Default)]
struct Progress {
    written: AtomicU64,
    connections: AtomicU64,
    /// The last event that everybody must see, once it is known.
    last: AtomicU64,
    over: AtomicBool,
}

impl Home {
    /// Lets it rage.
    ///
    /// Panics if a client misses an event, sees one twice, or out of order.
    #[must_use]
    pub fn events_through_kills(&self, storm: Storm) -> Stormed {
        let task = self.submit(&["--stdin", "pipe"], "read line");
        let _ = self.until_status(&task, "running");
        let progress = Progress::default();
        let (log, seen) = std::thread::scope(|scope| {
            let progress = &progress;
            let clients: Vec<_> = (0..storm.clients)
                .map(|number| {
                    let random = Random::new(storm.seed.wrapping_add(number));
                    scope.spawn(move || self.read_all(random, progress))
                })
                .collect();
            for _ in 0..WRITERS {
                scope.spawn(|| self.write_events(&task, storm.events, progress));
            }
            for kill in 1..=storm.kills {
                let due = storm.events * kill / (storm.kills + 1);
                wait_for("the next kill", || (progress.written.load(Ordering::Relaxed) >= due).then_some(()));
                let old = self.kill_daemon();
                let _ = self.next_daemon(old);
            }
            wait_for("the last event", || {
                (progress.written.load(Ordering::Relaxed) >= storm.events).then_some(())
            });
            let log = wait_for("the log", || self.log().ok());
            progress.last.store(*log.last().expect("events"), Ordering::Relaxed);
            let seen: Vec<Vec<u64>> =
                clients.into_iter().map(|client| client.join().expect("a client")).collect();
            progress.over.store(true, Ordering::Relaxed);
            (log, seen)
        });
        for ids in seen {
            let upto: Vec<u64> = ids.into_iter().take_while(|id| Some(id) <= log.last()).collect();
            let missed: BTreeSet<_> = log.iter().filter(|id| !upto.contains(id)).take(5).collect();
            assert!(
                upto == log,
                "a client saw {} of {} events; missed first: {missed:?}",
                upto.len(),
                log.len()
            );
        }
        let daemons = self.cli(["events"]).ok().text().matches("\"daemon.started\"").count();
        Stormed { events: log.len(), connections: progress.connections.into_inner(), daemons }
    }

    /// Makes events until it is over: first as many as are wanted, then now and then one, so that nobody waits in vain.
    fn write_events(&self, task: &str, wanted: u64, progress: &Progress) {
        let target = format!("/v1/tasks/{task}/progress");
        while !progress.over.load(Ordering::Relaxed) {
            let number = progress.written.load(Ordering::Relaxed);
            if number >= wanted && progress.last.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
                continue;
            }
            let body = json!({ "text": format!("step {number}") });
            let headers = [("content-type", "application/json")];
            let answer = self.try_http("POST", &target, &headers, body.to_string().as_bytes());
            if answer.is_ok_and(|answer| answer.status == 200) {
                progress.written.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Reads until the last event, by as many connections as chance wants.
    fn read_all(&self, mut random: Random, progress: &Progress) -> Vec<u64> {
        let mut seen: Vec<u64> = Vec::new();
        loop {
            let cursor = seen.last().copied().unwrap_or(0).to_string();
            let stream = self.try_http("GET", "/v1/events?after=0", &[("last-event-id", &cursor)], b"");
            let Ok(stream) = stream else {
                std::thread::yield_now();
                continue;
            };
            progress.connections.fetch_add(1, Ordering::Relaxed);
            let many = usize::try_from(1 + random.below(900)).unwrap_or(1);
            for event in stream.take(many) {
                seen.extend(event.id.and_then(|id| id.parse::<u64>().ok()));
                let last = progress.last.load(Ordering::Relaxed);
                if last > 0 && seen.last().is_some_and(|id| *id >= last) {
                    return seen;
                }
            }
        }
    }

    /// The ids in the log.
    fn log(&self) -> io::Result<Vec<u64>> {
        let answer = self.try_http("GET", "/v1/events?after=0&follow=false", &[], b"")?.try_whole()?;
        let lines = String::from_utf8_lossy(&answer.body).into_owned();
        let ids = lines.lines().map(|line| {
            let event: Value = serde_json::from_str(line).map_err(io::Error::other)?;
            event["seq"].as_u64().ok_or_else(|| io::Error::other("an event without a place"))
        });
        ids.collect()
    }
}
