//! Nobody is there to confirm an end: bring the daemon back. Keeps P4.

use std::path::Path;

use crate::home;
use crate::keeper;

/// Asks the keeper for a daemon, or starts a keeper. What cannot succeed is given up quietly; the record is durable.
pub(super) fn revive(path: &Path) {
    if home::is_stopped(path) {
        return;
    }
    if keeper::request_start_without_waiting(path).is_ok() {
        return;
    }
    // The new keeper must be nobody's child: not in our tree, or a later look at it would count it as the task's.
    let _ = rustix::process::set_child_subreaper(None);
    let Some(program) = home::recorded_program(path) else { return };
    if keeper::spawn(path, &program, keeper::Mode::Daemon).is_ok() {
        let _ = keeper::request_start_without_waiting(path);
    }
}
