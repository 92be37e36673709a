//! Starting the daemon when a command needs it, and waiting for it when it went away.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use homing_api::{Code, Problem};
use homing_client::{Absence, Client, Revive};
use homing_model::environment::DEFAULT_OWNER;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use crate::cli::entry;
use crate::options::configuration;
use crate::options::environment::Surroundings;
use crate::options::home::STOPPED;
use crate::render::console::Console;

/// A start that takes longer is announced.
const NOTICEABLE: Duration = Duration::from_millis(300);

/// How long a client inside a task waits for the keeper to bring back a daemon that it has talked to.
const KEEPER_PATIENCE: Duration = Duration::from_secs(15);

/// The same for a daemon that may only be between two lives.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);

/// Whoever takes the mark of a stop away starts the daemon within this time, or takes the whole home away, file by file.
const UNMARKED: Duration = Duration::from_secs(15);

/// Between two tries to start a daemon for a command that waits for as long as it takes; longer each time, up to the second.
const AGAIN: Duration = Duration::from_millis(250);
const LONGEST_AGAIN: Duration = Duration::from_secs(2);

/// What a client calls when nobody listens in `home`.
pub(crate) fn hook(home: PathBuf, console: Console) -> Revive {
    let noted = Arc::new(AtomicBool::new(false));
    Arc::new(move |absence| {
        let (home, noted) = (home.clone(), Arc::clone(&noted));
        Box::pin(async move {
            let mut pause = AGAIN;
            loop {
                match revive(&home, console, absence).await {
                    Err(problem) if is_awaited(absence, &home) && may_pass(&problem, &home) => {
                        if !noted.swap(true, Ordering::Relaxed) {
                            console.note(&format!("homing: {}; waiting for the daemon", problem.detail));
                        }
                        sleep(pause).await;
                        pause = (pause * 2).min(LONGEST_AGAIN);
                    }
                    result => return result,
                }
            }
        })
    })
}

/// Whether the caller waits for as long as it takes. Inside a task, a daemon that was stopped before the caller came is not waited for.
fn is_awaited(absence: Absence, home: &Path) -> bool {
    match absence {
        Absence::Awaited => true,
        Absence::AwaitedFirst => !(entry::inside_task() && is_stopped(home)),
        Absence::NeverThere | Absence::WentAway => false,
    }
}

/// Whether a daemon may serve later all the same: this one died, or could not be started here and now.
fn may_pass(problem: &Problem, home: &Path) -> bool {
    let passing = [Code::DaemonUnreachable, Code::NestedStart, Code::SystemLimit];
    problem.known().is_some_and(|code| passing.contains(&code)) && !is_gone(home)
}

async fn revive(home: &Path, console: Console, absence: Absence) -> Result<(), Problem> {
    let was_there = matches!(absence, Absence::WentAway | Absence::Awaited);
    if was_there && is_stopped(home) {
        // Somebody stopped it while this command was waiting: starting it again would undo that. A new command may.
        console.note("homing: the daemon was stopped; waiting for it; `homing daemon start` or any other command starts it again");
        if started_again(home).await {
            return Ok(());
        }
    }
    if was_there && is_gone(home) {
        // What this command was about went with it: a new home would know nothing of that, and nobody asked for one.
        let detail = format!("the home {} was removed while this command was waiting", home.display());
        let mut problem = Problem::new(Code::DaemonUnreachable, detail);
        problem.advice = "What it held is gone with it; the next command makes a new one.".to_owned();
        return Err(problem);
    }
    if entry::inside_task() {
        return from_inside(home, absence).await;
    }
    start(home, console).await
}

/// Waits until somebody starts a daemon that was stopped. False if its home is gone, or nobody did after all.
async fn started_again(home: &Path) -> bool {
    let mut marked = Instant::now();
    while !is_gone(home) && marked.elapsed() < UNMARKED {
        if answers(home).await {
            return true;
        }
        if is_stopped(home) {
            marked = Instant::now();
        }
        sleep(Duration::from_millis(200)).await;
    }
    false
}

/// Inside a task only the keeper may bring the daemon back.
async fn from_inside(home: &Path, absence: Absence) -> Result<(), Problem> {
    let patience = match absence {
        Absence::WentAway | Absence::Awaited => KEEPER_PATIENCE,
        Absence::NeverThere | Absence::AwaitedFirst if is_stopped(home) || !home.exists() => Duration::ZERO,
        Absence::NeverThere | Absence::AwaitedFirst => SHORT_PATIENCE,
    };
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if answers(home).await {
            return Ok(());
        }
        sleep(Duration::from_millis(100)).await;
    }
    Err(Problem::new(
        Code::NestedStart,
        format!("no daemon serves {}, and a task never starts one", home.display()),
    ))
}

/// Makes sure that a daemon runs.
pub(crate) async fn start(home: &Path, console: Console) -> Result<(), Problem> {
    let exe = entry::executable()?;
    if let Some(said) = configuration::interval(&Surroundings::of_this_process()).ignored() {
        console.note(&format!("homing: {said}"));
    }
    let folder = home.to_owned();
    let (tell, mut starting) = oneshot::channel();
    // Not by the runtime's pool, which panics where there is no thread to be had.
    let thread = std::thread::Builder::new().spawn(move || tell.send(entry::start_daemon(&folder, &exe)));
    if let Err(error) = thread {
        let detail = format!("no thread can be made to start the daemon: {error}");
        return Err(Problem::new(Code::SystemLimit, detail));
    }
    let result = match timeout(NOTICEABLE, &mut starting).await {
        Ok(result) => result,
        Err(_) => {
            if console.stderr_terminal {
                console.note("homing: starting the daemon…");
            }
            starting.await
        }
    };
    result.unwrap_or_else(|error| {
        Err(Problem::new(Code::Internal, format!("starting the daemon failed: {error}")))
    })
}

/// Whether the daemon was stopped on purpose.
pub(crate) fn is_stopped(home: &Path) -> bool {
    home.join(STOPPED).exists()
}

fn is_gone(home: &Path) -> bool {
    matches!(home.try_exists(), Ok(false))
}

async fn answers(home: &Path) -> bool {
    let healthy = timeout(Duration::from_secs(2), async { Client::new(home, DEFAULT_OWNER).healthy().await });
    matches!(healthy.await, Ok(Ok(())))
}
