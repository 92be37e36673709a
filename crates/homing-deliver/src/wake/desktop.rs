//! A notification on the desktop, by `notify-send` where that is there.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use homing_model::notice::Notice;
use homing_model::turn;

use super::program;
use super::{Surroundings, Verdict};

const PROGRAM: &str = "notify-send";
const LIMIT: Duration = Duration::from_secs(20);

/// Whether notifications can be shown.
#[must_use]
pub fn is_there(path: &str) -> bool {
    program::find(PROGRAM, path).is_some()
}

pub(super) fn show(notices: &[Notice], surroundings: &Surroundings) -> Verdict {
    let Some(found) = program::find(PROGRAM, &surroundings.path) else {
        return Verdict::Failed("there is no `notify-send` here: install libnotify".to_owned());
    };
    let mut command = Command::new(found);
    command.args(["--app-name=homing", "--", "homing", &turn::line(notices)]);
    command.env("PATH", &surroundings.path);
    // The bus of the user's session, which a daemon was not started in.
    let runtime = format!("/run/user/{}", rustix::process::getuid().as_raw());
    if Path::new(&runtime).join("bus").exists() {
        command
            .env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={runtime}/bus"))
            .env("XDG_RUNTIME_DIR", runtime);
    }
    match program::run(command, b"", LIMIT) {
        Ok(ran) if ran.succeeded() => Verdict::Delivered("notify-send".to_owned()),
        Ok(ran) => Verdict::Failed(format!("notify-send: {}", ran.last_line())),
        Err(error) => Verdict::Failed(format!("notify-send could not be run: {error}")),
    }
}
