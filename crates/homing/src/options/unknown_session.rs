//! Sessions that a target names outright (`wake:AGENT:SESSION`) and that nobody has ever heard of: most likely a slip of the finger.
//!
//! The submit is not refused: a session may begin later, or on files that are not ours to read. Whoever typed it is told, after the id that
//! the submit was for: what is looked at for it may be many files, and a daemon that has other things to do.

use std::time::Duration;

use homing_agents::registry;
use homing_client::{Client, ListQuery, Submitted};
use homing_model::route::Address;
use homing_model::{Session, Spec, Target, Task};

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::cli::context::Context;
use crate::daemon_control::waker;

/// How long is looked for them all. What is not found out by then is not said.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tells of those that the targets of a new task name. What it says comes after whatever was printed before it was asked.
pub(crate) async fn tell(spec: &Spec, submitted: &Submitted, client: &Client, context: &Context) {
    if submitted.joined {
        return;
    }
    let look = async {
        for target in spec.notify.iter().flat_map(|notify| &notify.targets) {
            if let Some(session) = named(target)
                && !is_known(&session, spec, &submitted.task, client, context).await
            {
                context.console.note(&note(&session));
            }
        }
    };
    let _ = timeout(PATIENCE, look).await;
}

/// The session that a target names, of an agent that keeps files of its own.
fn named(target: &Target) -> Option<Session> {
    let Target::Wake(Some(whom)) = target else { return None };
    let Ok(Address::Session { agent, url: None, id }) = whom.parse() else { return None };
    registry::session(registry::find(agent.as_str())?, &id)
}

/// Whether anything tells of it: the caller's own environment, the agent's files, a hook, an earlier task.
async fn is_known(session: &Session, spec: &Spec, task: &Task, client: &Client, context: &Context) -> bool {
    let owner = session.owner();
    if spec.session.as_ref().is_some_and(|own| own.owner() == owner) {
        return true;
    }
    let Some(agent) = registry::find(session.agent.as_str()) else { return true };
    let variable = |name: &str| context.surroundings.get(name).map(ToOwned::to_owned);
    let folder = registry::state_folder(agent, variable).map(|folder| folder.to_string_lossy().into_owned());
    let surroundings = waker::surroundings(&context.home, &context.surroundings);
    let sought = Session { folder, ..session.clone() };
    if has_traces(move || agent.has_traces(&sought, &surroundings)).await {
        return true;
    }
    let client = client.nameless();
    // Whoever may not be asked, or does not answer, is no reason to say that nobody knows it.
    let is_open = client.session_of(&owner).await.map_or(true, |info| info.pid.is_some() || info.waiter);
    let theirs = ListQuery { owner: Some(owner), limit: Some(2), ..ListQuery::default() };
    is_open || client.list(&theirs).await.map_or(true, |page| page.items.iter().any(|one| one.id != task.id))
}

/// Whether the agent's files tell of a session, or may. Looked for beside the runtime, by a thread that the end of this process does not wait for.
async fn has_traces(look: impl FnOnce() -> Option<bool> + Send + 'static) -> bool {
    let (answer, answered) = oneshot::channel();
    let looking = std::thread::Builder::new().name("traces".to_owned());
    let looking = looking.spawn(move || {
        // Nobody may wait for it any more.
        let _ = answer.send(look());
    });
    looking.is_err() || answered.await.ok().flatten().unwrap_or(true)
}

fn note(session: &Session) -> String {
    let (owner, title) =
        (session.owner(), registry::find(session.agent.as_str()).map_or("the agent", |agent| agent.title()));
    let form = if is_uuid(&session.id) { "" } else { "; its ids are UUIDs, and this is none" };
    format!(
        "homing: no session `{owner}` is known here: neither files of {title} nor its hooks tell of it{form}\n  \
         next: if it is a slip, nobody is woken and the end waits in your inbox; `homing deliveries` says what became of it"
    )
}

fn is_uuid(id: &str) -> bool {
    let groups: Vec<_> = id.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_names_a_session_outright_can_be_a_slip() {
        let owner = |target: &str| named(&target.parse().unwrap()).map(|session| session.owner());
        assert_eq!(owner("wake:claude:x").as_deref(), Some("claude:x"));
        assert_eq!(owner("wake:codex:y").as_deref(), Some("codex:y"));
        for target in ["wake", "inbox", "desktop", "wake:tmux:%1", "wake:opencode:http://127.0.0.1:1#s"] {
            assert_eq!(owner(target), None, "{target}");
        }
    }

    #[test]
    fn files_that_take_too_long_to_look_through_hold_up_nobody() {
        let (held, gate) = std::sync::mpsc::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let looked = runtime.block_on(async {
            let look = has_traces(move || gate.recv().ok().map(|()| true));
            timeout(Duration::from_millis(1), look).await.ok()
        });
        drop(runtime);
        assert_eq!(looked, None, "and the thread is still at it");
        drop(held);
    }

    #[test]
    fn what_cannot_be_an_id_by_its_form_is_said() {
        let told = |id: &str| note(&Session::named(&format!("claude:{id}")).unwrap());
        assert!(told("TYPO").contains("no session `claude:TYPO`") && told("TYPO").contains("UUIDs"));
        assert!(!told("0b6e2f0a-1c2d-4e5f-8a9b-0c1d2e3f4a5b").contains("UUIDs"));
    }
}
