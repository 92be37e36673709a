//! From a request to an accepted task. Decides and reads; changes nothing.

use homing_agents::registry;
use homing_model::agent::{KEPT_PROMPT, head};
use homing_model::nesting::TaskAccess;
use homing_model::{Kind, Masks, Session, Spec, TaskId};
use homing_store::{NewTask, Record};

use crate::admission::caller_scope::CallerScope;
use crate::admission::{targets, values};
use crate::agent;
use crate::agent::plan::Plan;
use crate::engine::Inner;
use crate::entropy;
use crate::error::Error;
use crate::external::{self, Foreign};
use crate::supervisor::launch::{self, Values};

/// A task that passed admission and is not committed yet.
#[derive(Debug)]
pub(crate) struct AcceptedTask {
    /// Its row. No value of a secret is in it.
    pub(crate) row: NewTask,
    /// What its start needs besides.
    pub(crate) execution: Execution,
}

/// What the start of a task needs that the ledger does not hold.
#[derive(Debug)]
pub(crate) enum Execution {
    /// A shim runs it.
    Command(LaunchData),
    /// Someone else runs it; the process is watched if there is one.
    External(Option<Foreign>),
}

/// What a shim needs to start a command.
#[derive(Debug, Default)]
pub(crate) struct LaunchData {
    /// All variables, secrets included.
    pub(crate) values: Values,
    /// The file in the task's folder that is the command's input: name and contents.
    pub(crate) input: Option<(&'static str, String)>,
}

/// Who submits, once that is decided.
#[derive(Debug)]
pub(crate) struct TaskOrigin {
    pub(crate) owner: String,
    pub(crate) scope: CallerScope,
    /// Whether the request came over the network.
    pub(crate) network: bool,
}

impl TaskOrigin {
    /// A row of this submitter.
    pub(crate) fn row(&self, inner: &Inner, spec: Spec, command: String) -> NewTask {
        NewTask {
            kind: spec.kind,
            owner: self.owner.clone(),
            parent: self.scope.parent(),
            depth: self.scope.depth(),
            network: self.network,
            ..row(inner, spec, command)
        }
    }

    /// A task of this owner that the request turned out to name: it must be the caller's to see.
    pub(crate) async fn may_see(&self, inner: &Inner, record: &Record) -> Result<(), Error> {
        self.may(inner, TaskAccess::Read, "key", record).await
    }

    async fn may(&self, inner: &Inner, access: TaskAccess, what: &str, record: &Record) -> Result<(), Error> {
        self.scope.permit(inner, &record.owner, access, what, &record.id).await
    }
}

/// A row of the kind that the spec names, of no owner, with an id that may be taken.
pub(crate) fn row(inner: &Inner, spec: Spec, command: String) -> NewTask {
    NewTask {
        id: TaskId::from_entropy(entropy::draw()),
        kind: spec.kind,
        tracking: None,
        agent: None,
        spec,
        owner: String::new(),
        command,
        env_names: Vec::new(),
        volatile_secrets: Vec::new(),
        masks: Masks::default(),
        parent: None,
        depth: 0,
        network: false,
        node: inner.node.clone(),
        boot_id: inner.boot_id.clone(),
    }
}

/// Accepts a task, or says why not.
pub(crate) async fn accept(inner: &Inner, by: &TaskOrigin, mut spec: Spec) -> Result<AcceptedTask, Error> {
    spec.owner = Some(by.owner.clone());
    spec.validate()?;
    if by.network || by.scope.limited_to().is_some() {
        // A caller over the network does not name sockets, programs or terminals of this machine. A caller inside a
        // task does not either: a wake takes that way outside of the task.
        spec.session = spec.session.and_then(|session| Session::new(session.agent, &session.id));
        spec.pane = None;
    }
    spec.session = match spec.session.take() {
        Some(session) => {
            let agent = registry::known(session.agent.as_str());
            let agent = agent.map_err(|why| Error::BadParameter(format!("`session`: {why}")))?;
            Some(Session { asleep: !agent.identity().wakes, ..session })
        }
        // An owner that is a session is found by its name, though nothing more is known of the way there.
        None => registry::session_of(&by.owner),
    };
    let config = inner.config();
    targets::limit(&config, &mut spec);
    by.scope.may_submit(inner, &spec, &by.owner).await?;
    targets::resolve(&config, &mut spec, |target, notify| inner.check_target(target, notify, !by.network))?;
    match spec.kind {
        Kind::External => external::accept(inner, by, spec),
        Kind::Agent => {
            let plan = agent::plan::plan(inner, &mut spec, &by.owner).await?;
            if let Some(earlier) = &plan.agent.continues {
                by.may(inner, TaskAccess::Control, "continue", &inner.record(earlier).await?).await?;
            }
            command(inner, by, spec, Some(plan)).await
        }
        Kind::Command | Kind::Hook => command(inner, by, spec, None).await,
    }
}

async fn command(
    inner: &Inner,
    by: &TaskOrigin,
    mut spec: Spec,
    plan: Option<Plan>,
) -> Result<AcceptedTask, Error> {
    // Recorded, so that everybody can see where it runs and a relaunch by another daemon runs there too.
    spec.cwd.get_or_insert_with(|| inner.fallback_cwd.clone());
    let values = values::collect(&inner.default_env, &mut spec).await?;
    let mut masks = Masks::new(entropy::draw(), &values, |name| spec.secrets.contains_key(name));
    let (agent, input) = plan.map_or((None, None), |plan| (Some(plan.agent), plan.input));
    values::refuse_secrets(&masks, &spec, input.as_deref())?;
    let (mut stored, volatile_secrets) = launch::storable(&spec);
    masks.cover_spec(&mut stored);
    stored.env_set = values::kept_variables(&spec, &masks);
    if let Some(prompt) = &mut stored.prompt {
        prompt.truncate(head(prompt, KEPT_PROMPT).len());
    }
    let command = stored.command_line();
    let env_names = values::names(&values);
    let row = NewTask { agent, env_names, volatile_secrets, masks, ..by.row(inner, stored, command) };
    let input = input.map(|prompt| (agent::prompt::FILE, prompt));
    Ok(AcceptedTask { row, execution: Execution::Command(LaunchData { values, input }) })
}
