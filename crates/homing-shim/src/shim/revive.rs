//! Nobody is there to confirm an end: bring the daemon back. Keeps P4.

use std::path::Path;
use std::time::Duration;

use crate::keeper;
use homing_sys::home;

/// How long a daemon may take to come back. Whether it does is no longer this process's business: the record is durable.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the keeper for a daemon, starting a keeper if there is none. What cannot succeed is given up quietly.
pub(super) fn revive(path: &Path) {
    if home::is_stopped(path) {
        return;
    }
    // A new keeper must be nobody's child: not in our tree, or a later look at it would count it as the task's.
    let _ = rustix::process::set_child_subreaper(None);
    // It answers, so that we are still there when the keeper looks at who is asking: of the dead it takes no orders.
    let _ = keeper::request_start(path, home::recorded_program(path).as_deref(), PATIENCE);
}
