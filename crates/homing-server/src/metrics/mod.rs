//! What `/metrics` says, in the words of Prometheus. `docs/metrics.md` has every family; a test compares the two.
//!
//! No label has a value that a caller chooses: the number of series is fixed.

mod process;
mod text;

use homing_api::ListenerInfo;
use homing_engine::Figures;
use homing_engine::metrics::{CARRIERS, ENDS, KINDS, RESULTS};
use homing_model::operator::TargetKind;
use homing_model::{DeliveryState, Status};

use crate::http::traffic::{CLASSES, Traffic};
use text::{Exposition, Kind};

pub(crate) use process::Process;
pub(crate) use text::MEDIA_TYPE;

/// Everything that is told.
#[derive(Debug)]
pub(crate) struct Figured<'a> {
    pub(crate) figures: Figures,
    pub(crate) traffic: &'a Traffic,
    pub(crate) listener: ListenerInfo,
    pub(crate) process: Process,
    /// Whether the configuration file is in force, and how often it was taken over.
    pub(crate) configuration: (bool, u64),
    pub(crate) log_bytes: u64,
}

/// The page.
pub(crate) fn render(figured: &Figured<'_>) -> String {
    let mut page = Exposition::default();
    tasks(&mut page, &figured.figures);
    deliveries(&mut page, &figured.figures);
    store(&mut page, &figured.figures);
    daemon(&mut page, figured);
    traffic(&mut page, figured);
    process::write(&mut page, &figured.process, figured.figures.started_at);
    page.text()
}

fn tasks(page: &mut Exposition, figures: &Figures) {
    page.family(
        "homing_tasks",
        Kind::Gauge,
        "Tasks that are not forgotten, by status; `queued` is the depth of the queue.",
    );
    for status in Status::ALL {
        page.sample(&[("status", &status.to_string())], figures.census.tasks(status));
    }
    page.family(
        "homing_tasks_submitted_total",
        Kind::Counter,
        "Accepted tasks since the daemon's start, by kind.",
    );
    for (kind, count) in KINDS.iter().zip(&figures.submitted) {
        page.sample(&[("kind", kind.as_str())], *count);
    }
    page.family(
        "homing_tasks_joined_total",
        Kind::Counter,
        "Submits that joined a task which was there, by their key.",
    );
    page.sample(&[], figures.joined);
    page.family("homing_tasks_ended_total", Kind::Counter, "Ends since the daemon's start, by status.");
    for (status, count) in ENDS.iter().zip(&figures.ended) {
        page.sample(&[("status", &status.to_string())], *count);
    }
    page.family(
        "homing_attempts_attended",
        Kind::Gauge,
        "Attempts that a shim has now, those of commands that deliver included.",
    );
    page.sample(&[], figures.attended);
    page.family(
        "homing_task_start_seconds",
        Kind::Histogram,
        "From the submit of a task to the start of its command.",
    );
    page.times(&figures.start_delay);
    page.family(
        "homing_task_record_seconds",
        Kind::Histogram,
        "From the end of a task to its durable record.",
    );
    page.times(&figures.record_delay);
}

fn deliveries(page: &mut Exposition, figures: &Figures) {
    page.family(
        "homing_deliveries",
        Kind::Gauge,
        "Deliveries that wait, were given up or were not needed, by where they go.",
    );
    for state in [DeliveryState::Pending, DeliveryState::Superseded, DeliveryState::Dead] {
        for target in TargetKind::ALL.into_iter().filter(|kind| *kind != TargetKind::Inbox) {
            let known = figures.census.deliveries.iter();
            let count =
                known.filter(|(at, to, _)| (*at, *to) == (state, target)).map(|(.., count)| count).sum();
            page.sample(&[("state", state.as_str()), ("target", target.as_str())], count);
        }
    }
    page.family(
        "homing_delivery_attempts_total",
        Kind::Counter,
        "Attempts to deliver: a request of a webhook, a run of a command, a run of what wakes or shows on a desktop.",
    );
    for (by, results) in CARRIERS.iter().zip(&figures.attempts) {
        for (result, count) in RESULTS.iter().zip(results) {
            page.sample(&[("by", by), ("result", result)], *count);
        }
    }
    page.family("homing_inbox_entries", Kind::Gauge, "Notices that wait in inboxes.");
    page.sample(&[], figures.census.inbox);
}

fn store(page: &mut Exposition, figures: &Figures) {
    page.family("homing_store_commits_total", Kind::Counter, "Transactions of the ledger.");
    page.sample(&[], figures.work.commits);
    page.family(
        "homing_store_failures_total",
        Kind::Counter,
        "Transactions of the ledger that failed, on a full disk for instance.",
    );
    page.sample(&[], figures.work.failures);
    page.family("homing_store_batch_size", Kind::Histogram, "Operations that shared a transaction.");
    page.sizes(&figures.work.batch);
    page.family(
        "homing_store_commit_seconds",
        Kind::Histogram,
        "What a transaction took, until it was safe.",
    );
    page.times(&figures.work.time);
    page.family("homing_store_bytes", Kind::Gauge, "The size of the ledger and of its log.");
    page.sample(&[("file", "database")], figures.ledger_bytes);
    page.sample(&[("file", "wal")], figures.ledger_log_bytes);
    page.family("homing_home_free_bytes", Kind::Gauge, "What is free on the disk of the home.");
    page.sample(&[], figures.free_bytes);
}

fn daemon(page: &mut Exposition, figured: &Figured<'_>) {
    let Figured { figures, configuration, log_bytes, .. } = figured;
    page.family("homing_build_info", Kind::Gauge, "Always 1; the label says which version serves.");
    page.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.family(
        "homing_degraded",
        Kind::Gauge,
        "1 while new tasks are refused because the ledger cannot be written.",
    );
    page.sample(&[], u64::from(figures.degraded));
    page.family(
        "homing_keeper_up",
        Kind::Gauge,
        "1 while there is a keeper, which restarts the daemon and forks shims.",
    );
    page.sample(&[], u64::from(figures.keeper));
    page.family("homing_reconcile_passes_total", Kind::Counter, "Passes of the safety net.");
    page.sample(&[], figures.reconcile.passes);
    page.family("homing_reconcile_adopted_total", Kind::Counter, "Tasks taken over from an earlier daemon.");
    page.sample(&[], figures.reconcile.adopted);
    page.family(
        "homing_reconcile_repaired_total",
        Kind::Counter,
        "Live tasks that nobody attended and that were taken up again.",
    );
    page.sample(&[], figures.reconcile.repaired);
    page.family("homing_reconcile_errors", Kind::Gauge, "Tasks that the last pass could not judge.");
    page.sample(&[], figures.reconcile.errors.len() as u64);
    page.family("homing_reconcile_last_duration_seconds", Kind::Gauge, "What the last pass took.");
    page.scaled(&[], figures.reconcile.last_duration_ms, 1_000);
    page.family(
        "homing_config_in_force",
        Kind::Gauge,
        "1 while config.toml is in force, 0 while it is broken and the last good one is.",
    );
    page.sample(&[], u64::from(configuration.0));
    page.family(
        "homing_config_reloads_total",
        Kind::Counter,
        "How often a changed config.toml was taken over.",
    );
    page.sample(&[], configuration.1);
    page.family("homing_log_bytes", Kind::Gauge, "What daemon.log and the full ones beside it take.");
    page.sample(&[], *log_bytes);
}

fn traffic(page: &mut Exposition, figured: &Figured<'_>) {
    let (open, accepted) = figured.traffic.connections();
    page.family(
        "homing_connections",
        Kind::Gauge,
        "Connections now, on the socket and on the loopback listener.",
    );
    page.sample(&[("at", "socket")], open);
    page.sample(&[("at", "listener")], figured.listener.connections);
    page.family(
        "homing_connections_accepted_total",
        Kind::Counter,
        "Connections on the socket since the daemon's start.",
    );
    page.sample(&[], accepted);
    page.family("homing_http_answers_total", Kind::Counter, "Answers by the class of their status.");
    for (class, count) in CLASSES.iter().zip(figured.traffic.answers()) {
        page.sample(&[("code", class)], count);
    }
    page.family(
        "homing_listener_refused_total",
        Kind::Counter,
        "Requests on the listener that were not let in, and those of them without the token.",
    );
    page.sample(&[("reason", "token")], figured.listener.failed_auth);
    page.sample(
        &[("reason", "other")],
        figured.listener.refused.saturating_sub(figured.listener.failed_auth),
    );
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use homing_model::meter::Histogram;

    use super::*;

    fn page() -> String {
        let (times, sizes) = (Histogram::of_times(), Histogram::of_sizes());
        times.observe(3_000);
        sizes.observe(2);
        let work =
            homing_engine::LedgerWork { time: times.read(), batch: sizes.read(), ..Default::default() };
        let figures = Figures {
            work,
            start_delay: times.read(),
            record_delay: times.read(),
            submitted: vec![7, 0, 0],
            ended: vec![0; ENDS.len()],
            attempts: vec![vec![0; RESULTS.len()]; CARRIERS.len()],
            ..Figures::default()
        };
        render(&Figured {
            figures,
            traffic: &Traffic::default(),
            listener: ListenerInfo::default(),
            process: Process::default(),
            configuration: (true, 0),
            log_bytes: 0,
        })
    }

    #[test]
    fn every_family_is_told_of_in_the_docs_and_no_other() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let docs = std::fs::read_to_string(path).unwrap();
        let page = page();
        let told: BTreeSet<_> =
            page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        let documented: BTreeSet<_> = docs
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .filter(|name| name.starts_with("homing_") || name.starts_with("process_"))
            .filter(|name| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()))
            .collect();
        assert_eq!(told, documented);
    }

    #[test]
    fn every_sample_belongs_to_the_family_above_it_and_none_is_told_twice() {
        let page = page();
        let (mut family, mut seen) = ("", BTreeSet::new());
        for line in page.lines() {
            if let Some(declared) = line.strip_prefix("# TYPE ") {
                family = declared.split(' ').next().unwrap();
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(series.starts_with(family) && seen.insert(series.to_owned()), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(page.contains("homing_tasks_submitted_total{kind=\"command\"} 7\n"), "{page}");
        assert!(page.contains("homing_task_start_seconds_bucket{le=\"0.0025\"} 0\n"), "{page}");
        assert!(page.contains("homing_task_start_seconds_bucket{le=\"0.005\"} 1\n"), "{page}");
        assert!(page.contains("homing_task_start_seconds_bucket{le=\"+Inf\"} 1\n"), "{page}");
        assert!(page.contains("homing_task_start_seconds_sum 0.003\n"), "{page}");
        assert!(seen.len() < 200, "the number of series is fixed and small: {}", seen.len());
    }
}
