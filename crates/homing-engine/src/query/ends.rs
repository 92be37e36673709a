//! Who waits for the end of which task.

use std::collections::HashMap;

use homing_model::TaskId;
use homing_store::Record;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Who waits for the end of which task. Woken on every way a task can end, being forgotten included.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    waiting: Mutex<HashMap<TaskId, watch::Sender<Option<Record>>>>,
}

impl Ends {
    /// Subscribes before the store is asked, so that no end falls in between.
    pub(crate) fn subscribe(&self, id: &TaskId) -> watch::Receiver<Option<Record>> {
        let mut waiting = self.waiting.lock();
        waiting.entry(id.clone()).or_insert_with(|| watch::channel(None).0).subscribe()
    }

    /// A task has ended, durably.
    pub(crate) fn announce(&self, record: &Record) {
        let mut waiting = self.waiting.lock();
        if let Some(sender) = waiting.remove(&record.id) {
            sender.send_replace(Some(record.clone()));
        }
    }

    /// Lets go of entries that nobody waits on.
    pub(crate) fn prune(&self) {
        let mut waiting = self.waiting.lock();
        waiting.retain(|_, sender| sender.receiver_count() > 0);
    }
}
