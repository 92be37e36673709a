//! Webhooks through `kill -9` of the daemon at random moments: none lost, none under two ids, the same bytes every time. Keeps P5.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use crate::ground::drift;
use crate::home::Home;
use crate::random::Random;
use crate::receiver::Receiver;
use crate::script::{Request, Script};
use crate::wait::wait_for;

/// The length of a task, and of the time after which the daemon is killed, in milliseconds: before, at and after its end.
const TASK_MS: u64 = 80;
const KILL_MS: u64 = 140;

/// What was seen.
#[derive(Debug, Default)]
pub struct Kills {
    /// Daemons killed.
    pub kills: u64,
    /// Tasks, each with a webhook.
    pub tasks: usize,
    /// Requests at the receiver.
    pub requests: usize,
    /// The longest that a webhook needed, from the kill on.
    pub slowest: Duration,
}

impl fmt::Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, tasks, requests, slowest } = self;
        let again = requests - tasks;
        write!(
            f,
            "{kills} kills, {tasks} webhooks: all arrived, {again} of them twice with the same id and bytes, the slowest {:.2} s after the kill",
            slowest.as_secs_f64()
        )
    }
}

fn task(request: &Request) -> String {
    request.json()["data"]["task"]["id"].as_str().unwrap_or_default().to_owned()
}

impl Home {
    /// Rounds of: a few tasks with a webhook, `kill -9` of the daemon at a random moment, and then nothing but waiting for what must arrive.
    ///
    /// Panics if a webhook is lost, has two ids, or is not the same when it comes again.
    #[must_use]
    pub fn webhooks_through_kills(&self, rounds: u64, seed: u64) -> Kills {
        let receiver = Receiver::new([Script::status(200)]);
        let url = format!("http://127.0.0.1:{}/hook", receiver.port());
        let mut random = Random::new(seed);
        let mut tally = Kills::default();
        let mut all = BTreeSet::new();
        for round in 0..rounds {
            let count = 1 + random.below(4);
            let ids = (0..count).map(|_| {
                let (pause, code) = (random.below(TASK_MS), random.below(3));
                self.submit(&["--notify", &url], &format!("sleep 0.{pause:03}; exit {code}"))
            });
            let ids: BTreeSet<String> = ids.collect();
            let daemon = wait_for("the daemon", || self.find_daemon()).pid;
            drift(Duration::from_millis(random.below(KILL_MS)));
            self.kill(daemon);
            let began = now();
            // Nobody asks for anything from here on.
            wait_for(&format!("the webhooks of round {round}, seed {seed}"), || {
                let there = receiver.look(|requests| requests.iter().map(task).collect::<BTreeSet<_>>());
                ids.is_subset(&there).then_some(())
            });
            tally.slowest = tally.slowest.max(began.elapsed());
            tally.kills += 1;
            all.extend(ids);
        }
        wait_for("every delivery to be settled", || {
            (self.cli(["status", "--json"]).json()["deliveries"]["pending"] == 0).then_some(())
        });
        let requests = receiver.requests();
        tally.tasks = all.len();
        tally.requests = requests.len();
        same_id_same_bytes(&requests, &all);
        tally
    }
}

/// Each task has one id, and each id one body.
fn same_id_same_bytes(requests: &[Request], tasks: &BTreeSet<String>) {
    let mut seen: BTreeMap<String, &Request> = BTreeMap::new();
    for request in requests {
        let task = task(request);
        assert!(tasks.contains(&task), "a webhook of a task that was never submitted: {task}");
        let first = seen.entry(task.clone()).or_insert(request);
        let ids = (first.header("webhook-id"), request.header("webhook-id"));
        assert_eq!(ids.0, ids.1, "two ids for {task}");
        assert_eq!(first.body, request.body, "two bodies for {task}");
    }
    assert_eq!(seen.len(), tasks.len(), "of some tasks nothing came");
}

#[expect(clippy::disallowed_methods, reason = "how long it took by the real clock is what is told")]
fn now() -> Instant {
    Instant::now()
}
