//! What a caller inside a task may do: one table, pure. Keeps P11.
//!
//! A caller inside a task may run tasks of its own and control those. It notifies no other owner and touches no
//! other task. An agent has a session, and with it an inbox and a turn to be woken for. A task that was submitted
//! with `allow_nested_notify` may do what its submitter may. The limits on depth and number hold for all of them and
//! are checked elsewhere.

use crate::environment::DEFAULT_OWNER;
use crate::notify::Target;
use crate::operator::TargetKind;
use crate::session::Session;
use crate::spec::Spec;
use crate::task::Kind;

/// How much a caller may do, by the task that it runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// In no task: a person, an agent, a hook, a client with the token.
    Outside,
    /// In a task that runs a command.
    Command,
    /// In a task that is an agent's session.
    Agent,
    /// In a task whose submitter lends it all of its own authority.
    Trusted,
}

impl Authority {
    /// The authority of a caller inside such a task.
    #[must_use]
    pub const fn inside(kind: Kind, spec: &Spec) -> Self {
        match kind {
            // A hook acts for the owner of the notice.
            Kind::Hook => Self::Outside,
            Kind::Command | Kind::External | Kind::Agent if spec.allow_nested_notify => Self::Trusted,
            Kind::Agent => Self::Agent,
            Kind::Command | Kind::External if spec.agent_session => Self::Agent,
            Kind::Command | Kind::External => Self::Command,
        }
    }
}

/// What a task is to a caller inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The one that it is in.
    Itself,
    /// Submitted from inside of that, at whatever depth.
    Below,
    /// Of the caller's own session, though it was submitted elsewhere.
    Session,
    /// Another caller's.
    Foreign,
}

/// How a call uses a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskAccess {
    /// Reads its state and output, or waits for them.
    Read,
    /// Stops, signals or completes it, sends it input, or reports progress.
    Control,
    /// Takes what it left from its owner: acknowledges or forgets it.
    Dispose,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Uses a task.
    Task(TaskAccess, Relation),
    /// Submits a task that sends notices there.
    Notify(TargetKind),
    /// Submits a task with more authority than the caller has.
    Grant,
    /// Reads an inbox or takes from it.
    Inbox {
        /// The inbox of the caller's own session.
        own: bool,
    },
    /// Changes a daemon-wide setting: the daemon itself, its listener, its token, retention, redelivery.
    Configure,
}

/// Why an action is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The caller does not choose where notices go.
    Notify,
    /// The caller reaches the tasks of its own family alone.
    Foreign,
    /// The caller changes no daemon-wide setting.
    Configuration,
}

/// Whether a caller with this authority may do that.
///
/// # Errors
/// The rule that it would break.
pub const fn allow(authority: Authority, action: Action) -> Result<(), Rule> {
    match (authority, action) {
        (Authority::Outside | Authority::Trusted, _)
        | (Authority::Command | Authority::Agent, Action::Notify(TargetKind::Inbox))
        | (Authority::Agent, Action::Notify(TargetKind::Wake) | Action::Inbox { own: true })
        | (
            Authority::Command | Authority::Agent,
            Action::Task(TaskAccess::Read | TaskAccess::Control, Relation::Itself)
            | Action::Task(TaskAccess::Read | TaskAccess::Control | TaskAccess::Dispose, Relation::Below),
        )
        | (
            Authority::Agent,
            Action::Task(TaskAccess::Read | TaskAccess::Control | TaskAccess::Dispose, Relation::Session),
        ) => Ok(()),
        (Authority::Command, Action::Notify(TargetKind::Wake))
        | (
            Authority::Command | Authority::Agent,
            Action::Notify(TargetKind::Webhook | TargetKind::Exec | TargetKind::Desktop) | Action::Grant,
        ) => Err(Rule::Notify),
        (
            Authority::Command | Authority::Agent,
            // Its own end is its owner's to hear of, also from what it left running.
            Action::Task(TaskAccess::Dispose, Relation::Itself)
            | Action::Task(TaskAccess::Read | TaskAccess::Control | TaskAccess::Dispose, Relation::Foreign)
            | Action::Inbox { own: false },
        )
        | (
            Authority::Command,
            Action::Task(TaskAccess::Read | TaskAccess::Control | TaskAccess::Dispose, Relation::Session)
            | Action::Inbox { own: true },
        ) => Err(Rule::Foreign),
        (Authority::Command | Authority::Agent, Action::Configure) => Err(Rule::Configuration),
    }
}

/// Checks what a submit asks for, where its owner is the caller's own session or is not. An error names the parameter.
///
/// # Errors
/// The rule, and what would break it.
pub fn allow_spec(authority: Authority, spec: &Spec, own: bool) -> Result<(), (Rule, String)> {
    let asks = spec.session.as_ref().map(Session::owner);
    let wakes_itself = |whom: Option<&String>| {
        own && asks.is_some() && asks == spec.owner && whom.is_none_or(|whom| asks.as_ref() == Some(whom))
    };
    for target in spec.notify.iter().flat_map(|notify| &notify.targets) {
        let kind = match target {
            // Another session's turn is no more its own than a command is.
            Target::Wake(whom) if !wakes_itself(whom.as_ref()) => TargetKind::Exec,
            target => target.into(),
        };
        allow(authority, Action::Notify(kind))
            .map_err(|rule| (rule, format!("the target `{}` (`notify`)", target.shown())))?;
    }
    for (name, asked) in
        [("allow_nested_notify", spec.allow_nested_notify), ("agent_session", spec.agent_session)]
    {
        if asked {
            allow(authority, Action::Grant).map_err(|rule| (rule, format!("`{name}`")))?;
        }
    }
    Ok(())
}

/// Who submits from inside a task.
#[derive(Debug, Clone, Copy)]
pub struct Submitter<'a> {
    /// Its authority.
    pub authority: Authority,
    /// The owner of the task that it is in.
    pub outer: &'a str,
    /// The session of the agent in that task, once it is recorded.
    pub session: Option<&'a str>,
}

/// Whose a task is that is submitted there with this owner: an inbox is read by an agent, so a program must not choose whose it fills.
/// `detected` is the session that the caller's environment names. An agent that runs in a command's task names that one without being
/// asked to; its tasks report to the owner of the task, as those do that name nobody.
///
/// # Errors
/// If it names another owner.
pub fn owner<'a>(
    submitter: Submitter<'a>,
    asked: Option<&'a str>,
    detected: Option<&str>,
) -> Result<&'a str, Rule> {
    let Submitter { authority, outer, session } = submitter;
    let asked = match (authority, asked) {
        (Authority::Outside | Authority::Trusted, asked) => return Ok(asked.unwrap_or(DEFAULT_OWNER)),
        (Authority::Command | Authority::Agent, asked) => asked.filter(|owner| *owner != DEFAULT_OWNER),
    };
    let own = session.filter(|_| authority == Authority::Agent);
    match asked {
        Some(owner) if owner == outer || own == Some(owner) => Ok(owner),
        Some(owner) if detected != Some(owner) => Err(Rule::Notify),
        Some(_) | None => Ok(own.unwrap_or(outer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::Notify;

    #[test]
    fn p11_inside_a_task_the_owner_is_inherited_and_no_other_can_be_named() {
        let of = |authority, asked, detected| {
            owner(Submitter { authority, outer: "claude:o", session: Some("claude:s") }, asked, detected).ok()
        };
        for authority in [Authority::Outside, Authority::Trusted] {
            assert_eq!(of(authority, Some("ann"), None), Some("ann"));
            assert_eq!(of(authority, None, None), Some("user"));
        }
        for (authority, inherited) in [(Authority::Command, "claude:o"), (Authority::Agent, "claude:s")] {
            for unnamed in [None, Some("user")] {
                assert_eq!(of(authority, unnamed, None), Some(inherited));
            }
            assert_eq!(of(authority, Some("claude:o"), None), Some("claude:o"));
            assert_eq!(of(authority, Some("claude:x"), None), None);
            assert_eq!(of(authority, Some("claude:x"), Some("claude:y")), None);
            assert_eq!(
                of(authority, Some("claude:x"), Some("claude:x")),
                Some(inherited),
                "told to the owner"
            );
            assert_eq!(of(authority, Some("ann"), None), None);
        }
        assert_eq!(of(Authority::Agent, Some("claude:s"), None), Some("claude:s"));
        assert_eq!(of(Authority::Command, Some("claude:s"), None), None, "only an agent has a session");
    }

    const AUTHORITIES: [Authority; 4] =
        [Authority::Outside, Authority::Command, Authority::Agent, Authority::Trusted];

    fn actions() -> Vec<Action> {
        let mut actions =
            vec![Action::Grant, Action::Inbox { own: true }, Action::Inbox { own: false }, Action::Configure];
        actions.extend(TargetKind::ALL.map(Action::Notify));
        for access in [TaskAccess::Read, TaskAccess::Control, TaskAccess::Dispose] {
            for relation in [Relation::Itself, Relation::Below, Relation::Session, Relation::Foreign] {
                actions.push(Action::Task(access, relation));
            }
        }
        actions
    }

    /// What each may do, and nothing else: the page that a reviewer reads.
    fn allowed(authority: Authority) -> Vec<Action> {
        let family = [
            Action::Notify(TargetKind::Inbox),
            Action::Task(TaskAccess::Read, Relation::Itself),
            Action::Task(TaskAccess::Control, Relation::Itself),
            Action::Task(TaskAccess::Read, Relation::Below),
            Action::Task(TaskAccess::Control, Relation::Below),
            Action::Task(TaskAccess::Dispose, Relation::Below),
        ];
        let session = [
            Action::Notify(TargetKind::Wake),
            Action::Inbox { own: true },
            Action::Task(TaskAccess::Read, Relation::Session),
            Action::Task(TaskAccess::Control, Relation::Session),
            Action::Task(TaskAccess::Dispose, Relation::Session),
        ];
        match authority {
            Authority::Outside | Authority::Trusted => actions(),
            Authority::Command => family.to_vec(),
            Authority::Agent => [&family[..], &session[..]].concat(),
        }
    }

    #[test]
    fn p11_inside_a_task_nothing_is_open_but_what_the_table_says() {
        for authority in AUTHORITIES {
            let allowed = allowed(authority);
            for action in actions() {
                assert_eq!(
                    allow(authority, action).is_ok(),
                    allowed.contains(&action),
                    "{authority:?} {action:?}"
                );
            }
        }
    }

    #[test]
    fn every_refusal_has_its_rule() {
        let refused = |action| allow(Authority::Command, action).unwrap_err();
        assert_eq!(refused(Action::Notify(TargetKind::Exec)), Rule::Notify);
        assert_eq!(refused(Action::Task(TaskAccess::Control, Relation::Foreign)), Rule::Foreign);
        assert_eq!(refused(Action::Configure), Rule::Configuration);
    }

    #[test]
    fn the_authority_is_what_the_task_was_submitted_as() {
        let spec = |allow_nested_notify, agent_session| Spec {
            allow_nested_notify,
            agent_session,
            ..Spec::default()
        };
        assert_eq!(Authority::inside(Kind::Command, &spec(false, false)), Authority::Command);
        assert_eq!(Authority::inside(Kind::Command, &spec(false, true)), Authority::Agent);
        assert_eq!(Authority::inside(Kind::Command, &spec(true, true)), Authority::Trusted);
        assert_eq!(Authority::inside(Kind::Agent, &spec(false, false)), Authority::Agent);
        assert_eq!(Authority::inside(Kind::Agent, &spec(true, false)), Authority::Trusted);
        assert_eq!(Authority::inside(Kind::Hook, &spec(false, false)), Authority::Outside);
    }

    #[test]
    fn what_a_submit_may_not_ask_for_is_named() {
        let telling = |target: &str| Spec {
            notify: Some(Notify { targets: vec![Target::Inbox, target.parse().unwrap()], ..Notify::usual() }),
            ..Spec::default()
        };
        let refused = |authority, spec: &Spec| allow_spec(authority, spec, true).map_err(|(_, what)| what);
        assert_eq!(refused(Authority::Command, &Spec::default()), Ok(()));
        assert_eq!(
            refused(Authority::Command, &telling("exec:true")),
            Err("the target `exec:true` (`notify`)".into())
        );
        assert!(refused(Authority::Command, &telling("wake")).is_err());
        assert!(refused(Authority::Agent, &telling("desktop")).is_err());
        assert!(refused(Authority::Agent, &telling("wake")).is_err(), "nobody asks");
        for target in ["wake", "wake:claude:a"] {
            let from = |session: &str, owner: &str| Spec {
                session: Session::named(session),
                owner: Some(owner.into()),
                ..telling(target)
            };
            assert_eq!(refused(Authority::Agent, &from("claude:a", "claude:a")), Ok(()));
            assert!(refused(Authority::Agent, &from("claude:a", "claude:b")).is_err());
            assert!(refused(Authority::Agent, &from("claude:b", "claude:a")).is_err());
            assert!(allow_spec(Authority::Agent, &from("claude:a", "claude:a"), false).is_err(), "another's");
            assert!(refused(Authority::Command, &from("claude:a", "claude:a")).is_err());
            assert_eq!(allow_spec(Authority::Trusted, &from("claude:b", "claude:a"), false), Ok(()));
        }
        assert_eq!(refused(Authority::Trusted, &telling("exec:true")), Ok(()));
        let granting = Spec { agent_session: true, ..Spec::default() };
        assert_eq!(refused(Authority::Command, &granting), Err("`agent_session`".into()));
        assert_eq!(refused(Authority::Outside, &granting), Ok(()));
    }
}
