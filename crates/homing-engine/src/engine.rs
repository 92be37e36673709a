//! The engine's handle, and what its parts share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use homing_api::ReconcileInfo;
use homing_model::watch::Breaker;
use homing_model::{Kind, OsText, Reference, Target, TaskId, Timestamp, unsure};
use homing_shim::wire::ToKeeper;
use homing_store::store::Found;
use homing_store::{Record, Store};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::admission::ancestry::Oldest;
use crate::background::Background;
use crate::builder::Builder;
use crate::clock::Clock;
use crate::config::Config;
use crate::error::Error;
use crate::external::Roll;
use crate::home::Home;
use crate::inbox::reservations::Unconfirmed;
use crate::inbox::waiters::InboxWaiters;
use crate::outbox::transport::Transport;
use crate::query::ends::Ends;
use crate::query::metrics::Meters;
use crate::scheduler::Scheduler;
use crate::supervisor::keeper;
use crate::supervisor::launch::Values;
use crate::supervisor::live::Live;
use crate::supervisor::orphans::Orphans;

/// Runs tasks and accounts for them. Cheap to clone; the last clone to go ends the engine, and its tasks run on.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
    /// Ends the background work when the last handle is gone.
    _shutdown: Arc<DropGuard>,
}

/// How long the keeper may take to hear something.
const HEARING: Duration = Duration::from_secs(2);

/// What all parts of one engine share. Nothing in it is global.
pub(crate) struct Inner {
    pub(crate) home: Home,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: watch::Sender<Arc<Config>>,
    pub(crate) keeper: keeper::Handle,
    pub(crate) live: Live,
    pub(crate) scheduler: Scheduler,
    pub(crate) oldest_shim: Oldest,
    pub(crate) ends: Ends,
    pub(crate) orphans: Orphans,
    /// Tasks that somebody else runs.
    pub(crate) roll: Roll,
    /// Whose next call confirms a delivery.
    pub(crate) unconfirmed: Unconfirmed,
    /// Waits for inboxes that are open.
    pub(crate) inbox_waiters: InboxWaiters,
    /// Delivers notices to targets other than the inbox.
    pub(crate) transport: Option<Arc<dyn Transport>>,
    /// Counts what was put on its way to a target.
    pub(crate) outgoing: watch::Sender<u64>,
    /// Counts commits that appended events.
    pub(crate) events: watch::Sender<u64>,
    /// Counts what is told of matches, over all tasks.
    pub(crate) breaker: Mutex<Breaker>,
    /// So many outputs are judged at once: each takes memory and a thread.
    pub(crate) scans: Semaphore,
    /// What was done since it was opened.
    pub(crate) meters: Meters,
    pub(crate) background: Background,
    pub(crate) reconcile: Mutex<ReconcileInfo>,
    /// Why new tasks are refused, while they are.
    pub(crate) degraded: Mutex<Option<String>>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) boot_id: String,
    pub(crate) node: String,
    pub(crate) cgroups: Option<PathBuf>,
    /// Becomes true when there is nothing left to serve: the home was deleted, or its ledger must be opened anew.
    pub(crate) over: watch::Sender<bool>,
    /// Counts looks at what is in the home.
    pub(crate) looked: watch::Sender<u64>,
    /// Whether a shim that finds nobody revives a daemon.
    pub(crate) revive: bool,
    /// The environment of a task whose submitter gave none.
    pub(crate) default_env: Values,
    pub(crate) fallback_cwd: OsText,
    pub(crate) started_at: Timestamp,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Inner {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.borrow())
    }

    /// Events were committed.
    pub(crate) fn bump(&self) {
        self.events.send_modify(|count| *count += 1);
    }

    /// Inbox entries may be free again: waits for inboxes and the dispatcher look.
    pub(crate) fn set_free(&self) {
        self.bump();
        self.outgoing.send_modify(|count| *count += 1);
    }

    /// A task ended, durably: whoever waits is told.
    pub(crate) fn announce(&self, record: &Record) {
        self.meters.ended(record, self.now());
        self.live.update(record);
        self.ends.announce(record);
        self.put_on_its_way(record);
    }

    /// Notices of a task were committed: readers of the log and whatever delivers are woken.
    pub(crate) fn put_on_its_way(&self, record: &Record) {
        self.bump();
        let targets = record.spec.notify.iter().flat_map(|notify| &notify.targets);
        if record.kind == Kind::Hook || targets.into_iter().any(|target| *target != Target::Inbox) {
            self.outgoing.send_modify(|count| *count += 1);
        }
    }

    pub(crate) fn set_degraded(&self, why: Option<String>) {
        *self.degraded.lock() = why;
    }

    /// One task's record.
    pub(crate) async fn record(&self, id: &TaskId) -> Result<Record, Error> {
        match self.store.get(id.clone()).await? {
            Some(record) => Ok(record),
            None => Err(self.absent(id).await),
        }
    }

    /// The task of this owner that a text names. Another's is told as one that never was, in the same words (P11).
    pub(crate) async fn own(&self, reference: &str, owner: &str) -> Result<Record, Error> {
        let id = match self.store.find_own(Reference::parse(reference), owner.to_owned()).await? {
            Found::One(id) => id,
            Found::Several(candidates) => {
                return Err(Error::Ambiguous { reference: reference.to_owned(), candidates });
            }
            // Whose it was is not known any more.
            Found::Expired(id) => return Err(Error::Expired(id)),
            Found::None => return Err(Error::Unknown(reference.to_owned())),
        };
        let record = self.store.get(id).await?.filter(|record| record.kind != Kind::Hook);
        let record = record.ok_or_else(|| Error::Unknown(reference.to_owned()))?;
        unsure::certain(reference, &record.id, record.spec.name.as_deref())?;
        Ok(record)
    }

    /// What is to be said of an id without a record (P12).
    pub(crate) async fn absent(&self, id: &TaskId) -> Error {
        match self.store.find(Reference::Id(id.clone()), String::new()).await {
            Ok(Found::Expired(id)) => Error::Expired(id),
            Ok(_) => Error::Unknown(id.to_string()),
            Err(error) => error.into(),
        }
    }
}

impl Engine {
    /// An engine for this home, to be configured and opened.
    pub fn builder(home: impl Into<PathBuf>) -> Builder {
        Builder::new(home.into())
    }

    pub(crate) fn new(inner: Arc<Inner>, shutdown: DropGuard) -> Self {
        Self { inner, _shutdown: Arc::new(shutdown) }
    }

    /// Which home.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.inner.home.path()
    }

    /// The background loops, to which the server adds its own.
    #[must_use]
    pub fn background(&self) -> &Background {
        &self.inner.background
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        self.inner.config()
    }

    /// The configuration in force, for who waits by a setting and has to notice that it changes.
    #[must_use]
    pub fn configured(&self) -> watch::Receiver<Arc<Config>> {
        self.inner.config.subscribe()
    }

    /// What time it is for this engine.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.now()
    }

    /// Puts another configuration in force, for what happens from now on.
    pub fn set_config(&self, config: Config) {
        self.inner.config.send_replace(Arc::new(config));
        // Whoever keeps something of it looks again, and what may go out is judged anew.
        self.inner.looked.send_modify(|count| *count += 1);
        self.inner.outgoing.send_modify(|count| *count += 1);
    }

    /// Tells the keeper that requests are accepted.
    pub async fn ready(&self) {
        let _ = tokio::time::timeout(HEARING, self.inner.keeper.say(ToKeeper::Ready)).await;
    }

    /// Waits until there is nothing left to serve with this engine: somebody has deleted the home, or its ledger, which then has to be
    /// opened anew.
    pub async fn over(&self) {
        let mut over = self.inner.over.subscribe();
        if over.wait_for(|over| *over).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Changes whenever it is time to look whether one's own files in the home are still there.
    #[must_use]
    pub fn looked(&self) -> watch::Receiver<u64> {
        self.inner.looked.subscribe()
    }

    /// Remembers that it ends on purpose, so that nobody revives it. Before anybody is hung up on: who waits would ask for another at once.
    pub fn mark_stopped(&self) {
        let mark = self.home().join(homing_sys::home::STOPPED);
        if let Err(error) = std::fs::write(&mark, b"") {
            tracing::warn!(%error, "the stop could not be marked; a shim that ends may revive the daemon");
        }
    }

    /// Closes the ledger. On purpose: nobody revives the daemon until it is started again; tasks run on either way.
    pub async fn leave(&self, on_purpose: bool) {
        if on_purpose {
            self.mark_stopped();
            // A keeper that cannot be had needs no telling: the mark says it to whoever comes.
            let _ = tokio::time::timeout(HEARING, self.inner.keeper.say(ToKeeper::Leaving)).await;
        }
        if let Err(error) = self.inner.store.close().await {
            tracing::error!(%error, "the store could not be closed");
        }
    }
}
