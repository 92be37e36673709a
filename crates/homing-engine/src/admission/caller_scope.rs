//! Callers inside tasks, and what they may do. Keeps P11.
//!
//! The table is the model's (`homing_model::nesting`); this module applies it to the tasks in the ledger. No claim of
//! the calling process counts. The session of an agent inside a task is recorded with the task, once, and only if it
//! has no other user: it owns no task from elsewhere, no process outside of the task is in it, and it is not the owner
//! of the task itself. The record follows the agent into its next conversation (`/clear`) under the same conditions.

use homing_agents::registry;
use homing_model::environment::DEFAULT_OWNER;
use homing_model::nesting::{Action, Authority, Relation, TaskAccess, allow, allow_spec};
use homing_model::{Spec, Target, TaskId, nesting};
use homing_store::{Binding, SessionClaim};
use homing_sys::process::{self, Process};

use crate::admission::ancestry::{self, Ancestry};
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::inbox::session;

/// Families are as deep as the configuration lets them be; a longer chain is a damaged ledger.
const GENERATIONS: usize = 1_000;

/// What a caller may reach: everything, or the family of the task that it runs in.
#[derive(Debug, Clone, Default)]
pub struct CallerScope(Option<CallerTask>);

/// The task that a caller runs in.
#[derive(Debug, Clone)]
pub(crate) struct CallerTask {
    task: TaskId,
    /// Of that task.
    owner: String,
    depth: u32,
    authority: Authority,
    /// The session of the agent inside that task, once it is recorded.
    session: Option<String>,
}

impl CallerScope {
    /// The task whose family is all that the caller sees; none if it sees everything.
    #[must_use]
    pub fn limited_to(&self) -> Option<&TaskId> {
        self.0.as_ref().filter(|inside| inside.authority != Authority::Trusted).map(|inside| &inside.task)
    }

    /// The task that the caller runs in.
    pub(crate) fn parent(&self) -> Option<TaskId> {
        self.0.as_ref().map(|inside| inside.task.clone())
    }

    /// How many tasks a new task of this caller is nested in.
    pub(crate) fn depth(&self) -> u32 {
        self.0.as_ref().map_or(0, |inside| inside.depth + 1)
    }

    fn check(&self, action: Action, what: impl FnOnce() -> String) -> Result<(), Error> {
        let Some(inside) = &self.0 else { return Ok(()) };
        allow(inside.authority, action).map_err(|rule| inside.refused(rule, what()))
    }

    /// Whether the caller may change daemon-wide settings.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn may_configure(&self, what: &str) -> Result<(), Error> {
        self.check(Action::Configure, || format!("`{what}`"))
    }

    /// Whether the caller may see the tasks of all owners.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn may_look_around(&self, what: &str) -> Result<(), Error> {
        self.check(Action::Task(TaskAccess::Read, Relation::Foreign), || format!("`{what}` of everybody"))
    }

    /// Whether the caller may use the inbox of this owner.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn may_use_inbox(&self, what: &str, owner: &str) -> Result<(), Error> {
        let own = self.0.as_ref().is_some_and(|inside| inside.is_session(owner));
        self.check(Action::Inbox { own }, || format!("`{what}` of `{owner}`"))
    }

    /// The owner of a new task of this caller, which `asked` for one; its environment names the session `detected`.
    pub(crate) fn owner(&self, asked: Option<&str>, detected: Option<&str>) -> Result<String, Error> {
        let Some(inside) = &self.0 else { return Ok(asked.unwrap_or(DEFAULT_OWNER).to_owned()) };
        let session = inside.session.as_deref();
        let submitter = nesting::Submitter { authority: inside.authority, outer: &inside.owner, session };
        nesting::owner(submitter, asked, detected).map(str::to_owned).map_err(|rule| {
            let asked = homing_model::sanitize::line(asked.unwrap_or_default());
            inside.refused(rule, format!("the owner `{asked}` (`owner`)"))
        })
    }

    /// Whether the caller may submit this.
    pub(crate) async fn may_submit(&self, inner: &Inner, spec: &Spec, owner: &str) -> Result<(), Error> {
        let depth = self.depth();
        if depth > inner.config().nested.depth {
            return Err(Error::TooDeep { depth });
        }
        let Some(inside) = &self.0 else { return Ok(()) };
        let mut targets = spec.notify.iter().flat_map(|notify| &notify.targets);
        let wakes = targets.any(|target| matches!(target, Target::Wake(_)));
        // A call can name any session that the ledger has not seen. A wake puts text into that
        // session, so a hook must have named it in a process of this task.
        let own = inside.is_session(owner) && (!wakes || is_bound_within(inner, inside, owner).await?);
        allow_spec(inside.authority, spec, own).map_err(|(rule, what)| inside.refused(rule, what))
    }

    /// There is no room for another child.
    pub(crate) fn too_many(&self, most: u32) -> Error {
        match self.parent() {
            Some(parent) => Error::TooManyChildren { parent, most },
            None => Error::TooDeep { depth: self.depth() },
        }
    }

    /// See [`Engine::permit`].
    pub(crate) async fn permit(
        &self,
        inner: &Inner,
        owner: &str,
        access: TaskAccess,
        what: &str,
        task: &TaskId,
    ) -> Result<(), Error> {
        let Some(inside) = &self.0 else { return Ok(()) };
        if inside.authority == Authority::Trusted {
            return Ok(());
        }
        let relation = relation(inner, inside, owner, task).await?;
        self.check(Action::Task(access, relation), || format!("`{what}` of task {task}"))
    }
}

impl CallerTask {
    fn refused(&self, rule: nesting::Rule, what: String) -> Error {
        Error::Nested { rule, what, task: self.task.clone() }
    }

    /// Whether an owner is the agent's own session.
    fn is_session(&self, owner: &str) -> bool {
        self.authority == Authority::Agent && self.session.as_deref() == Some(owner)
    }
}

impl Engine {
    /// Returns the permissions of a caller running inside these tasks. A process may call itself a shim, but it cannot leave the shim that it
    /// is in. So the outermost of several tasks counts: shims are children of the keeper and in no other task.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn caller_scope(&self, ancestry: &Ancestry) -> Result<CallerScope, Error> {
        for id in ancestry.tasks().iter().rev() {
            let Some(record) = self.inner.store.get(id.clone()).await? else {
                // A folder that no task has: a process that makes one does not leave its own task by it.
                if ancestry.is_unattended() {
                    return Err(Error::Orphan(id.clone()));
                }
                continue;
            };
            // Which of the tasks that have ended left it behind is its own choice, so what such a task lent is over.
            let ended = ancestry.is_unattended() && record.status.is_terminal();
            let authority =
                if ended { Authority::Command } else { Authority::inside(record.kind, &record.spec) };
            if authority != Authority::Outside {
                let inside = CallerTask {
                    task: record.id,
                    owner: record.owner,
                    depth: record.depth,
                    authority,
                    session: record.nested_session,
                };
                return Ok(CallerScope(Some(inside)));
            }
        }
        Ok(CallerScope::default())
    }

    /// Records `owner` as the session of the caller's task if that is an agent's, has none yet, and nobody else has this one.
    ///
    /// # Errors
    /// If the ledger cannot be read or written.
    pub async fn claim_session(&self, scope: CallerScope, owner: &str) -> Result<CallerScope, Error> {
        claim_session(&self.inner, scope, owner, None).await
    }

    /// Whether a caller that speaks for `owner` may do this with a task.
    ///
    /// # Errors
    /// The rule that forbids it; or that there is no such task.
    pub async fn permit(
        &self,
        scope: &CallerScope,
        owner: &str,
        access: TaskAccess,
        what: &str,
        task: &TaskId,
    ) -> Result<(), Error> {
        scope.permit(&self.inner, owner, access, what, task).await
    }

    /// Whether a caller may see this task, where what it may not see is left out.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn sees(&self, scope: &CallerScope, owner: &str, task: &TaskId) -> Result<bool, Error> {
        match self.permit(scope, owner, TaskAccess::Read, "", task).await {
            Ok(()) => Ok(true),
            Err(Error::Nested { .. } | Error::Unknown(_) | Error::NoLast(_) | Error::Expired(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// See [`Engine::claim_session`]. `agent` is the process whose hook names the session: it may leave the recorded session for this one, unless
/// another process is still in the recorded one.
pub(crate) async fn claim_session(
    inner: &Inner,
    mut scope: CallerScope,
    owner: &str,
    agent: Option<&Process>,
) -> Result<CallerScope, Error> {
    let Some(inside) = scope.0.as_mut().filter(|inside| inside.authority == Authority::Agent) else {
        return Ok(scope);
    };
    let Some(named) =
        registry::session_of(owner).filter(|_| owner != inside.owner && !inside.is_session(owner))
    else {
        return Ok(scope);
    };
    let recorded = inside.session.as_deref().and_then(registry::session_of);
    let replaces = match (recorded, agent) {
        (None, _) => None,
        (Some(_), None) => return Ok(scope),
        (Some(recorded), Some(agent)) => {
            let is_agent = |bound: &Binding| (bound.pid, bound.start) == (agent.pid, agent.start);
            if session::live_binding(inner, &recorded).await?.is_some_and(|bound| !is_agent(&bound)) {
                return Ok(scope);
            }
            Some(recorded.owner())
        }
    };
    let bound = session::live_binding(inner, &named).await?;
    if bound.as_ref().is_some_and(|bound| !is_within(inner, inside, bound)) {
        return Ok(scope);
    }
    // The process of the hook may go back to a session that has ended in it.
    let here = |agent: &Process| Binding {
        agent: named.agent.clone(),
        session: named.id.clone(),
        node: inner.node.clone(),
        boot_id: inner.boot_id.clone(),
        pid: agent.pid,
        start: agent.start,
        streak: 0,
        bound_at: inner.now(),
    };
    let bound = bound.or_else(|| agent.map(here));
    let claim =
        SessionClaim { task: inside.task.clone(), session: owner.to_owned(), replaces, inside: bound };
    inside.session = inner.store.claim_session(claim).await?;
    Ok(scope)
}

/// Whether a hook has named the session that an owner is in a live process inside of the task.
async fn is_bound_within(inner: &Inner, inside: &CallerTask, owner: &str) -> Result<bool, Error> {
    let Some(named) = registry::session_of(owner) else { return Ok(false) };
    let bound = session::live_binding(inner, &named).await?;
    Ok(bound.is_some_and(|bound| is_within(inner, inside, &bound)))
}

fn is_within(inner: &Inner, inside: &CallerTask, bound: &Binding) -> bool {
    let above = ancestry::of(inner, bound.pid);
    // Looked at by number: it was about this process only if that still has it.
    let same = process::stat(bound.pid).is_some_and(|now| now.start == bound.start);
    same && above.is_ok_and(|above| above.tasks().contains(&inside.task))
}

/// What a task is to somebody inside another.
async fn relation(inner: &Inner, inside: &CallerTask, owner: &str, task: &TaskId) -> Result<Relation, Error> {
    if *task == inside.task {
        return Ok(Relation::Itself);
    }
    let record = inner.record(task).await?;
    let mut parent = record.parent;
    for _ in 0..GENERATIONS {
        let Some(id) = parent else { break };
        if id == inside.task {
            return Ok(Relation::Below);
        }
        parent = inner.store.get(id).await?.and_then(|record| record.parent);
    }
    let own = record.owner == owner && inside.is_session(owner);
    Ok(if own { Relation::Session } else { Relation::Foreign })
}
