//! Opening an engine: lock the home, open the ledger, find the keeper, adopt what lives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use homing_api::{Code, Problem, ReconcileInfo};
use homing_model::queue::StartPolicy;
use homing_model::{EventKind, OsText};
use homing_shim::cgroup;
use homing_shim::keeper::{Mode, StartError};
use homing_store::sqlite::SqliteStore;
use homing_store::{Store, store};
use homing_sys::{boot, home as names, plain};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::admission::ancestry::Oldest;
use crate::background::Background;
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::engine::{Engine, Inner};
use crate::external;
use crate::external::Roll;
use crate::home::{Home, HomeError};
use crate::home_watch;
use crate::inbox::reservations::Unconfirmed;
use crate::inbox::waiters::InboxWaiters;
use crate::outbox::dispatcher;
use crate::outbox::transport::Transport;
use crate::query::ends::Ends;
use crate::query::metrics::Meters;
use crate::recovery::adopt;
use crate::recovery::reconcile;
use crate::run_blocking;
use crate::scheduler::Scheduler;
use crate::supervisor::keeper;
use crate::supervisor::launch::Values;
use crate::supervisor::live::Live;
use crate::supervisor::orphans::Orphans;

/// Why an engine could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The home cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The ledger cannot be opened.
    #[error("the database cannot be used: {0}")]
    Store(#[from] store::Error),
    /// There is no keeper.
    #[error(transparent)]
    Keeper(#[from] StartError),
    /// Where our own program is cannot be found.
    #[error("the path of this program cannot be found: {0}")]
    Program(#[source] std::io::Error),
    /// Which boot of the machine this is cannot be read, and with it not what became of the tasks.
    #[error("the id of this boot cannot be read: {0}")]
    Boot(#[source] std::io::Error),
}

impl OpenError {
    /// Which kind of problem it is to users.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Home(HomeError::Hostile { .. }) => Code::HostileHome,
            Self::Home(HomeError::InUse(_)) => Code::HomeInUse,
            Self::Home(HomeError::NoLocks(_)) | Self::Store(store::Error::Filesystem { .. }) => {
                Code::UnsupportedFilesystem
            }
            Self::Store(store::Error::Corrupt(_) | store::Error::Foreign(_)) => Code::StorageCorrupt,
            Self::Store(store::Error::TooNew { .. }) => Code::SchemaTooNew,
            Self::Store(store::Error::Full) => Code::StorageFull,
            Self::Home(HomeError::Io { .. }) | Self::Store(_) => Code::StorageFailed,
            Self::Keeper(_) | Self::Program(_) | Self::Boot(_) => Code::NoKeeper,
        }
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Holds the home. A daemon that was killed a moment ago has its lock until the kernel is done with it, so the next one looks again for a
/// while; an engine inside another program is told at once.
async fn hold(path: &Path, mode: Mode) -> Result<Home, HomeError> {
    let mut looks = if mode == Mode::Daemon { 200 } else { 1 };
    loop {
        looks -= 1;
        match Home::open(path) {
            Err(HomeError::InUse(_)) if looks > 0 => tokio::time::sleep(Duration::from_millis(10)).await,
            held => return held,
        }
    }
}

/// Collects what an engine is made of.
#[must_use]
pub struct Builder {
    home: PathBuf,
    program: Option<PathBuf>,
    mode: Mode,
    config: Config,
    clock: Arc<dyn Clock>,
    store: Option<Arc<dyn Store>>,
    boot_id: Option<String>,
    start_policy: StartPolicy,
    transport: Option<Arc<dyn Transport>>,
}

impl Builder {
    pub(crate) fn new(home: PathBuf) -> Self {
        let clock = Arc::new(SystemClock);
        Self {
            home,
            program: None,
            mode: Mode::Embedded,
            config: Config::default(),
            clock,
            store: None,
            boot_id: None,
            start_policy: StartPolicy::default(),
            transport: None,
        }
    }

    /// Serve as the home's daemon: the keeper restarts it from this program, and shims that find nobody revive it.
    pub fn daemon(mut self, program: PathBuf) -> Self {
        self.program = Some(program);
        self.mode = Mode::Daemon;
        self
    }

    /// A homing binary to run as keeper, where this program cannot call [`homing_shim::dispatch`] first.
    pub fn helper(mut self, program: PathBuf) -> Self {
        self.program = Some(program);
        self
    }

    /// Another configuration than the default.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Another clock than the machine's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Another ledger than SQLite in the home.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// What delivers notices. Without it the inbox is the only target, and deliveries that the
    /// ledger has already stay pending.
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// When accepted tasks start; at once if this is not called.
    pub fn start_policy(mut self, policy: StartPolicy) -> Self {
        self.start_policy = policy;
        self
    }

    /// Pretend that the machine was booted with this id: tests of what a reboot leaves behind.
    pub fn boot_id(mut self, id: impl Into<String>) -> Self {
        self.boot_id = Some(id.into());
        self
    }

    /// Opens it. Every task that lives is adopted before this returns.
    ///
    /// # Errors
    /// If the home, the ledger or the keeper cannot be had; nothing was changed then.
    pub async fn open(self) -> Result<Engine, OpenError> {
        let home = hold(&self.home, self.mode).await?;
        let program = match self.program {
            Some(program) => program,
            None => std::env::current_exe().map_err(OpenError::Program)?,
        };
        let boot_id = match self.boot_id {
            Some(id) => id,
            None => boot::id().map_err(OpenError::Boot)?,
        };
        let store = match self.store {
            Some(store) => store,
            None => {
                let path = home.path().join(names::DATABASE);
                let opened = run_blocking(move || SqliteStore::open(&path)).await;
                Arc::new(opened.map_err(|error| store::Error::Io(error.to_string()))??)
            }
        };
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone().drop_guard();
        if self.mode == Mode::Daemon
            && let Err(error) = names::record_program(home.path(), &program)
        {
            tracing::warn!(%error, "the program could not be recorded; a revival uses the last one");
        }
        let default_env = default_env(&program);
        let options = keeper::Options { home: home.path().to_owned(), program, mode: self.mode };
        let background = Background::new(Arc::clone(&self.clock));
        let report =
            background.register("keeper", "keeps a connection to the keeper, which forks shims", None);
        let keeper = keeper::start(options, shutdown.clone(), report).await?;
        let cgroups = cgroup::base(home.path()).filter(|base| std::fs::create_dir_all(base).is_ok());
        let now = self.clock.now();
        let unconfirmed = Unconfirmed::new(store.unconfirmed(now).await?, now);
        let inner = Arc::new(Inner {
            store,
            keeper,
            live: Live::default(),
            scheduler: Scheduler::new(self.start_policy),
            oldest_shim: Oldest::default(),
            ends: Ends::default(),
            orphans: Orphans::default(),
            roll: Roll::default(),
            unconfirmed,
            inbox_waiters: InboxWaiters::default(),
            transport: self.transport,
            outgoing: watch::channel(0).0,
            events: watch::channel(0).0,
            over: watch::channel(false).0,
            looked: watch::channel(0).0,
            breaker: Mutex::default(),
            scans: Semaphore::new(crate::watch::AT_ONCE),
            meters: Meters::default(),
            background,
            reconcile: Mutex::new(ReconcileInfo::default()),
            degraded: Mutex::new(None),
            shutdown,
            boot_id,
            node: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            cgroups,
            revive: self.mode == Mode::Daemon,
            fallback_cwd: default_env.get("HOME").cloned().unwrap_or_else(|| "/".into()),
            default_env,
            started_at: self.clock.now(),
            clock: self.clock,
            config: watch::channel(Arc::new(self.config)).0,
            home,
        });
        let engine = Engine::new(Arc::clone(&inner), stop);
        if let Err(error) = inner.store.booted(inner.boot_id.clone()).await {
            tracing::warn!(%error, "this start of the machine could not be noted");
        }
        // The home's lock is ours: whoever claimed deliveries before is gone.
        inner.store.release_claims().await?;
        adopt::all(&inner).await?;
        if self.mode == Mode::Daemon {
            let data = serde_json::json!({ "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION") });
            if let Err(error) = inner.store.note(EventKind::DaemonStarted, data, inner.now()).await {
                tracing::warn!(%error, "the start could not be noted");
            }
        }
        start_loops(inner);
        Ok(engine)
    }
}

/// Starts the background loops. Each ends when the engine shuts down.
fn start_loops(inner: Arc<Inner>) {
    let background = inner.background.clone();
    let report = background.register("leases", "ends external tasks whose lease ran out", None);
    tokio::spawn(external::run(Arc::clone(&inner), report));
    let report = background.register("home", "notices when files of the home are removed", None);
    tokio::spawn(home_watch::run(Arc::clone(&inner), report));
    if let Some(transport) = &inner.transport {
        let report = background.register("outbox", "delivers notices that are due", None);
        tokio::spawn(dispatcher::run(Arc::clone(&inner), Arc::clone(transport), report));
    }
    let period = inner.config().reconcile.interval.0;
    let purpose = "compares the ledger with live attempts, and applies retention";
    let report = background.register("reconcile", purpose, Some(period));
    tokio::spawn(reconcile::run(inner, report));
}

/// HOME, USER, SHELL, LANG and a default PATH, at whose end homing is found: what a task gets whose submitter gave no environment, and a hook.
fn default_env(homing: &Path) -> Values {
    #[expect(clippy::disallowed_methods, reason = "who the user is, read once when the engine is opened")]
    let of = |name: &str| std::env::var_os(name).map(OsText::from);
    let mut values = BTreeMap::from([("PATH".to_owned(), default_path(homing))]);
    for (name, otherwise) in
        [("HOME", Some("/")), ("USER", None), ("SHELL", Some("/bin/sh")), ("LANG", Some("C.UTF-8"))]
    {
        if let Some(value) = of(name).or_else(|| otherwise.map(OsText::from)) {
            values.insert(name.to_owned(), value);
        }
    }
    if !values.contains_key("USER")
        && let Some(name) = own_name()
    {
        values.insert("USER".to_owned(), name);
    }
    values
}

/// The name of our user, where the usual file has it: whoever starts us may not have said it.
fn own_name() -> Option<OsText> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let known = plain::small(Path::new("/etc/passwd"), 1 << 20).ok()?;
    known.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        let name = fields.next()?;
        (fields.nth(1)? == uid.as_bytes()).then(|| OsText::from(name.to_vec()))
    })
}

fn default_path(homing: &Path) -> OsText {
    const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";
    let folder = homing.parent().filter(|folder| std::env::split_paths(USUAL).all(|known| known != *folder));
    let all = std::env::split_paths(USUAL).chain(folder.map(Path::to_owned));
    // One whose name has a colon in it cannot be in a PATH.
    std::env::join_paths(all).map_or_else(|_| USUAL.into(), OsText::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homing_is_found_behind_everything_else() {
        let path = |homing: &str| default_path(Path::new(homing));
        assert_eq!(
            path("/home/ann/.cargo/bin/homing"),
            "/usr/local/bin:/usr/bin:/bin:/home/ann/.cargo/bin".into()
        );
        for homing in ["/usr/bin/homing", "/odd:folder/homing", "/"] {
            assert_eq!(path(homing), "/usr/local/bin:/usr/bin:/bin".into(), "{homing}");
        }
    }
}
