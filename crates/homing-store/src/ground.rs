//! What a record stands on, made while the record is written: on a task's way both wait for the disk, and need not wait for each other.
//!
//! Keeps P10: the record is committed only once its ground is there, and undone without it. Whoever makes it does so at once and waits for
//! nothing meanwhile, since the store does wait for him.

use std::sync::{Arc, OnceLock};

/// What is being made, for whoever writes the record.
#[derive(Debug, Clone)]
pub struct Ground(Arc<OnceLock<bool>>);

/// The same, for whoever makes it. Dropped without a word, it is not there.
#[derive(Debug)]
#[must_use]
pub struct Making(Arc<OnceLock<bool>>);

impl Ground {
    /// Begins.
    pub fn new() -> (Making, Self) {
        let word = Arc::new(OnceLock::new());
        (Making(Arc::clone(&word)), Self(word))
    }

    /// Waits for the word, and says whether it is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        *self.0.wait()
    }
}

impl Making {
    /// Says that it is there.
    pub fn made(self) {
        let _ = self.0.set(true);
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // Whatever was said before stands.
        let _ = self.0.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_once_it_was_said_and_never_if_nobody_can_say_it_any_more() {
        let (making, ground) = Ground::new();
        making.made();
        assert!(ground.is_there());
        let (making, ground) = Ground::new();
        let waiting = std::thread::spawn(move || ground.is_there());
        let maker = std::thread::spawn(move || {
            let _making = making;
            panic!("in the middle of it");
        });
        assert!(maker.join().is_err());
        assert!(!waiting.join().unwrap());
    }
}
