//! One binary, several processes: the hidden first arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::keeper::{self, Mode};
use homing_sys::sys;

/// First argument of a keeper.
pub(crate) const KEEPER: &str = "__homing-keeper";
/// First argument of a keeper for an engine inside another program.
pub(crate) const KEEPER_EMBEDDED: &str = "__homing-keeper-embedded";
/// First argument of the daemon. The command line handles this one.
pub const DAEMON: &str = "__homing-daemon";

/// Must be the first line of `main`: this binary may be called again as keeper, and then nothing else may be initialised.
///
/// Returns at once for every other call.
pub fn dispatch() {
    let mut arguments = std::env::args_os().skip(1);
    let mode = match arguments.next() {
        Some(first) if first == KEEPER => Mode::Daemon,
        Some(first) if first == KEEPER_EMBEDDED => Mode::Embedded,
        Some(_) | None => return,
    };
    let home: Option<OsString> = arguments.next();
    let starter = arguments.next().and_then(|pid| pid.to_str()?.parse().ok());
    let code = home.map_or(2, |home| keeper::run(&PathBuf::from(home), mode, starter));
    sys::exit_now(code);
}
