//! Waits for an inbox that are open: their owners need not be woken. Kept in memory, since each is a connection to this very engine.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// Counts them by owner.
#[derive(Debug, Clone, Default)]
pub(crate) struct InboxWaiters(Arc<Mutex<HashMap<String, usize>>>);

/// One of them, until this is dropped.
#[derive(Debug)]
pub(crate) struct Connected {
    waiters: InboxWaiters,
    owner: String,
}

impl InboxWaiters {
    pub(crate) fn enter(&self, owner: &str) -> Connected {
        *self.lock().entry(owner.to_owned()).or_default() += 1;
        Connected { waiters: self.clone(), owner: owner.to_owned() }
    }

    pub(crate) fn any(&self, owner: &str) -> bool {
        self.lock().contains_key(owner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock()
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut waiters = self.waiters.lock();
        if let Some(count) = waiters.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                waiters.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_awaited_until_its_last_waiter_leaves() {
        let waiters = InboxWaiters::default();
        let (one, two) = (waiters.enter("a"), waiters.enter("a"));
        assert!(waiters.any("a") && !waiters.any("b"));
        drop(one);
        assert!(waiters.any("a"));
        drop(two);
        assert!(!waiters.any("a") && waiters.lock().is_empty());
    }
}
