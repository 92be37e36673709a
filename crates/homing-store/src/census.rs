//! What is in the ledger, counted: for whoever watches a daemon from outside.

use homing_model::meter::{Counter, Histogram, Reading};
use homing_model::operator::TargetKind;
use homing_model::{DeliveryState, Status};

/// How much there is of everything. What is not named there is none of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Census {
    /// Tasks that are not forgotten, by status; commands that deliver are not counted.
    pub tasks: Vec<(Status, u64)>,
    /// Deliveries that wait, were given up or were not needed, by where they go.
    pub deliveries: Vec<(DeliveryState, TargetKind, u64)>,
    /// Notices that wait in inboxes.
    pub inbox: u64,
}

impl Census {
    /// How many tasks have this status.
    #[must_use]
    pub fn tasks(&self, status: Status) -> u64 {
        self.tasks.iter().filter(|(known, _)| *known == status).map(|(_, count)| count).sum()
    }
}

/// What a store has done since it was opened.
#[derive(Debug)]
pub struct Meters {
    /// Transactions that were committed.
    pub commits: Counter,
    /// Transactions that failed, whatever became of their operations then.
    pub failures: Counter,
    /// How many operations shared a transaction.
    pub batch: Histogram<9>,
    /// What a transaction took, from its beginning until it was safe, in microseconds.
    pub time: Histogram<14>,
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            commits: Counter::default(),
            failures: Counter::default(),
            batch: Histogram::of_sizes(),
            time: Histogram::of_times(),
        }
    }
}

impl Meters {
    /// How they stand.
    #[must_use]
    pub fn read(&self) -> Work {
        Work {
            commits: self.commits.read(),
            failures: self.failures.read(),
            batch: self.batch.read(),
            time: self.time.read(),
        }
    }
}

/// Meters as they were read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Work {
    /// Transactions that were committed.
    pub commits: u64,
    /// Transactions that failed.
    pub failures: u64,
    /// How many operations shared one.
    pub batch: Reading,
    /// What one took, in microseconds.
    pub time: Reading,
}
