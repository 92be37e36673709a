//! What every command is given: where, who, how to show it, and how to reach the daemon.

use std::future::Future;
use std::path::PathBuf;
use std::pin::{Pin, pin};

use homing_agents::environment;
use homing_api::{Code, Problem};
use homing_client::Client;
use homing_model::route::Address;
use homing_model::{Pane, Session, Target, Timestamp, session};
use homing_sys::process;

use crate::cli::exit_code::{self, Manner};
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::daemon_control::autostart;
use crate::daemon_control::unresponsive_daemon;
use crate::options::environment::Surroundings;
use crate::options::home;
use crate::render::console::{Console, Tint};

/// The surroundings of one command.
#[derive(Debug)]
pub(crate) struct Context {
    /// The environment.
    pub(crate) surroundings: Surroundings,
    /// The terminal.
    pub(crate) console: Console,
    /// `--home`, if it was given.
    pub(crate) home_flag: Option<PathBuf>,
    /// The state folder.
    pub(crate) home: PathBuf,
    /// `--json`.
    pub(crate) json: bool,
}

/// The program of the nearest process above this one that has this name.
fn running(name: &str) -> Option<String> {
    let found = process::own_ancestors().find(|above| above.name == name)?;
    let program = std::fs::read_link(format!("/proc/{}/exe", found.pid)).ok()?;
    program.to_str().map(str::to_owned)
}

/// Runs one future to its end. Boxed, so that the event loop is compiled once and not for each command.
fn drive(work: Pin<Box<dyn Future<Output = ()> + '_>>) -> Result<(), Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Problem::new(Code::SystemLimit, format!("the event loop cannot be set up: {error}"))
    })?;
    runtime.block_on(work);
    // A thread that still reads a terminal must not hold up the end.
    runtime.shutdown_background();
    Ok(())
}

impl Context {
    /// The owner that the environment names.
    pub(crate) fn owner(&self) -> String {
        environment::owner(|name| self.surroundings.text(name).map(str::to_owned))
    }

    /// The session of an agent that the environment names.
    pub(crate) fn session(&self) -> Option<Session> {
        let found = environment::detect(|name| self.surroundings.text(name).map(str::to_owned))?;
        // Its shells may have another path than the agent itself, but they are below it.
        let program = found.program.clone().or_else(|| running(found.agent.as_str()));
        Some(Session { program, ..found })
    }

    /// The pane of tmux that a target names, with what runs there now. The server is the one that we are in, else the usual one.
    pub(crate) fn pane(&self, targets: &[Target]) -> Option<Pane> {
        let named = targets.iter().find_map(|target| match target {
            Target::Wake(Some(whom)) => match whom.parse() {
                Ok(Address::Tmux(id)) => Some(id),
                Ok(_) | Err(_) => None,
            },
            _ => None,
        })?;
        let lookup = |name: &str| self.surroundings.text(name).map(str::to_owned);
        let usual = || {
            let folder = lookup("TMUX_TMPDIR").unwrap_or_else(|| "/tmp".to_owned());
            format!("{folder}/tmux-{}/default", rustix::process::getuid().as_raw())
        };
        let server = session::tmux_server(lookup).unwrap_or_else(usual);
        let pane = Pane { server, id: named, program: None };
        let path = self.surroundings.text("PATH").unwrap_or_default();
        Some(Pane { program: homing_agents::wake::tmux::foreground(&pane, path), ..pane })
    }

    /// A client that starts the daemon when none runs.
    pub(crate) fn client(&self) -> Client {
        self.client_for(&self.owner())
    }

    /// The same, speaking for another owner.
    pub(crate) fn client_for(&self, owner: &str) -> Client {
        Client::with_revive(&self.home, owner, autostart::hook(self.home.clone(), self.console))
    }

    /// The same for a command that has the whole screen, where nothing else may be written, and stays until it is left.
    pub(crate) fn screen_client(&self) -> Client {
        let hook = autostart::hook(self.home.clone(), self.console.hushed());
        Client::with_revive(&self.home, &self.owner(), hook).patient()
    }

    /// A client that takes things as they are.
    pub(crate) fn quiet_client(&self) -> Client {
        Client::new(&self.home, &self.owner())
    }

    /// Runs the asynchronous part of a command. A daemon that does not answer is reported, and waited for.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        self.block_on_screen(async {
            let mut work = pin!(work);
            tokio::select! {
                biased;
                result = &mut work => return result,
                () = self.report_silence() => {}
            }
            work.await
        })
    }

    async fn report_silence(&self) {
        let problem = unresponsive_daemon::noticed(&self.home).await;
        self.console.note(&format!("homing: {}; it is waited for. {}", problem.detail, problem.advice));
    }

    /// The same for a command that has the whole screen, where nothing else may be written.
    pub(crate) fn block_on_screen<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut result = None;
        drive(Box::pin(async { result = Some(work.await) }))?;
        result.expect("invariant: the work was driven to its end")
    }

    /// The time of the wall, for ages.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock())()
    }

    /// A look at the clock of the wall, for whoever shows ages as they grow.
    #[expect(clippy::disallowed_methods, reason = "the one place where the command line looks at the clock")]
    pub(crate) fn clock(&self) -> fn() -> Timestamp {
        || std::time::SystemTime::now().into()
    }

    /// Tells what became of one of several. The first decides the code.
    pub(crate) fn one_failed(&self, error: homing_client::Error, code: &mut u8) {
        let problem = error.into_problem();
        self.report(&problem);
        if *code == exit_code::DONE {
            *code = exit_code::of_problem(Manner::Plain, &problem);
        }
    }

    /// Says that there is no home, and so nothing to look at: looking makes none, since it may be a mistyped one.
    pub(crate) fn note_missing_home(&self) {
        let missing = home::missing(&self.home);
        self.console.note(&format!("homing: {}\n  next: {}", missing.detail, missing.advice));
    }

    /// Tells of a problem: one sentence with its code, then what to do; with `--json`, as an object on one line.
    pub(crate) fn report(&self, problem: &Problem) {
        if self.json {
            let advice = usage_wording::advice(problem).to_owned();
            return self.console.json_note(&Problem { advice, ..problem.clone() });
        }
        let detail = homing_model::foreign::one_line(&problem.detail);
        let head = self.console.tint_note(Tint::Red, "homing:");
        self.console.note(&format!(
            "{head} {detail} ({})\n  next: {}",
            problem.code,
            usage_wording::advice(problem)
        ));
    }
}
