//! The seam to the other processes of homing: keeper, shim and daemon.
//!
//! A stand-in until those crates are there; every function keeps its shape.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use homing_model::{Code, Problem};

/// First thing in `main`: this binary may have been called again as keeper or shim, and then never returns from here.
pub(crate) fn dispatch() {}

/// Makes sure that a daemon serves `home`; blocks until it answers or says why it cannot.
pub(crate) fn start_daemon(home: &Path, _exe: &Path) -> Result<(), Problem> {
    let detail = format!("this build has no daemon to start for {}", home.display());
    Err(Problem::new(Code::DaemonUnreachable, detail))
}

/// `homing daemon run`: serves until it is told to end.
pub(crate) fn run_daemon_in_foreground(home: &Path) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "homing: this build has no daemon to run for {}", home.display());
    ExitCode::FAILURE
}

/// Whether this process runs inside a task.
pub(crate) fn inside_task() -> bool {
    false
}

/// The effective configuration as TOML, defaults included, or what is wrong with the file.
pub(crate) fn effective_configuration(path: &Path) -> Result<String, Problem> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Problem::new(Code::BadConfig, format!("{}: {error}", path.display()))),
    }
}

/// This program, also when it was replaced by a newer one while it ran.
pub(crate) fn executable() -> Result<PathBuf, Problem> {
    let path = std::env::current_exe().map_err(|error| {
        Problem::new(Code::Internal, format!("the path of this program is unknown: {error}"))
    })?;
    let replaced = path.to_str().and_then(|text| text.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|path| path.exists()).unwrap_or(path))
}
