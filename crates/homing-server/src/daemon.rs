//! The daemon: an engine that serves its home until it is told to end.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use homing_api::{Code, Problem};
use homing_deliver::{Transports, wake};
use homing_engine::{ConfigError, Engine, HomeError, OpenError, Transport};
use homing_model::OsText;
use homing_sys::home;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::log::{self, Log};
use crate::net::server::{Ended, Server};
use crate::net::socket::BindError;
use crate::reload::Reloader;
use crate::settings::Settings;

/// How a daemon is run. The command line decides all of it; nothing is read from the environment here.
#[derive(Debug, Clone)]
pub struct Options {
    /// The state folder.
    pub home: PathBuf,
    /// The program that a revival starts.
    pub program: PathBuf,
    /// The program that starts turns of agents, with its arguments.
    pub waker: Vec<OsText>,
    /// What it knows of its surroundings.
    pub surroundings: wake::Surroundings,
    /// The configuration file; it need not be there.
    pub config: PathBuf,
    /// How often the reconcile pass runs, whatever the file says.
    pub reconcile_interval: Option<Duration>,
    /// What is to be said of variables that were set, in `daemon.log` and in the status.
    pub variables: Vec<String>,
    /// What is logged, whatever the file says: a level, or levels by module (`info,homing_store=debug`).
    pub log: Option<String>,
    /// Somebody looks at it: short lines instead of JSON, and a signal is a stop on purpose.
    pub foreground: bool,
}

/// Why a daemon could not begin.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("the event loop cannot be set up: {0}")]
    EventLoop(#[source] io::Error),
}

impl From<HomeError> for StartError {
    fn from(error: HomeError) -> Self {
        Self::Open(error.into())
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(error) => Self::new(Code::BadConfig, error.to_string()),
            StartError::Open(error) => error.into(),
            StartError::Bind(error) => error.into(),
            StartError::EventLoop(_) => Self::new(Code::SystemLimit, error.to_string()),
        }
    }
}

/// Serves a home. Returns when the daemon was told to end, or could not begin: whether it served.
#[must_use]
pub fn run(options: &Options) -> bool {
    umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    // Before anything is written, the log included: into a folder that others can change nothing goes.
    let prepared = homing_engine::prepare_home(&options.home);
    let home = prepared.is_ok().then_some(options.home.as_path());
    let log = Arc::new(log::start(options.log.as_deref(), home, options.foreground));
    match prepared.map_err(StartError::from).and_then(|()| begin(options, &log)) {
        Ok(()) => true,
        Err(error) => {
            let problem = Problem::from(error);
            tracing::error!(code = problem.code, advice = problem.advice, "{}", problem.detail);
            homing_engine::report_start_failure(&options.home, &problem.to_string());
            false
        }
    }
}

fn begin(options: &Options, log: &Arc<Log>) -> Result<(), StartError> {
    set_limits();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::EventLoop)?;
    let served = runtime.block_on(serve(options, log));
    // A thread in the middle of a slow read must not hold up the end.
    runtime.shutdown_background();
    served
}

async fn serve(options: &Options, log: &Arc<Log>) -> Result<(), StartError> {
    // From here on a signal waits until the engine is open: it must not be left half open.
    let signals = Signals::new().map_err(StartError::EventLoop)?;
    let settings = Settings::new(&options.config, &options.home, options.reconcile_interval);
    let settings = Arc::new(settings.with_variables(options.variables.clone(), log.is_set()));
    for said in &options.variables {
        tracing::warn!("{said}");
    }
    let config = settings.begin()?;
    log.configure(&config.log);
    let transports = Transports::new(&options.home, config.webhook.clone());
    let transports = Arc::new(transports.with_waker(options.waker.clone(), options.surroundings.clone()));
    let strangers = strangers(&options.home);
    let engine = Engine::builder(&options.home).daemon(options.program.clone()).config(config);
    let engine = engine.transport(Arc::clone(&transports) as Arc<dyn Transport>).open().await?;
    if strangers > 0 {
        tracing::warn!(
            tasks = strangers,
            "there was no ledger, though there are folders of tasks: their ids are not known any more; their output is left where it is"
        );
    }
    if options.foreground {
        // Whoever runs one by hand, or by a service manager, wants it: an earlier stop is over.
        let _ = std::fs::remove_file(options.home.join(home::STOPPED));
    }
    let reloader = Arc::new(Reloader {
        settings,
        engine: engine.clone(),
        transports: Arc::clone(&transports),
        log: Arc::clone(log),
        turn: Arc::default(),
    });
    let server = Server::bind(engine.clone())?
        .with_reloader(Arc::clone(&reloader))
        .with_transports(Arc::clone(&transports));
    // A stop that found nobody, since this one was still on its way, left a mark. One that comes now finds the socket.
    if home::is_stopped(&options.home) {
        tracing::info!("stopped while it started; tasks run on");
        engine.leave(true).await;
        return Ok(());
    }
    engine.ready().await;
    tracing::info!(pid = std::process::id(), version = env!("CARGO_PKG_VERSION"), home = %options.home.display(), "serving");
    let told = async {
        signals.until_told(&reloader).await;
        if options.foreground {
            engine.mark_stopped();
        }
    };
    let ended = server.serve(told).await;
    let on_purpose = ended == Ended::Asked || options.foreground;
    tracing::info!(on_purpose, "leaving; tasks run on");
    engine.leave(on_purpose).await;
    Ok(())
}

/// Tasks that began in this home, where no ledger is there that could know them: it was deleted, or replaced by nothing.
fn strangers(path: &Path) -> usize {
    if std::fs::metadata(path.join(home::DATABASE)).is_ok_and(|found| found.len() > 0) {
        return 0;
    }
    let Ok(entries) = std::fs::read_dir(path.join(home::TASKS)) else { return 0 };
    entries.flatten().filter(|entry| entry.path().join(home::START_MARKER).exists()).count()
}

/// Many connections and shims need many descriptors; a core file would hold environments.
fn set_limits() {
    let files = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum });
    let core = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if let Err(error) = raised.and(core) {
        tracing::warn!(%error, "a resource limit could not be set");
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Until a signal says that it is over; a hang-up means: read the configuration again, as does any change of the file.
    async fn until_told(mut self, reloader: &Arc<Reloader>) {
        let mut following = pin!(reloader.follow());
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                () = reloader.engine.over() => return,
                () = &mut following => {}
                _ = self.hang_up.recv() => {
                    let reloader = Arc::clone(reloader);
                    // Beside the rest: it may take a while, and what is wrong is logged.
                    drop(tokio::spawn(async move { reloader.reload().await }));
                }
            }
        }
    }
}
