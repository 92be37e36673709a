//! The seam to the other processes of homing: keeper, shim and daemon.

use std::path::{Path, PathBuf};
use std::time::Duration;

use homing_api::{Code, Problem};
use homing_engine::{Config, ConfigError, HomeError, OpenError};
use homing_server::Options;
use homing_shim::keeper;
use homing_sys::{confine, process};

use crate::cli::exit_code;
use crate::daemon_control::waker;
use crate::options::configuration;
use crate::options::environment::Surroundings;
use crate::options::home;

/// How long a daemon may take until it answers; a large database that was cut off is checked first.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// First thing in `main`: this binary may have been called again as keeper (then it never returns), as the daemon, or to wake somebody.
pub(crate) fn dispatch() -> Option<u8> {
    homing_shim::dispatch();
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    let run: fn(&Path) -> u8 = match first.to_str()? {
        homing_shim::DAEMON => |home| run_daemon(home, false),
        waker::WAKE => waker::run,
        _ => return None,
    };
    Some(arguments.next().map_or(exit_code::FAILED, |home| run(Path::new(&home))))
}

/// Makes sure that a daemon serves `home`; blocks until it answers or says why it cannot.
pub(crate) fn start_daemon(home: &Path, program: &Path) -> Result<(), Problem> {
    home::check(home)?;
    homing_engine::prepare_home(home).map_err(|error| match error {
        HomeError::Io { path, source } => home::unusable(&path, &source),
        error => Problem::from(OpenError::Home(error)),
    })?;
    may_start(home)?;
    // Whoever starts it decides what is started: after an upgrade, the new binary, though an older keeper does the starting.
    if let Err(error) = homing_sys::home::record_program(home, program) {
        return Err(home::unusable(home, &error));
    }
    keeper::request_start(home, Some(program), START_PATIENCE).map_err(|error| why_not(&error.to_string()))
}

/// Whether this process may start the daemon, in whatever way: none that is in a sandbox, unless a person allows it, and none in a task.
fn may_start(home: &Path) -> Result<(), Problem> {
    if inside_task() {
        let detail = format!("no daemon is started for {} from inside a task", home.display());
        return Err(Problem::new(Code::NestedStart, detail));
    }
    let allowed = configuration_of(home, &Surroundings::of_this_process())
        .is_ok_and(|path| Config::load(&path).is_ok_and(|config| config.confined.allow));
    match confine::beyond_origin() {
        Some(reason) if !allowed => {
            let detail = format!("a confined process never starts the daemon: {reason}");
            Err(Problem::new(Code::Confined, detail))
        }
        _ => Ok(()),
    }
}

/// Why no daemon could be started. One that knows says its own code at the end, and the advice is that code's.
fn why_not(reason: &str) -> Problem {
    let told = reason.strip_suffix(')').and_then(|reason| reason.rsplit_once(" ("));
    let told = told.and_then(|(detail, code)| Some((detail, Code::find(code)?)));
    let (detail, code) = told.unwrap_or((reason, Code::DaemonUnreachable));
    Problem::new(code, format!("the daemon could not be started: {detail}"))
}

/// `homing daemon run`: serves until it is told to end.
pub(crate) fn run_daemon_in_foreground(home: &Path) -> Result<u8, Problem> {
    may_start(home)?;
    Ok(run_daemon(home, true))
}

fn run_daemon(home: &Path, foreground: bool) -> u8 {
    let surroundings = Surroundings::of_this_process();
    let config = configuration_of(home, &surroundings);
    let (Ok(config), Ok(program)) = (config, executable()) else { return exit_code::FAILED };
    let interval = configuration::interval(&surroundings);
    let served = homing_server::run(&Options {
        home: home.to_owned(),
        waker: waker::command(&program, home, waker::bus(&surroundings).as_deref()),
        surroundings: waker::surroundings(home, &surroundings),
        program,
        config,
        reconcile_interval: interval.value,
        variables: interval.said.into_iter().collect(),
        log: surroundings.text("HOMING_LOG").map(str::to_owned),
        foreground,
    });
    if served { exit_code::DONE } else { exit_code::FAILED }
}

/// The configuration file of a home that was chosen by name, unless it is the one that nobody has to choose.
fn configuration_of(home: &Path, surroundings: &Surroundings) -> Result<PathBuf, Problem> {
    let usual = surroundings.get("HOMING_HOME").is_none()
        && home::resolve(None, surroundings).is_ok_and(|usual| usual == home);
    home::configuration((!usual).then_some(home), surroundings)
}

/// Whether this process runs inside a task: found by its ancestors, not by its environment.
pub(crate) fn inside_task() -> bool {
    process::own_ancestors().any(|above| above.name == "homing-shim")
}

/// The effective configuration as TOML, defaults included, or what is wrong with the file.
pub(crate) fn effective_configuration(path: &Path) -> Result<String, Problem> {
    let config = configuration(path)?;
    toml::to_string(&config)
        .map_err(|error| Problem::new(Code::Internal, format!("the configuration: {error}")))
}

/// What the file says, defaults included, or what is wrong with it.
pub(crate) fn configuration(path: &Path) -> Result<Config, Problem> {
    homing_server::load_configuration(path).map_err(|error| {
        let mut problem = Problem::new(Code::BadConfig, error.to_string());
        if matches!(error, ConfigError::Read { .. }) {
            problem.advice =
                "Make it a file that you can read, or choose another home with HOMING_HOME.".to_owned();
        }
        problem
    })
}

/// This program, also when it was replaced by a newer one while it ran.
pub(crate) fn executable() -> Result<PathBuf, Problem> {
    let path = std::env::current_exe().map_err(|error| {
        Problem::new(Code::Internal, format!("the path of this program is unknown: {error}"))
    })?;
    let replaced = path.to_str().and_then(|text| text.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|path| path.exists()).unwrap_or(path))
}
