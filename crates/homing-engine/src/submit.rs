//! Accepting a task: checked, folder made, recorded durably, handed to the keeper, answered.
//!
//! Keeps P9 and P10. What can crash where: before the commit there is only a folder that nobody knows, which the next start
//! sweeps away; after it the task exists, and whoever opens the home next finds it unstarted and launches it.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use homing_model::environment::DEFAULT_OWNER;
use homing_model::mask::UNNAMED;
use homing_model::{
    Kind, Masks, Notify, OsText, Route, Secret, Session, Spec, Target, Task, TaskId, obvious,
};
use homing_store::store::{Idempotency, Submit, Submitted};
use homing_store::{NewTask, Record};
use rustix::io::Errno;

use crate::ancestry;
use crate::attend::{self, Begin};
use crate::engine::{Engine, Inner};
use crate::entropy;
use crate::error::Error;
use crate::external::{self, Asked};
use crate::launch::{self, Values};
use crate::view;

/// An idempotency key stands for its body this long.
const IDEMPOTENCY_MS: i64 = 24 * 3_600 * 1_000;

/// Who submits.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whom the task belongs to, where the spec does not say.
    pub owner: Option<String>,
    /// The calling process, to tell whether it is inside a task.
    pub pid: Option<u32>,
    /// Whether it is known to be on this machine, as this user: then webhooks of its tasks may go to this machine's own ports.
    pub local: bool,
}

/// Whoever has the engine itself: this process.
impl Default for Caller {
    fn default() -> Self {
        Self { owner: None, pid: None, local: true }
    }
}

/// The `Idempotency-Key` of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// As it was sent.
    pub key: String,
    /// A hash of the body.
    pub body_hash: String,
}

/// An accepted task.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The task.
    pub task: Task,
    /// It was there before: the same key, or the same request again.
    pub joined: bool,
}

impl Engine {
    /// Accepts a task. When this returns, the task is durable and on its way. Whoever drops the future does not take the request back.
    ///
    /// # Errors
    /// If it makes no sense or cannot be recorded; nothing was started then.
    pub async fn submit(
        &self,
        spec: Spec,
        caller: Caller,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Submission, Error> {
        let inner = Arc::clone(&self.inner);
        // To the end, even if the caller goes away in the middle: a task that was committed would have nobody who starts it.
        let accepting = tokio::spawn(async move { submit(&inner, spec, caller, idempotency).await });
        let (record, joined) = accepting.await.map_err(|_| Error::Closed)??;
        Ok(Submission { task: view::task(&self.inner, record), joined })
    }
}

async fn submit(
    inner: &Arc<Inner>,
    mut spec: Spec,
    caller: Caller,
    idempotency: Option<IdempotencyKey>,
) -> Result<(Record, bool), Error> {
    spec.validate()?;
    let owner = spec.owner.take().or(caller.owner).unwrap_or_else(|| DEFAULT_OWNER.to_owned());
    spec.owner = Some(owner.clone());
    if !caller.local {
        // Over a network nobody says by which socket, program or terminal of this machine a session is reached.
        spec.session = spec.session.and_then(|session| Session::new(session.agent, &session.id));
        spec.pane = None;
    }
    // Who speaks for a session is told where it is, though no more is known of the way there.
    let session = spec.session.clone().or_else(|| Session::of_owner(&owner));
    spec.session.clone_from(&session);
    let pane = spec.pane.clone();
    let notify = spec.notify.get_or_insert_with(Notify::usual);
    let policy = &inner.config().notify;
    notify.on = notify.on.at_most(policy.on);
    // Told twice is not told better.
    let mut named = HashSet::new();
    notify.targets.retain(|target| named.insert(target.clone()));
    for target in &notify.targets {
        policy.check(target.into()).map_err(Error::Target)?;
        // The way of a wake is found now or never.
        let route = Route::of(target, session.as_ref(), pane.as_ref())?;
        let named = route.map_or_else(|| target.clone(), |route| route.target());
        inner.routes.check(&named, notify).map_err(Error::Target)?;
    }
    // Where nobody can be woken after all, the notice is still there.
    if notify.targets.iter().any(|target| matches!(target, Target::Wake(_))) && named.insert(Target::Inbox) {
        notify.targets.push(Target::Inbox);
    }
    let parent = match caller.pid {
        Some(pid) => ancestry::enclosing(inner, pid).await?,
        None => None,
    };
    let depth = parent.as_ref().map_or(0, |parent| parent.depth + 1);
    if depth > inner.config().nested.depth {
        return Err(Error::TooDeep { depth });
    }
    if let Some(parent) = parent.as_ref().filter(|parent| !parent.spec.allow_nested_notify) {
        let target =
            spec.notify.iter().flat_map(|notify| &notify.targets).find(|target| **target != Target::Inbox);
        let asked = target.map(|target| format!("the target `{}`", target.shown()));
        let granted = spec.allow_nested_notify.then(|| "`allow_nested_notify`".to_owned());
        if let Some(what) = asked.or(granted) {
            return Err(Error::NestedNotify(what, parent.id.clone()));
        }
    }
    let now = inner.now();
    let idempotency = idempotency.map(|given| Idempotency {
        key: given.key,
        body_hash: given.body_hash,
        expires_at: now.plus_millis(IDEMPOTENCY_MS),
    });
    if spec.kind == Kind::External {
        let parent = parent.map(|parent| parent.id);
        return external::track(inner, Asked { spec, owner, parent, depth, idempotency, now }).await;
    }
    // Recorded, so that everybody can see where it runs and a relaunch by another daemon runs there too.
    spec.cwd.get_or_insert_with(|| inner.fallback_cwd.clone());
    let values = values(inner, &mut spec)?;
    let (mut stored, volatile_secrets) = launch::storable(&spec);
    let mut masks = Masks::new(entropy::draw(), &values.all, |name| spec.secrets.contains_key(name));
    for target in spec.notify.iter().flat_map(|notify| &notify.targets) {
        if let Some(name) = masks.given_in(&target.to_string()) {
            return Err(Error::Target(format!(
                "the target contains the value of the secret `{name}`: a target is kept for as long as something is on its way, and that value \
                 is never written down"
            )));
        }
    }
    if let Some(name) = spec.watch.iter().find_map(|pattern| masks.given_in(pattern)) {
        return Err(Error::BadParameter(format!(
            "`watch` contains the value of the secret `{name}`, which is never written down"
        )));
    }
    masks.cover_spec(&mut stored);
    let command = stored.command_line();
    let names: BTreeSet<_> = values.all.keys().filter(|name| !name.starts_with(UNNAMED)).cloned().collect();
    loop {
        let id = TaskId::from_entropy(entropy::draw());
        let folder = match make_folder(inner, &id, &values.written) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => {
                let error = folder_error(&error);
                if matches!(error, Error::Full) {
                    inner.set_degraded(Some(error.to_string()));
                }
                return Err(error);
            }
        };
        let task = NewTask {
            kind: Kind::Command,
            tracking: None,
            id: id.clone(),
            spec: stored.clone(),
            owner: owner.clone(),
            command: command.clone(),
            env_names: names.iter().cloned().collect(),
            volatile_secrets: volatile_secrets.clone(),
            masks: masks.clone(),
            parent: parent.as_ref().map(|parent| parent.id.clone()),
            depth,
            node: inner.node.clone(),
            boot_id: inner.boot_id.clone(),
        };
        let submit = Submit { task, on_duplicate: spec.on_duplicate, idempotency: idempotency.clone() };
        inner.live.expect(&id);
        let submitted = inner.store.submit(submit, now).await;
        if !matches!(submitted, Ok(Submitted::Created(_))) {
            let _ = inner.home.remove_task(&id);
            inner.live.expect_no_more(&id);
        }
        match submitted {
            Ok(Submitted::Created(record)) => {
                inner.set_degraded(None);
                inner.bump();
                let attendance = inner.live.enter(record.clone());
                inner.live.expect_no_more(&id);
                if let Some(attendance) = attendance {
                    let begin = Begin::Launch(folder, values.all);
                    let attending =
                        attend::attend(Arc::clone(inner), record.clone(), attendance, begin, None);
                    tokio::spawn(async {
                        // Whoever asked is answered first: a launch takes a while.
                        tokio::task::yield_now().await;
                        attending.await;
                    });
                }
                return Ok((record, false));
            }
            Ok(Submitted::Joined(record)) => return Ok((record, true)),
            Ok(Submitted::IdempotencyMismatch) => return Err(Error::IdempotencyMismatch),
            Ok(Submitted::Duplicate(id)) => return Err(Error::Duplicate(id)),
            Ok(Submitted::IdTaken | Submitted::NothingToTrack) => {}
            Err(error) => {
                inner.set_degraded(Some(error.to_string()));
                return Err(error.into());
            }
        }
    }
}

/// Values for the launch: all of them, and those that may be written to the attempt's folder.
struct LaunchValues {
    all: Values,
    written: Values,
}

fn values(inner: &Inner, spec: &mut Spec) -> Result<LaunchValues, Error> {
    let mut written = match spec.env.take() {
        Some(given) => given.into_iter().filter(|(name, _)| !name.starts_with("HOMING_")).collect(),
        None => inner.default_env.clone(),
    };
    written.retain(|name, _| !spec.secrets.contains_key(name));
    let mut secrets = Values::new();
    for (name, secret) in &spec.secrets {
        let value: OsText = match secret {
            Secret::Value(value) => value.clone(),
            Secret::File(path) => launch::read_secret(path)
                .map_err(|error| Error::Secret { name: name.clone(), why: error.to_string() })?,
        };
        secrets.insert(name.clone(), value);
    }
    // What stands in the command line alone is written beside the environment, and gone with it; nothing of a secret is.
    let within = |whole: &[u8], part: &[u8]| whole.windows(part.len().max(1)).any(|window| window == part);
    let obvious = obvious::find(spec).into_iter().filter(|(_, value)| {
        !secrets.values().any(|secret| within(secret.as_bytes(), value) || within(value, secret.as_bytes()))
    });
    for (index, (name, value)) in obvious.enumerate() {
        let name = if index == 0 { name } else { format!("{name} {}", index + 1) };
        written.insert(format!("{UNNAMED}{name}"), value.to_vec().into());
    }
    let mut all = written.clone();
    all.extend(secrets);
    Ok(LaunchValues { all, written })
}

pub(crate) fn make_folder(inner: &Inner, id: &TaskId, values: &Values) -> io::Result<std::os::fd::OwnedFd> {
    let folder = inner.home.make_task(id)?;
    if let Err(error) = launch::write_environment(&folder, values) {
        let _ = inner.home.remove_task(id);
        return Err(error);
    }
    Ok(folder)
}

pub(crate) fn folder_error(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full,
        _ if matches!(Errno::from_io_error(error), Some(Errno::NFILE | Errno::MFILE)) => {
            Error::Limit(error.to_string())
        }
        _ => Error::Folder(error.to_string()),
    }
}
