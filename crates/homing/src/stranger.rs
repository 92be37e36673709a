//! Sessions that a target names outright (`wake:claude:SESSION`) and that nobody has ever heard of: most likely a slip of the finger.
//!
//! The submit is not refused: a session may begin later, or on files that are not ours to read. Whoever typed it is told.

use homing_client::{Client, ListQuery};
use homing_deliver::wake as agents;
use homing_model::route::Address;
use homing_model::{Agent, Session, Spec, Target, Task};

use crate::context::Context;
use crate::wake;

/// What is to be said of those that the targets of a task name.
pub(crate) async fn notes(spec: &Spec, task: &Task, client: &Client, context: &Context) -> Vec<String> {
    let mut notes = Vec::new();
    for target in spec.notify.iter().flat_map(|notify| &notify.targets) {
        if let Some(session) = named(target)
            && !is_known(&session, spec, task, client, context).await
        {
            notes.push(note(&session));
        }
    }
    notes
}

/// The session that a target names, of an agent that keeps files of its own.
fn named(target: &Target) -> Option<Session> {
    let Target::Wake(Some(whom)) = target else { return None };
    match whom.parse().ok()? {
        Address::Claude(id) => Session::new(Agent::Claude, &id),
        Address::Codex(id) => Session::new(Agent::Codex, &id),
        Address::Opencode { .. } | Address::Tmux(_) => None,
    }
}

/// Whether anything tells of it: the caller's own environment, the agent's files, a hook, an earlier task.
async fn is_known(session: &Session, spec: &Spec, task: &Task, client: &Client, context: &Context) -> bool {
    let owner = session.owner();
    if spec.session.as_ref().is_some_and(|own| own.owner() == owner) {
        return true;
    }
    let variable = match session.agent {
        Agent::Claude => "CLAUDE_CONFIG_DIR",
        Agent::Codex | Agent::Opencode | Agent::Gemini => "CODEX_HOME",
    };
    let folder = context.surroundings.text(variable).map(str::to_owned);
    let surroundings = wake::surroundings(&context.home, &context.surroundings);
    if agents::has_traces(&Session { folder, ..session.clone() }, &surroundings).unwrap_or(true) {
        return true;
    }
    let client = client.nameless();
    // Whoever may not be asked, or does not answer, is no reason to say that nobody knows it.
    let is_open = client.session_of(&owner).await.map_or(true, |info| info.pid.is_some() || info.waiter);
    let theirs = ListQuery { owner: Some(owner), limit: Some(2), ..ListQuery::default() };
    is_open || client.list(&theirs).await.map_or(true, |page| page.items.iter().any(|one| one.id != task.id))
}

fn note(session: &Session) -> String {
    let (owner, title) = (session.owner(), session.agent.title());
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
    fn what_cannot_be_an_id_by_its_form_is_said() {
        let told = |id: &str| note(&Session::new(Agent::Claude, id).unwrap());
        assert!(told("TYPO").contains("no session `claude:TYPO`") && told("TYPO").contains("UUIDs"));
        assert!(!told("0b6e2f0a-1c2d-4e5f-8a9b-0c1d2e3f4a5b").contains("UUIDs"));
    }
}
