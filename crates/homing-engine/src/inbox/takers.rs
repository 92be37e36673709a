//! Who waits to take something out of an inbox: a process that tells its session by itself. Known in memory only, since whoever waits
//! does so on a connection to this very engine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts those who wait, by owner.
#[derive(Debug, Clone, Default)]
pub(crate) struct Takers(Arc<Mutex<HashMap<String, usize>>>);

/// One who waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    takers: Takers,
    owner: String,
}

impl Takers {
    pub(crate) fn enter(&self, owner: &str) -> Waiting {
        *self.lock().entry(owner.to_owned()).or_default() += 1;
        Waiting { takers: self.clone(), owner: owner.to_owned() }
    }

    pub(crate) fn any(&self, owner: &str) -> bool {
        self.lock().contains_key(owner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut takers = self.takers.lock();
        if let Some(count) = takers.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                takers.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_awaited_until_the_last_one_leaves() {
        let takers = Takers::default();
        let (one, two) = (takers.enter("a"), takers.enter("a"));
        assert!(takers.any("a") && !takers.any("b"));
        drop(one);
        assert!(takers.any("a"));
        drop(two);
        assert!(!takers.any("a") && takers.lock().is_empty());
    }
}
