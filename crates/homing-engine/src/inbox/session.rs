//! Sessions of agents: which process each is in.
//!
//! An agent's hook says "this process is in that session"; whoever is started by that process is then known by its ancestors. The
//! environment cannot say it: a server that an agent has started lives on when the conversation changes. Nothing is guessed: a process
//! that serves several sessions is in none, and what a hook says holds for its own ancestors only, up to the shim of a task.
//!
//! A row is memory, not truth: it counts while its process lives, by pid, start time and boot. When a session begins anew in another process
//! and the old one is gone, what that was told and did not confirm is open again, in the same transaction (P5).

use homing_agents::registry;
use homing_model::binding::{BindRequest, SessionInfo};
use homing_model::reservation::{ConfirmedBy, Confirmer};
use homing_model::{AgentName, Session, session};
use homing_store::{Bind, Binding};
use homing_sys::process::{self, Process, ProcessId};

use crate::admission::ancestry;
use crate::admission::caller_scope::{self, CallerScope};
use crate::engine::{Engine, Inner};
use crate::error::Error;

/// A binding that holds is written again after this long, so that it is not taken for an old one.
const REFRESH_MS: i64 = 24 * 3_600 * 1_000;

impl Engine {
    /// Records the session that a hook names as that of the task which the hook runs in; see [`claim_session`](Self::claim_session). Here the
    /// task may have had another one, which its agent has left.
    ///
    /// # Errors
    /// If the ledger cannot be read or written.
    pub async fn claim_bound_session(
        &self,
        scope: CallerScope,
        caller: ProcessId,
        request: &BindRequest,
    ) -> Result<CallerScope, Error> {
        if scope.limited_to().is_none() {
            return Ok(scope);
        }
        let Ok(agent) = agent_process(caller, request.pid) else { return Ok(scope) };
        let owner = format!("{}:{}", request.agent, request.session);
        caller_scope::claim_session(&self.inner, scope, &owner, Some(&agent)).await
    }

    /// The process with this pid has a hook of an agent run, which says what session it is in.
    ///
    /// # Errors
    /// If the agent's process is no ancestor of the caller's, or the ledger cannot be written.
    pub async fn bind_session(
        &self,
        scope: &CallerScope,
        caller: ProcessId,
        request: &BindRequest,
    ) -> Result<SessionInfo, Error> {
        let inner = &self.inner;
        if !session::is_id(&request.session) {
            return Err(Error::BadParameter(format!(
                "`session`: `{}` is no id",
                request.session.escape_debug()
            )));
        }
        registry::known(request.agent.as_str())
            .map_err(|why| Error::BadParameter(format!("`agent`: {why}")))?;
        let agent = agent_process(caller, request.pid)?;
        if request.continued.is_some() {
            // A turn ends: what hooks printed before was in the context of its model.
            let owner = Confirmer::Owner(format!("{}:{}", request.agent, request.session));
            self.confirm_by(owner, ConfirmedBy::Turn).await?;
        }
        let before = inner.store.binding(request.agent.clone(), request.session.clone()).await?;
        let now = inner.now();
        let mut binding = Binding {
            agent: request.agent.clone(),
            session: request.session.clone(),
            node: inner.node.clone(),
            boot_id: inner.boot_id.clone(),
            pid: agent.pid,
            start: agent.start,
            streak: 0,
            bound_at: now,
        };
        let stays = before.as_ref().filter(|before| before.same_process(&binding));
        let streak = stays.map_or(0, |before| before.streak);
        binding.streak = match request.continued {
            Some(true) => streak.saturating_add(1),
            Some(false) => 0,
            None => streak,
        };
        let fresh = |stays: &Binding| now.as_millis() - stays.bound_at.as_millis() < REFRESH_MS;
        if stays.is_none_or(|stays| stays.streak != binding.streak || !fresh(stays)) {
            let gives_back =
                before.as_ref().is_some_and(|before| !before.same_process(&binding) && !lives(inner, before));
            let alone = one_at_a_time(&request.agent);
            let outside = scope.limited_to().is_none();
            inner
                .store
                .bind(Bind { binding: binding.clone(), alone, gives_back, polls: request.polls, outside })
                .await?;
            if gives_back {
                inner.bump();
            }
        }
        Ok(self.info(&binding))
    }

    /// The session that a process is in, by its ancestors: of several, the nearest.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn session_of_process(&self, caller: ProcessId) -> Result<Option<SessionInfo>, Error> {
        let chain = chain(caller);
        let bound = self.inner.store.bindings(chain.iter().map(|process| process.pid).collect()).await?;
        for process in &chain {
            let mut here = bound.iter().filter(|bound| {
                bound.pid == process.pid && one_at_a_time(&bound.agent) && lives(&self.inner, bound)
            });
            match (here.next(), here.next()) {
                (None, _) => {}
                (Some(only), None) => return Ok(Some(self.info(only))),
                // Which of them is asking cannot be told.
                (Some(_), Some(_)) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// What is known of the session that an owner is.
    ///
    /// # Errors
    /// If the owner is no session, or the ledger cannot be read.
    pub async fn session(&self, owner: &str) -> Result<SessionInfo, Error> {
        let named = named(owner)?;
        let bound = self.inner.store.binding(named.agent.clone(), named.id.clone()).await?;
        Ok(bound.filter(|bound| lives(&self.inner, bound)).map_or_else(
            || SessionInfo {
                owner: owner.to_owned(),
                agent: named.agent,
                session: named.id,
                pid: None,
                waiter: self.is_awaited(owner),
                streak: 0,
            },
            |bound| self.info(&bound),
        ))
    }

    /// The process with this pid has a hook of an agent run, which says that the session that an owner is has ended there. Where it was resumed
    /// in another process it goes on, and nothing changes.
    ///
    /// # Errors
    /// If the owner is no session, or the ledger cannot be written.
    pub async fn unbind_session(&self, caller: ProcessId, owner: &str) -> Result<(), Error> {
        let named = named(owner)?;
        let Some(bound) = self.inner.store.binding(named.agent.clone(), named.id.clone()).await? else {
            return Ok(());
        };
        let here = |process: &Process| process.pid == bound.pid && process.start == bound.start;
        if !lives(&self.inner, &bound) || !chain(caller).iter().any(here) {
            return Ok(());
        }
        // The end of a session is no proof that its model read what a hook printed: without the end of a turn in between, it is told again.
        if self.inner.store.unbind(bound, self.inner.now()).await? {
            self.inner.bump();
        }
        Ok(())
    }

    /// Whether what an owner is handed now goes to the process that it, a session, is known to be in. A process that no hook has named yet is not
    /// the one that was named last and is gone: what it is handed is not delivered again when a hook names it.
    pub(crate) async fn is_bound(&self, owner: &str) -> Result<bool, Error> {
        let Some(named) = registry::session_of(owner) else { return Ok(true) };
        Ok(live_binding(&self.inner, &named).await?.is_some())
    }

    fn info(&self, binding: &Binding) -> SessionInfo {
        let owner = format!("{}:{}", binding.agent, binding.session);
        SessionInfo {
            waiter: self.is_awaited(&owner),
            owner,
            agent: binding.agent.clone(),
            session: binding.session.clone(),
            pid: Some(binding.pid),
            streak: binding.streak,
        }
    }
}

/// Whether a process of this agent is in one conversation at a time.
fn one_at_a_time(agent: &AgentName) -> bool {
    registry::find(agent.as_str()).is_some_and(|agent| agent.identity().one_session_per_process)
}

fn named(owner: &str) -> Result<Session, Error> {
    registry::session_of(owner).ok_or_else(|| {
        Error::BadParameter(format!("`{}` is no session of an agent", homing_model::sanitize::line(owner)))
    })
}

/// A process and its ancestors, nearest first, up to the shim of a task: what is beyond it belongs to homing.
fn chain(caller: ProcessId) -> Vec<Process> {
    let own = |process: &Process| process.pid > 1 && process.name != ancestry::SHIM;
    let lineage = process::lineage(caller.pid).map_while(Result::ok);
    let chain: Vec<_> = lineage.take_while(own).collect();
    // Another process may have the pid by now.
    if chain.first().is_some_and(|process| process.id() == caller) { chain } else { Vec::new() }
}

/// The agent among the ancestors of its hook.
fn agent_process(caller: ProcessId, named: Option<u32>) -> Result<Process, Error> {
    let chain = chain(caller);
    let mut above = chain.into_iter().skip(1);
    let found = match named {
        Some(pid) => above.find(|process| process.pid == pid),
        None => above.find(|process| !process.is_shell()),
    };
    found.ok_or(Error::NoAncestor { caller: caller.pid, named })
}

/// The live process that a session is in, if a hook has named one.
pub(crate) async fn live_binding(inner: &Inner, session: &Session) -> Result<Option<Binding>, Error> {
    let bound = inner.store.binding(session.agent.clone(), session.id.clone()).await?;
    Ok(bound.filter(|bound| lives(inner, bound)))
}

/// Whether the process of a binding is still that process.
fn lives(inner: &Inner, binding: &Binding) -> bool {
    binding.boot_id == inner.boot_id
        && binding.node == inner.node
        && process::stat(binding.pid).is_some_and(|found| found.start == binding.start && !found.zombie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ancestors_of_a_process_begin_with_itself_and_end_before_the_first_of_all() {
        let me = process::stat(std::process::id()).unwrap();
        let chain = chain(me.id());
        assert_eq!(chain.first().map(|process| process.pid), Some(std::process::id()));
        assert!(chain.windows(2).all(|pair| pair[0].parent == pair[1].pid));
        assert!(chain.iter().all(|process| process.pid > 1));
    }

    #[test]
    fn an_agent_is_an_ancestor_and_no_stranger() {
        let me = process::stat(std::process::id()).unwrap();
        if me.parent > 1 {
            let found = agent_process(me.id(), Some(me.parent));
            assert_eq!(found.ok().map(|found| found.pid), Some(me.parent));
        }
        assert!(agent_process(me.id(), Some(me.pid)).is_err(), "nobody is its own ancestor");
        assert!(agent_process(me.id(), Some(1)).is_err());
        let later = ProcessId { start: me.start + 1, ..me.id() };
        assert!(chain(later).is_empty(), "another process that has the number of one that called");
    }
}
