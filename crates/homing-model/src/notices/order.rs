//! The wake order: what the engine writes to the input of the process that wakes an agent. Both
//! sides use this one type.
//!
//! A daemon may be replaced while an order waits for its process, so the reader is sometimes of
//! another release than the writer. A reader ignores fields that it does not know, and refuses an
//! order of a newer version: a new version is needed only when an old reader would do the wrong
//! thing. An order without a version is one of version 1.

use serde::{Deserialize, Serialize};

use crate::id::NoticeId;
use crate::notice::Notice;
use crate::route::Route;

/// The version that this release writes.
const VERSION: u32 = 1;

/// Which notices are delivered to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WakeOrder {
    #[serde(default = "first_version")]
    version: u32,
    /// What is delivered, oldest first.
    pub notices: Vec<Notice>,
    /// The wake address. Absent if none was found at submit.
    pub route: Option<Route>,
    /// Whether the agent may be run for one more turn where no process has the session open.
    #[serde(default)]
    pub runs: bool,
    /// Which of the notices an earlier attempt may have delivered without evidence in time.
    #[serde(default)]
    pub tried: Vec<NoticeId>,
}

/// Why an order is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum BadOrder {
    /// Not an order.
    #[error("the order cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Written by a newer release.
    #[error("the order has version {0}, and this program reads up to {VERSION}: it is older than the daemon")]
    TooNew(u32),
}

impl WakeOrder {
    /// An order of the current version.
    #[must_use]
    pub const fn new(notices: Vec<Notice>, route: Option<Route>, runs: bool, tried: Vec<NoticeId>) -> Self {
        Self { version: VERSION, notices, route, runs, tried }
    }

    /// Reads an order of this or an earlier release.
    ///
    /// # Errors
    /// If it is not an order, or one of a newer version.
    pub fn from_json(bytes: &[u8]) -> Result<Self, BadOrder> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default = "first_version")]
            version: u32,
        }
        match serde_json::from_slice::<Head>(bytes)?.version {
            newer if newer > VERSION => Err(BadOrder::TooNew(newer)),
            _ => Ok(serde_json::from_slice(bytes)?),
        }
    }
}

const fn first_version() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    fn notice() -> Notice {
        let body = serde_json::json!({
            "id": NoticeId::from_entropy(1), "seq": 3, "at": crate::Timestamp::from_millis(1),
            "task": {"id": crate::TaskId::from_entropy(2), "owner": "ann", "command": "make", "labels": {}},
            "type": "task.quiet", "quiet_ms": 5, "waiting_for_input": false,
        });
        serde_json::from_value(body).expect("a notice")
    }

    #[test]
    fn an_order_reads_back_as_it_was_written() {
        let route = Session::named("claude:s1").map(Route::Session);
        let order = WakeOrder::new(vec![notice()], route, true, vec![NoticeId::from_entropy(1)]);
        let json = serde_json::to_vec(&order).unwrap();
        assert_eq!(WakeOrder::from_json(&json).unwrap(), order);
    }

    #[test]
    fn an_order_without_a_version_or_with_unknown_fields_is_read() {
        for text in
            [r#"{"notices":[],"route":"desktop"}"#, r#"{"notices":[],"route":"desktop","version":1,"hue":3}"#]
        {
            let order = WakeOrder::from_json(text.as_bytes()).unwrap();
            assert_eq!(order, WakeOrder::new(Vec::new(), Some(Route::Desktop), false, Vec::new()), "{text}");
        }
    }

    #[test]
    fn an_order_of_a_newer_version_is_refused_by_its_number() {
        let refused = WakeOrder::from_json(br#"{"version":2,"envelope":{}}"#).unwrap_err();
        assert!(refused.to_string().contains("version 2"), "{refused}");
        assert!(matches!(WakeOrder::from_json(b"{}"), Err(BadOrder::Malformed(_))));
    }
}
