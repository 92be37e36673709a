//! What a caller inside a task may do: one table, pure. Keeps P11.
//!
//! Whoever calls from inside a task may run tasks of its own and look after those; it says nothing to anybody else and touches nothing of
//! theirs. An agent has a session, and with it an inbox and a turn to be woken for; a task that was submitted with `allow_nested_notify`
//! may do whatever its submitter may. How deep and how many is counted elsewhere, and holds for all of them.

use crate::environment::DEFAULT_OWNER;
use crate::notify::Target;
use crate::operator::TargetKind;
use crate::session::Session;
use crate::spec::Spec;
use crate::task::Kind;

/// Where a caller stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In no task: a person, an agent, a hook, somebody with the token.
    Outside,
    /// In a task that runs a command.
    Command,
    /// In a task that is an agent's session.
    Agent,
    /// In a task whose submitter lends it all that it may do itself.
    Trusted,
}

impl Place {
    /// Where those stand who call from inside such a task.
    #[must_use]
    pub const fn inside(kind: Kind, spec: &Spec) -> Self {
        match kind {
            // A command that is told of ends acts for whoever is told.
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
    /// Anybody else's.
    Foreign,
}

/// What is done with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskAccess {
    /// Its state and output are read, or waited for.
    Read,
    /// It is stopped, signalled, given input, completed, heard of.
    Control,
    /// What it left is taken from its owner: acknowledged, or forgotten.
    Dispose,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Something with a task.
    Task(TaskAccess, Relation),
    /// A task of its own tells there.
    Notify(TargetKind),
    /// A task of its own may do more than it may itself.
    Grant,
    /// An inbox is looked into or taken from: that of its own session, or another.
    Inbox {
        /// Of its own session.
        own: bool,
    },
    /// What concerns everybody is changed: the daemon, its listener, its token, what is kept, what is sent again.
    Configure,
}

/// Why something is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// It does not say who is told.
    Notify,
    /// It reaches what came of its own task, and nothing else.
    Foreign,
    /// It changes nothing for everybody.
    Configuration,
}

/// Whether a caller that stands there may do that.
///
/// # Errors
/// The rule that it would break.
pub const fn allow(place: Place, action: Action) -> Result<(), Rule> {
    match (place, action) {
        (Place::Outside | Place::Trusted, _)
        | (Place::Command | Place::Agent, Action::Notify(TargetKind::Inbox))
        | (Place::Agent, Action::Notify(TargetKind::Wake) | Action::Inbox { own: true })
        | (
            Place::Command | Place::Agent,
            Action::Task(TaskAccess::Read | TaskAccess::Control, Relation::Itself)
            | Action::Task(TaskAccess::Read | TaskAccess::Control | TaskAccess::Dispose, Relation::Below),
        )
        | (
            Place::Agent,
            Action::Task(TaskAccess::Read | TaskAccess::Control | TaskAccess::Dispose, Relation::Session),
        ) => Ok(()),
        (Place::Command, Action::Notify(TargetKind::Wake))
        | (
            Place::Command | Place::Agent,
            Action::Notify(TargetKind::Webhook | TargetKind::Exec | TargetKind::Desktop) | Action::Grant,
        ) => Err(Rule::Notify),
        (
            Place::Command | Place::Agent,
            // Its own end is its owner's to hear of, also from what it left running.
            Action::Task(TaskAccess::Dispose, Relation::Itself)
            | Action::Task(TaskAccess::Read | TaskAccess::Control | TaskAccess::Dispose, Relation::Foreign)
            | Action::Inbox { own: false },
        )
        | (
            Place::Command,
            Action::Task(TaskAccess::Read | TaskAccess::Control | TaskAccess::Dispose, Relation::Session)
            | Action::Inbox { own: true },
        ) => Err(Rule::Foreign),
        (Place::Command | Place::Agent, Action::Configure) => Err(Rule::Configuration),
    }
}

/// Checks what a submit asks for, where its owner is the caller's own session or is not. An error names the parameter.
///
/// # Errors
/// The rule, and what would break it.
pub fn allow_spec(place: Place, spec: &Spec, own: bool) -> Result<(), (Rule, String)> {
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
        allow(place, Action::Notify(kind))
            .map_err(|rule| (rule, format!("the target `{}` (`notify`)", target.shown())))?;
    }
    for (name, asked) in
        [("allow_nested_notify", spec.allow_nested_notify), ("agent_session", spec.agent_session)]
    {
        if asked {
            allow(place, Action::Grant).map_err(|rule| (rule, format!("`{name}`")))?;
        }
    }
    Ok(())
}

/// Who submits from inside a task.
#[derive(Debug, Clone, Copy)]
pub struct Submitter<'a> {
    /// Where it stands.
    pub place: Place,
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
    let Submitter { place, outer, session } = submitter;
    let asked = match (place, asked) {
        (Place::Outside | Place::Trusted, asked) => return Ok(asked.unwrap_or(DEFAULT_OWNER)),
        (Place::Command | Place::Agent, asked) => asked.filter(|owner| *owner != DEFAULT_OWNER),
    };
    let own = session.filter(|_| place == Place::Agent);
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
        let of = |place, asked, detected| {
            owner(Submitter { place, outer: "claude:o", session: Some("claude:s") }, asked, detected).ok()
        };
        for place in [Place::Outside, Place::Trusted] {
            assert_eq!(of(place, Some("ann"), None), Some("ann"));
            assert_eq!(of(place, None, None), Some("user"));
        }
        for (place, inherited) in [(Place::Command, "claude:o"), (Place::Agent, "claude:s")] {
            for unnamed in [None, Some("user")] {
                assert_eq!(of(place, unnamed, None), Some(inherited));
            }
            assert_eq!(of(place, Some("claude:o"), None), Some("claude:o"));
            assert_eq!(of(place, Some("claude:x"), None), None);
            assert_eq!(of(place, Some("claude:x"), Some("claude:y")), None);
            assert_eq!(of(place, Some("claude:x"), Some("claude:x")), Some(inherited), "told to the owner");
            assert_eq!(of(place, Some("ann"), None), None);
        }
        assert_eq!(of(Place::Agent, Some("claude:s"), None), Some("claude:s"));
        assert_eq!(of(Place::Command, Some("claude:s"), None), None, "only an agent has a session");
    }

    const AUTHORITIES: [Place; 4] = [Place::Outside, Place::Command, Place::Agent, Place::Trusted];

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
    fn allowed(place: Place) -> Vec<Action> {
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
        match place {
            Place::Outside | Place::Trusted => actions(),
            Place::Command => family.to_vec(),
            Place::Agent => [&family[..], &session[..]].concat(),
        }
    }

    #[test]
    fn p11_inside_a_task_nothing_is_open_but_what_the_table_says() {
        for place in AUTHORITIES {
            let allowed = allowed(place);
            for action in actions() {
                assert_eq!(allow(place, action).is_ok(), allowed.contains(&action), "{place:?} {action:?}");
            }
        }
    }

    #[test]
    fn every_refusal_has_its_rule() {
        let refused = |action| allow(Place::Command, action).unwrap_err();
        assert_eq!(refused(Action::Notify(TargetKind::Exec)), Rule::Notify);
        assert_eq!(refused(Action::Task(TaskAccess::Control, Relation::Foreign)), Rule::Foreign);
        assert_eq!(refused(Action::Configure), Rule::Configuration);
    }

    #[test]
    fn a_place_is_what_the_task_was_submitted_as() {
        let spec = |allow_nested_notify, agent_session| Spec {
            allow_nested_notify,
            agent_session,
            ..Spec::default()
        };
        assert_eq!(Place::inside(Kind::Command, &spec(false, false)), Place::Command);
        assert_eq!(Place::inside(Kind::Command, &spec(false, true)), Place::Agent);
        assert_eq!(Place::inside(Kind::Command, &spec(true, true)), Place::Trusted);
        assert_eq!(Place::inside(Kind::Agent, &spec(false, false)), Place::Agent);
        assert_eq!(Place::inside(Kind::Agent, &spec(true, false)), Place::Trusted);
        assert_eq!(Place::inside(Kind::Hook, &spec(false, false)), Place::Outside);
    }

    #[test]
    fn what_a_submit_may_not_ask_for_is_named() {
        let telling = |target: &str| Spec {
            notify: Some(Notify { targets: vec![Target::Inbox, target.parse().unwrap()], ..Notify::usual() }),
            ..Spec::default()
        };
        let refused = |place, spec: &Spec| allow_spec(place, spec, true).map_err(|(_, what)| what);
        assert_eq!(refused(Place::Command, &Spec::default()), Ok(()));
        assert_eq!(
            refused(Place::Command, &telling("exec:true")),
            Err("the target `exec:true` (`notify`)".into())
        );
        assert!(refused(Place::Command, &telling("wake")).is_err());
        assert!(refused(Place::Agent, &telling("desktop")).is_err());
        assert!(refused(Place::Agent, &telling("wake")).is_err(), "nobody asks");
        for target in ["wake", "wake:claude:a"] {
            let from = |session: &str, owner: &str| Spec {
                session: Session::named(session),
                owner: Some(owner.into()),
                ..telling(target)
            };
            assert_eq!(refused(Place::Agent, &from("claude:a", "claude:a")), Ok(()));
            assert!(refused(Place::Agent, &from("claude:a", "claude:b")).is_err());
            assert!(refused(Place::Agent, &from("claude:b", "claude:a")).is_err());
            assert!(allow_spec(Place::Agent, &from("claude:a", "claude:a"), false).is_err(), "another's");
            assert!(refused(Place::Command, &from("claude:a", "claude:a")).is_err());
            assert_eq!(allow_spec(Place::Trusted, &from("claude:b", "claude:a"), false), Ok(()));
        }
        assert_eq!(refused(Place::Trusted, &telling("exec:true")), Ok(()));
        let granting = Spec { agent_session: true, ..Spec::default() };
        assert_eq!(refused(Place::Command, &granting), Err("`agent_session`".into()));
        assert_eq!(refused(Place::Outside, &granting), Ok(()));
    }
}
