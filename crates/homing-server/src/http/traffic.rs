//! How much is asked of the daemon: connections and answers, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;
use homing_model::meter::Counter;

/// The kinds of answers, by the first digit of their status.
pub(crate) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The counters of one server.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    accepted: Counter,
    open: AtomicU64,
    answers: [Counter; CLASSES.len()],
}

/// A connection on the socket, while it is served.
#[derive(Debug)]
pub(crate) struct Visit(Arc<Traffic>);

impl Traffic {
    /// Somebody has connected on the socket.
    pub(crate) fn enter(self: &Arc<Self>) -> Visit {
        self.accepted.add();
        self.open.fetch_add(1, Ordering::Relaxed);
        Visit(Arc::clone(self))
    }

    /// A request was answered.
    pub(crate) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(counter) = self.answers.get(class) {
            counter.add();
        }
    }

    /// Connections on the socket: those that are open, and all that ever were.
    pub(crate) fn connections(&self) -> (u64, u64) {
        (self.open.load(Ordering::Relaxed), self.accepted.read())
    }

    /// Answers, in the order of [`CLASSES`].
    pub(crate) fn answers(&self) -> [u64; CLASSES.len()] {
        std::array::from_fn(|place| self.answers.get(place).map_or(0, Counter::read))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_is_counted_while_it_lasts_and_an_answer_by_its_class() {
        let traffic = Arc::<Traffic>::default();
        let (one, two) = (traffic.enter(), traffic.enter());
        drop(one);
        assert_eq!(traffic.connections(), (1, 2));
        drop(two);
        assert_eq!(traffic.connections(), (0, 2));
        for status in [200, 204, 404, 101] {
            traffic.answered(StatusCode::from_u16(status).unwrap());
        }
        assert_eq!(traffic.answers(), [1, 2, 0, 1, 0]);
    }
}
