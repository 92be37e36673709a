//! Callers inside tasks: where they stand, and what they may do there. Keeps P11.
//!
//! The table is the model's (`homing_model::nesting`); here it is applied to what the ledger says of the tasks. Nothing is decided by what
//! a process says of itself. The session of an agent inside a task is recorded with the task, once, and only if it belongs to nobody
//! else: it owns no task from elsewhere, no process outside of the task is in it, and it is not the owner of the task itself. The record
//! follows the agent into its next conversation (`/clear`) under the same conditions.

use homing_agents::registry;
use homing_model::environment::DEFAULT_OWNER;
use homing_model::nesting::{Action, Place, Relation, TaskAccess, allow, allow_spec};
use homing_model::{Spec, Target, TaskId, nesting};
use homing_store::{Binding, SessionClaim};
use homing_sys::process::{self, Process};

use crate::admission::ancestry::{self, Ancestry};
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::inbox::session;

/// Families are as deep as the configuration lets them be; a longer chain is a damaged ledger.
const GENERATIONS: usize = 1_000;

/// Where a caller stands: outside of all tasks, or inside of one.
#[derive(Debug, Clone, Default)]
pub struct Standing(Option<Inside>);

/// Inside of a task.
#[derive(Debug, Clone)]
pub(crate) struct Inside {
    task: TaskId,
    /// Of that task.
    owner: String,
    depth: u32,
    place: Place,
    /// The session of the agent inside that task, once it is recorded.
    session: Option<String>,
}

impl Standing {
    /// The task that it is inside of and whose family is all that it sees; none if it sees everything.
    #[must_use]
    pub fn limited_to(&self) -> Option<&TaskId> {
        self.0.as_ref().filter(|inside| inside.place != Place::Trusted).map(|inside| &inside.task)
    }

    /// The task that is around it.
    pub(crate) fn parent(&self) -> Option<TaskId> {
        self.0.as_ref().map(|inside| inside.task.clone())
    }

    /// How many tasks a task that is submitted from there is in.
    pub(crate) fn depth(&self) -> u32 {
        self.0.as_ref().map_or(0, |inside| inside.depth + 1)
    }

    fn check(&self, action: Action, what: impl FnOnce() -> String) -> Result<(), Error> {
        let Some(inside) = &self.0 else { return Ok(()) };
        allow(inside.place, action).map_err(|rule| inside.refused(rule, what()))
    }

    /// Whether it may change what concerns everybody.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn may_configure(&self, what: &str) -> Result<(), Error> {
        self.check(Action::Configure, || format!("`{what}`"))
    }

    /// Whether it may look at what others have.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn may_look_around(&self, what: &str) -> Result<(), Error> {
        self.check(Action::Task(TaskAccess::Read, Relation::Foreign), || format!("`{what}` of everybody"))
    }

    /// Whether it may use the inbox of this owner.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn may_use_inbox(&self, what: &str, owner: &str) -> Result<(), Error> {
        let own = self.0.as_ref().is_some_and(|inside| inside.is_session(owner));
        self.check(Action::Inbox { own }, || format!("`{what}` of `{owner}`"))
    }
}

impl Standing {
    /// Whose a task is that is submitted from there with this owner, where the caller's environment names that session.
    pub(crate) fn owner(&self, asked: Option<&str>, detected: Option<&str>) -> Result<String, Error> {
        let Some(inside) = &self.0 else { return Ok(asked.unwrap_or(DEFAULT_OWNER).to_owned()) };
        let session = inside.session.as_deref();
        let submitter = nesting::Submitter { place: inside.place, outer: &inside.owner, session };
        nesting::owner(submitter, asked, detected).map(str::to_owned).map_err(|rule| {
            let asked = homing_model::sanitize::line(asked.unwrap_or_default());
            inside.refused(rule, format!("the owner `{asked}` (`owner`)"))
        })
    }
}

impl Standing {
    /// Whether this may be submitted from there.
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
        allow_spec(inside.place, spec, own).map_err(|(rule, what)| inside.refused(rule, what))
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
        if inside.place == Place::Trusted {
            return Ok(());
        }
        let relation = relation(inner, inside, owner, task).await?;
        self.check(Action::Task(access, relation), || format!("`{what}` of task {task}"))
    }
}

impl Inside {
    fn refused(&self, rule: nesting::Rule, what: String) -> Error {
        Error::Nested { rule, what, task: self.task.clone() }
    }

    /// Whether an owner is the agent's own session.
    fn is_session(&self, owner: &str) -> bool {
        self.place == Place::Agent && self.session.as_deref() == Some(owner)
    }
}

impl Engine {
    /// Where whoever runs in these tasks stands. A process may call itself a shim, but it cannot get out of the one that it is in: of several
    /// the outermost counts, for shims are children of the keeper and in no other task.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn standing(&self, ancestry: &Ancestry) -> Result<Standing, Error> {
        for id in ancestry.tasks().iter().rev() {
            let Some(record) = self.inner.store.get(id.clone()).await? else {
                // A folder that no task has: whoever made it does not leave its own task by it.
                if ancestry.is_unattended() {
                    return Err(Error::Orphan(id.clone()));
                }
                continue;
            };
            // Which of the tasks that have ended left it behind is its own choice, so what such a task lent is over.
            let ended = ancestry.is_unattended() && record.status.is_terminal();
            let place = if ended { Place::Command } else { Place::inside(record.kind, &record.spec) };
            if place != Place::Outside {
                let inside = Inside {
                    task: record.id,
                    owner: record.owner,
                    depth: record.depth,
                    place,
                    session: record.nested_session,
                };
                return Ok(Standing(Some(inside)));
            }
        }
        Ok(Standing::default())
    }

    /// Records `owner` as the session of the caller's task if that is an agent's, has none yet, and nobody else has this one.
    ///
    /// # Errors
    /// If the ledger cannot be read or written.
    pub async fn claim_session(&self, standing: Standing, owner: &str) -> Result<Standing, Error> {
        claim_session(&self.inner, standing, owner, None).await
    }

    /// Whether a caller that speaks for `owner` may do this with a task.
    ///
    /// # Errors
    /// The rule that forbids it; or that there is no such task.
    pub async fn permit(
        &self,
        standing: &Standing,
        owner: &str,
        access: TaskAccess,
        what: &str,
        task: &TaskId,
    ) -> Result<(), Error> {
        standing.permit(&self.inner, owner, access, what, task).await
    }

    /// Whether a caller may see this task, where what it may not see is left out.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn sees(&self, standing: &Standing, owner: &str, task: &TaskId) -> Result<bool, Error> {
        match self.permit(standing, owner, TaskAccess::Read, "", task).await {
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
    mut standing: Standing,
    owner: &str,
    agent: Option<&Process>,
) -> Result<Standing, Error> {
    let Some(inside) = standing.0.as_mut().filter(|inside| inside.place == Place::Agent) else {
        return Ok(standing);
    };
    let Some(named) =
        registry::session_of(owner).filter(|_| owner != inside.owner && !inside.is_session(owner))
    else {
        return Ok(standing);
    };
    let recorded = inside.session.as_deref().and_then(registry::session_of);
    let replaces = match (recorded, agent) {
        (None, _) => None,
        (Some(_), None) => return Ok(standing),
        (Some(recorded), Some(agent)) => {
            let is_agent = |bound: &Binding| (bound.pid, bound.start) == (agent.pid, agent.start);
            if session::live_binding(inner, &recorded).await?.is_some_and(|bound| !is_agent(&bound)) {
                return Ok(standing);
            }
            Some(recorded.owner())
        }
    };
    let bound = session::live_binding(inner, &named).await?;
    if bound.as_ref().is_some_and(|bound| !is_within(inner, inside, bound)) {
        return Ok(standing);
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
    Ok(standing)
}

/// Whether a hook has named the session that an owner is in a live process inside of the task.
async fn is_bound_within(inner: &Inner, inside: &Inside, owner: &str) -> Result<bool, Error> {
    let Some(named) = registry::session_of(owner) else { return Ok(false) };
    let bound = session::live_binding(inner, &named).await?;
    Ok(bound.is_some_and(|bound| is_within(inner, inside, &bound)))
}

fn is_within(inner: &Inner, inside: &Inside, bound: &Binding) -> bool {
    let above = ancestry::of(inner, bound.pid);
    // Looked at by number: it was about this process only if that still has it.
    let same = process::stat(bound.pid).is_some_and(|now| now.start == bound.start);
    same && above.is_ok_and(|above| above.tasks().contains(&inside.task))
}

/// What a task is to somebody inside another.
async fn relation(inner: &Inner, inside: &Inside, owner: &str, task: &TaskId) -> Result<Relation, Error> {
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
