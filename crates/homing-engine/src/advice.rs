//! What to do next, about the task that it happened to: the catalogue says `homing show ID`, and where the id is known a person wants to
//! copy the line as it stands.

use homing_api::Problem;
use homing_model::TaskId;

use crate::error::Error;

/// How the catalogue writes the place of an id.
const PLACE: &str = " ID";

/// Puts the id of the task into the advice, where the error is about one.
pub(crate) fn fill_in(problem: &mut Problem, error: &Error) {
    if let Some(task) = about(error) {
        problem.advice = problem.advice.replace(PLACE, &format!(" {task}"));
    }
}

/// The task that an error is about.
fn about(error: &Error) -> Option<&TaskId> {
    match error {
        Error::Expired(task)
        | Error::Live(task)
        | Error::NotExternal(task)
        | Error::Ended(task)
        | Error::NoInput(task)
        | Error::InputNotRead(task)
        | Error::NoTerminal(task)
        | Error::NotStarted(task)
        | Error::Stopping(task)
        | Error::OldSupervisor(task)
        | Error::Silent(task)
        | Error::OutputGone(task)
        | Error::Duplicate(task)
        | Error::Forgotten(task)
        | Error::External { task, .. }
        | Error::CannotHold { task, .. }
        | Error::OutputUnreadable { task, .. }
        | Error::NotContinued { task, .. }
        | Error::NotAgain { task, .. }
        | Error::SecretsGone { task, .. } => Some(task),
        // Those are about many, about none, or about the one that the caller is in.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_next_names_the_task_that_it_is_about() {
        let task = || "t-k3mbcdfghj".parse::<TaskId>().unwrap();
        let advice = |error: Error| Problem::from(error).advice;
        assert_eq!(
            advice(Error::Live(task())),
            "Wait for it (`homing wait t-k3mbcdfghj`) or stop it (`homing stop t-k3mbcdfghj`) first."
        );
        for error in [
            Error::Ended(task()),
            Error::NoInput(task()),
            Error::NoTerminal(task()),
            Error::Stopping(task()),
            Error::OldSupervisor(task()),
            Error::Silent(task()),
            Error::OutputGone(task()),
            Error::Forgotten(task()),
            Error::NotExternal(task()),
            Error::External { task: task(), what: "output" },
            Error::NotContinued { task: task(), why: String::new() },
            Error::NotAgain { task: task(), why: String::new() },
            Error::SecretsGone { task: task(), names: vec!["TOKEN".to_owned()] },
        ] {
            let said = advice(error.clone());
            assert!(!said.contains(PLACE), "{error:?}: {said}");
        }
        let unknown = advice(Error::UnknownNotice("n-7".to_owned()));
        assert!(unknown.contains("homing show ID"), "no id is made up: {unknown}");
    }
}
