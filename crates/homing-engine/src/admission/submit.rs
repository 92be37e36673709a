//! Accepting a task: checked, folder made, recorded durably, handed to the keeper, answered.
//!
//! Keeps P9 and P10. What can crash where: before the commit there is at most a folder that nobody knows, which the next start
//! sweeps away; after it the task exists, with its folder, and whoever opens the home next finds it unstarted and launches it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use homing_agents::registry;
use homing_model::agent::{KEPT_PROMPT, head};
use homing_model::mask::UNNAMED;
use homing_model::nesting::{Act, Deed, judge, judge_spec};
use homing_model::route::Address;
use homing_model::{
    Kind, Masks, NoRoute, Notify, OsText, Secret, Session, Spec, Stdin, Target, Task, TaskId, obvious,
};
use homing_store::store::{Answered, Idempotency, Submit, Submitted};
use homing_store::{NewTask, Record};
use rustix::io::Errno;

use crate::admission::nesting::{self, Inside, Standing};
use crate::agent;
use crate::agent::plan::Plan;
use crate::engine::{Engine, Inner};
use crate::entropy;
use crate::error::Error;
use crate::external::{self, Asked};
use crate::query::view;
use crate::supervisor::launch::{self, Values};
use crate::supervisor::{self, Begin};

/// An idempotency key stands for its body this long.
const IDEMPOTENCY_MS: i64 = 24 * 3_600 * 1_000;

/// Who submits.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whom the task belongs to, where the spec does not say.
    pub owner: Option<String>,
    /// What the tasks that the calling process runs in let it do.
    pub standing: Standing,
    /// Whether it is known to be on this machine, as this user: then webhooks of its tasks may go to this machine's own ports.
    pub local: bool,
}

/// Whoever has the engine itself: this process.
impl Default for Caller {
    fn default() -> Self {
        Self { owner: None, standing: Standing::default(), local: true }
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
    /// It was there before, with the same key. A request that is sent again is answered as it was the first time.
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
        self.submit_made(Ok(spec), caller, idempotency).await
    }

    /// The same for a spec that had to be made first; the owner is that of the caller where there is none.
    pub(crate) async fn submit_made(
        &self,
        spec: Result<Spec, (Option<String>, Error)>,
        caller: Caller,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Submission, Error> {
        let inner = Arc::clone(&self.inner);
        // To the end, even if the caller goes away in the middle: a task that was committed would have nobody who starts it.
        let accepting =
            tokio::spawn(async move { Box::pin(submit(&inner, spec, caller, idempotency)).await });
        let (record, joined) = accepting.await.map_err(|_| Error::Closed)??;
        Ok(Submission { task: view::task(&self.inner, record), joined })
    }
}

/// Accepts it. What a request was answered with stands, whatever has changed since: a program that is gone, a file that cannot be read, a
/// full disk. So a refusal is the answer only where the ledger has no other; who is not refused is told the same by the commit.
async fn submit(
    inner: &Arc<Inner>,
    spec: Result<Spec, (Option<String>, Error)>,
    caller: Caller,
    idempotency: Option<IdempotencyKey>,
) -> Result<(Record, bool), Error> {
    let now = inner.now();
    let idempotency = idempotency.map(|given| Idempotency {
        key: given.key,
        body_hash: given.body_hash,
        expires_at: now.plus_millis(IDEMPOTENCY_MS),
    });
    let (named, session) = match &spec {
        Ok(spec) => (&spec.owner, spec.session.as_ref().map(Session::owner)),
        Err((owner, _)) => (owner, None),
    };
    let asked = named.as_deref().or(caller.owner.as_deref());
    let mut standing = caller.standing;
    if let Some(owner) = named {
        standing = nesting::claim_session(inner, standing, owner, None).await?;
    }
    // Before the ledger is asked for an earlier answer: those of another owner are not the caller's to see.
    let owner = standing.owner(asked, session.as_deref())?;
    let nest = Nest::new(inner, &standing);
    let refusal = match spec {
        Ok(spec) => {
            let asked = Asked {
                spec,
                owner: owner.clone(),
                nest: &nest,
                network: !caller.local,
                idempotency: idempotency.clone(),
                now,
            };
            match Box::pin(accept(inner, asked, &standing)).await {
                Err(refusal) => refusal,
                accepted => return accepted,
            }
        }
        Err((_, refusal)) => refusal,
    };
    let Some(request) = idempotency else { return Err(refusal) };
    match inner.store.answered(owner, request, now).await {
        Ok(Some(answered)) => nest.repeated(inner, answered).await,
        Ok(None) | Err(_) => Err(refusal),
    }
}

async fn accept(inner: &Arc<Inner>, asked: Asked<'_>, standing: &Standing) -> Result<(Record, bool), Error> {
    let Asked { mut spec, owner, nest, network, idempotency, now } = asked;
    spec.owner = Some(owner.clone());
    spec.validate()?;
    if network || standing.limited_to().is_some() {
        // Over a network nobody says by which socket, program or terminal of this machine a session is reached; nor inside a task, since
        // whoever goes that way goes it outside.
        spec.session = spec.session.and_then(|session| Session::new(session.agent, &session.id));
        spec.pane = None;
    }
    // Who speaks for a session is told where it is, though no more is known of the way there.
    let session = match spec.session.take() {
        Some(session) => {
            let agent = registry::known(session.agent.as_str());
            let agent = agent.map_err(|why| Error::BadParameter(format!("`session`: {why}")))?;
            Some(Session { asleep: !agent.identity().wakes, ..session })
        }
        None => registry::session_of(&owner),
    };
    spec.session.clone_from(&session);
    let pane = spec.pane.clone();
    let notify = spec.notify.get_or_insert_with(Notify::usual);
    let policy = &inner.config().notify;
    notify.on = notify.on.at_most(policy.on);
    // Told twice is not told better.
    let mut named = HashSet::new();
    notify.targets.retain(|target| named.insert(target.clone()));
    nest.admit(inner, &spec, &owner).await?;
    if let Some(notify) = &mut spec.notify {
        for target in &notify.targets {
            policy.check(target.into()).map_err(Error::Forbidden)?;
            // Before the pane: what runs there does not matter while the setting is off.
            if let Target::Wake(Some(whom)) = target
                && let Ok(Address::Tmux(pane)) = whom.parse()
                && !inner.config().wake.tmux
            {
                return Err(NoRoute::TmuxOff(pane).into());
            }
            // The way of a wake is found now or never.
            let route = registry::route(target, session.as_ref(), pane.as_ref())?;
            let named = route.map_or_else(|| target.clone(), |route| route.target());
            inner.check_target(&named, notify, !network)?;
        }
        // Where nobody can be woken after all, the notice is still there.
        if notify.targets.iter().any(|target| matches!(target, Target::Wake(_)))
            && named.insert(Target::Inbox)
        {
            notify.targets.push(Target::Inbox);
        }
    }
    if spec.kind == Kind::External {
        let asked = Asked { spec, owner, nest, network, idempotency, now };
        return external::track(inner, asked).await;
    }
    let plan = match spec.kind {
        Kind::Agent => Some(nest.checked(inner, agent::plan::plan(inner, &mut spec, &owner).await?).await?),
        Kind::Command | Kind::External | Kind::Hook => None,
    };
    // Recorded, so that everybody can see where it runs and a relaunch by another daemon runs there too.
    spec.cwd.get_or_insert_with(|| inner.fallback_cwd.clone());
    let values = values(inner, &mut spec).await?;
    let (mut stored, volatile_secrets) = launch::storable(&spec);
    let mut masks = Masks::new(entropy::draw(), &values.all, |name| spec.secrets.contains_key(name));
    for target in spec.notify.iter().flat_map(|notify| &notify.targets) {
        if let Some(name) = masks.given_in(&target.to_string()) {
            return Err(Error::SecretInTarget(name.to_owned()));
        }
    }
    if let Some(name) = spec.watch.iter().find_map(|pattern| masks.given_in(pattern)) {
        return Err(Error::BadParameter(format!(
            "`watch` contains the value of the secret `{name}`, which is never written down"
        )));
    }
    if let Some(name) = plan.as_ref().and_then(|plan| masks.given_in(plan.input.as_deref()?)) {
        return Err(Error::BadParameter(format!(
            "`prompt` contains the value of the secret `{name}`, which is never written down: name the variable instead, the agent has it"
        )));
    }
    masks.cover_spec(&mut stored);
    stored.env_set = kept_variables(&spec, &masks);
    if let Some(prompt) = &mut stored.prompt {
        prompt.truncate(head(prompt, KEPT_PROMPT).len());
    }
    let command = stored.command_line();
    let names: BTreeSet<_> = values.all.keys().filter(|name| !name.starts_with(UNNAMED)).cloned().collect();
    loop {
        let id = TaskId::from_entropy(entropy::draw());
        let input = plan.as_ref().and_then(|plan| plan.input.as_deref());
        if input.is_some() {
            let path = inner.home.task(&id).join(agent::prompt::FILE);
            stored.stdin = Stdin::File(path.into_os_string().into());
        }
        let task = NewTask {
            kind: spec.kind,
            tracking: None,
            agent: plan.as_ref().map(|plan| plan.agent.clone()),
            id: id.clone(),
            spec: stored.clone(),
            owner: owner.clone(),
            command: command.clone(),
            env_names: names.iter().cloned().collect(),
            volatile_secrets: volatile_secrets.clone(),
            masks: masks.clone(),
            parent: nest.parent(),
            depth: nest.depth,
            network,
            node: inner.node.clone(),
            boot_id: inner.boot_id.clone(),
        };
        let submit = Submit {
            task,
            on_duplicate: spec.on_duplicate,
            children: nest.children,
            idempotency: idempotency.clone(),
            policy: homing_model::queue::StartPolicy::default(),
        };
        inner.live.expect(&id);
        // Before the commit: a task is never accepted without its folder.
        let folder = match make_folder(inner, &id, &values.written, input) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                inner.live.expect_no_more(&id);
                continue;
            }
            Err(error) => {
                inner.live.expect_no_more(&id);
                let error = folder_error(&error);
                if matches!(error, Error::Full) {
                    inner.set_degraded(Some(error.to_string()));
                }
                return Err(error);
            }
        };
        let submitted = inner.store.submit(submit, now).await;
        if !matches!(submitted, Ok(Submitted::Created(_))) {
            let _ = inner.home.remove_task(&id);
            inner.live.expect_no_more(&id);
        }
        match submitted {
            Ok(Submitted::Created(record)) => {
                inner.set_degraded(None);
                inner.meters.submitted(record.kind);
                tracing::debug!(task = %record.id, kind = record.kind.as_str(), "accepted");
                inner.bump();
                let attendance = inner.live.enter(record.clone());
                inner.live.expect_no_more(&id);
                if let Some(attendance) = attendance {
                    let begin = Begin::Launch(folder, values.all);
                    let attending =
                        supervisor::attend(Arc::clone(inner), record.clone(), attendance, begin, None);
                    tokio::spawn(async {
                        // Whoever asked is answered first: a launch takes a while.
                        tokio::task::yield_now().await;
                        attending.await;
                    });
                }
                return Ok((record, false));
            }
            Ok(Submitted::Joined(record)) => return nest.joined(inner, record).await,
            Ok(Submitted::Repeated(answered)) => return nest.repeated(inner, answered).await,
            Ok(Submitted::TooManyChildren) => return Err(nest.full()),
            Ok(Submitted::IdempotencyMismatch) => return Err(Error::IdempotencyMismatch),
            Ok(Submitted::Duplicate(id)) => return Err(Error::Duplicate(id)),
            Ok(Submitted::SessionGone(task)) => {
                let why = "it is forgotten, and its session with it".to_owned();
                return Err(Error::NotContinued { task, why });
            }
            Ok(Submitted::SessionBusy(id)) => return Err(Error::Live(id)),
            Ok(Submitted::IdTaken | Submitted::NothingToTrack) => {}
            Err(error) => {
                inner.set_degraded(Some(error.to_string()));
                return Err(error.into());
            }
        }
    }
}

/// Where a submit stands among tasks.
pub(crate) struct Nest {
    inside: Option<Inside>,
    /// How many tasks the new one will be in.
    pub(crate) depth: u32,
    /// How many live ones its parent may have.
    pub(crate) children: u32,
}

impl Nest {
    fn new(inner: &Inner, standing: &Standing) -> Self {
        let inside = standing.inside().cloned();
        let depth = inside.as_ref().map_or(0, |inside| inside.depth + 1);
        Self { inside, depth, children: inner.config().nested.children }
    }

    /// Whether this may be submitted from there.
    async fn admit(&self, inner: &Inner, spec: &Spec, owner: &str) -> Result<(), Error> {
        if self.depth > inner.config().nested.depth {
            return Err(Error::TooDeep { depth: self.depth });
        }
        let Some(inside) = &self.inside else { return Ok(()) };
        let mut targets = spec.notify.iter().flat_map(|notify| &notify.targets);
        let wakes = targets.any(|target| matches!(target, Target::Wake(_)));
        // A call can name any session that the ledger has not seen. A wake puts text into that
        // session, so a hook must have named it in a process of this task.
        let own =
            inside.is_session(owner) && (!wakes || nesting::is_bound_within(inner, inside, owner).await?);
        judge_spec(inside.place, spec, own).map_err(|(rule, what)| inside.refused(rule, what))
    }

    /// The task that it is submitted from.
    pub(crate) fn parent(&self) -> Option<TaskId> {
        self.inside.as_ref().map(|inside| inside.task.clone())
    }

    /// There is no room for another.
    pub(crate) fn full(&self) -> Error {
        match self.parent() {
            Some(parent) => Error::TooManyChildren { parent, most: self.children },
            None => Error::TooDeep { depth: self.depth },
        }
    }

    /// It turned out to be a task that was there before: that one must be the caller's to see.
    pub(crate) async fn joined(&self, inner: &Inner, record: Record) -> Result<(Record, bool), Error> {
        self.check(inner, Act::Look, "key", &record.owner, &record.id).await?;
        inner.meters.joined();
        Ok((record, true))
    }

    /// It turned out to be asked again: it is answered as it was the first time. Whoever asked may never have heard that, and has all that
    /// comes after it still to do.
    pub(crate) async fn repeated(&self, inner: &Inner, answered: Answered) -> Result<(Record, bool), Error> {
        let Answered { record, joined } = answered;
        self.check(inner, Act::Look, "key", &record.owner, &record.id).await?;
        Ok((record, joined))
    }

    /// Whoever goes on with the session of a task speaks to it: that one must be the caller's too.
    async fn checked(&self, inner: &Inner, plan: Plan) -> Result<Plan, Error> {
        if let Some(earlier) = &plan.agent.continues {
            let owner = inner.record(earlier).await?.owner;
            self.check(inner, Act::Steer, "continue", &owner, earlier).await?;
        }
        Ok(plan)
    }

    async fn check(
        &self,
        inner: &Inner,
        act: Act,
        what: &str,
        owner: &str,
        task: &TaskId,
    ) -> Result<(), Error> {
        let Some(inside) = &self.inside else { return Ok(()) };
        let relation = nesting::relation(inner, inside, owner, task).await?;
        let refused = |rule| inside.refused(rule, format!("`{what}` of task {task}"));
        judge(inside.place, Deed::To(act, relation)).map_err(refused)
    }
}

/// Values for the launch: all of them, and those that may be written to the attempt's folder.
struct LaunchValues {
    all: Values,
    written: Values,
}

/// What was set for the task alone, as far as it may be kept; of a secret only that there was one.
pub(crate) fn kept_variables(spec: &Spec, masks: &Masks) -> BTreeMap<String, Option<OsText>> {
    let set = spec.env_set.iter().filter(|(name, _)| !spec.secrets.contains_key(*name));
    set.map(|(name, value)| (name.clone(), value.clone().filter(|value| masks.may_keep(name, value))))
        .collect()
}

async fn values(inner: &Inner, spec: &mut Spec) -> Result<LaunchValues, Error> {
    let mut written = spec.env.take().unwrap_or_else(|| inner.default_env.clone());
    let set = spec.env_set.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    written.extend(set);
    written.retain(|name, _| !name.starts_with("HOMING_"));
    written.retain(|name, _| !spec.secrets.contains_key(name));
    let mut secrets = Values::new();
    for (name, secret) in &spec.secrets {
        let value: OsText = match secret {
            Secret::Value(value) => value.clone(),
            Secret::File(path) => {
                launch::read_secret(path).await.map_err(|error| Error::secret(name, path, &error))?
            }
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

/// Makes the folder of a new task, with its environment, and with a prompt if there is one.
pub(crate) fn make_folder(
    inner: &Inner,
    id: &TaskId,
    values: &Values,
    prompt: Option<&str>,
) -> io::Result<std::os::fd::OwnedFd> {
    let folder = inner.home.make_task(id)?;
    let written = launch::write_environment(&folder, values)
        .and_then(|()| prompt.map_or(Ok(()), |prompt| agent::prompt::write(&folder, prompt)));
    if let Err(error) = written {
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
