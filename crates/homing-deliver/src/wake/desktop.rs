//! A notification on the desktop, by `notify-send`, on the user's session bus.
//!
//! The bus is the one that the daemon's environment named when it was started, while that is there, else the one where systemd puts it. The
//! command that shows it runs under a shim with an environment of its own, so it is told which bus that is.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use homing_model::notice::Notice;
use homing_model::turn;

use homing_agents::wake::{Surroundings, Verdict, program};

const PROGRAM: &str = "notify-send";
const LIMIT: Duration = Duration::from_secs(20);

/// Why no notification can be shown here; none if one can.
#[must_use]
pub fn refusal(surroundings: &Surroundings) -> Option<String> {
    if program::find(PROGRAM, &surroundings.path).is_none() {
        return Some(
            "there is no `notify-send` here to show it: install libnotify, or name `inbox` or `exec:`"
                .to_owned(),
        );
    }
    bus(surroundings).is_none().then(|| {
        format!(
            "there is no session bus here to show it on: neither did DBUS_SESSION_BUS_ADDRESS name one when the daemon was started, nor is \
             {} there; name `inbox` or `exec:`",
            usual()
        )
    })
}

/// Where systemd puts the bus of a user's sessions.
fn usual() -> String {
    format!("/run/user/{}/bus", rustix::process::getuid().as_raw())
}

/// The address of the bus.
fn bus(surroundings: &Surroundings) -> Option<String> {
    let named = surroundings.bus.clone().filter(|address| may_be_there(address));
    named.or_else(|| {
        Some(usual()).filter(|path| Path::new(path).exists()).map(|path| format!("unix:path={path}"))
    })
}

/// Whether one of the addresses leads somewhere. Of those that are no files it cannot be told.
fn may_be_there(addresses: &str) -> bool {
    addresses.split(';').any(|address| match address.strip_prefix("unix:path=") {
        Some(rest) => Path::new(rest.split(',').next().unwrap_or(rest)).exists(),
        None => !address.is_empty(),
    })
}

/// A text that shows as it is: servers read what they are given as markup, with links and pictures.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) fn show(notices: &[Notice], surroundings: &Surroundings) -> Verdict {
    let (Some(found), Some(bus)) = (program::find(PROGRAM, &surroundings.path), bus(surroundings)) else {
        return Verdict::Failed(refusal(surroundings).unwrap_or_else(|| "no desktop is here".to_owned()));
    };
    let mut command = Command::new(found);
    command.args(["--app-name=homing", "--", "homing", &plain(&turn::headline(notices))]);
    command.env("PATH", &surroundings.path).env("DBUS_SESSION_BUS_ADDRESS", bus);
    match program::run(command, b"", LIMIT) {
        Ok(ran) if ran.succeeded() => Verdict::Delivered("notify-send".to_owned()),
        Ok(ran) => Verdict::Failed(format!("notify-send: {}", ran.last_line())),
        Err(error) => Verdict::Failed(format!("notify-send could not be run: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_that_is_gone_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus");
        let address = format!("unix:path={},guid=1", path.display());
        assert!(!may_be_there(&address) && !may_be_there(""));
        std::fs::write(&path, "").unwrap();
        assert!(may_be_there(&address) && may_be_there("unix:abstract=/tmp/dbus-1"));
        let named = Surroundings { bus: Some(address.clone()), ..Surroundings::default() };
        assert_eq!(bus(&named), Some(address));
    }

    #[test]
    fn without_the_program_or_without_a_bus_the_refusal_says_which() {
        let folder = tempfile::tempdir().unwrap();
        let none =
            Surroundings { path: folder.path().to_string_lossy().into_owned(), ..Surroundings::default() };
        assert!(refusal(&none).unwrap().contains("notify-send"));
        let program = folder.path().join(PROGRAM);
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let here = Surroundings { bus: Some("unix:abstract=x".into()), ..none.clone() };
        assert_eq!(refusal(&here), None);
        if !Path::new(&usual()).exists() {
            assert!(refusal(&none).unwrap().contains("no session bus"));
        }
    }
}
