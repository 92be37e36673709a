//! What the process returns. Two manners: a task's own code, or the plain code of a command.

use homing_api::{Code, Problem, WaitAnswer};
use homing_model::{StartError, Status, Task};

/// All is well.
pub(crate) const DONE: u8 = 0;
/// Something failed.
pub(crate) const FAILED: u8 = 1;
/// Nobody knows how the task ended.
pub(crate) const LOST: u8 = 121;
/// It was stopped.
pub(crate) const STOPPED: u8 = 122;
/// It is still running.
pub(crate) const STILL_RUNNING: u8 = 123;
/// Its time was up.
pub(crate) const TIMED_OUT: u8 = 124;
/// homing itself failed.
pub(crate) const HOMING_FAILED: u8 = 125;
const CANNOT_EXECUTE: u8 = 126;
const NO_SUCH_PROGRAM: u8 = 127;
const USAGE: u8 = 2;
const NO_SUCH_TASK: u8 = 4;
const UNREACHABLE: u8 = 69;

/// Which table a command follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// `exec`, `wait`, and `run` and `ask` where they stay: the task's code, and 125 where homing failed.
    Task,
    /// All others: 0, 1, 2, 4, 69.
    Plain,
    /// `hook`: 2 would tell the agent to go on, so nothing that went wrong is ever that.
    Hook,
}

impl Manner {
    /// The manner of a command, by its name or alias, and whether it stays until the task has ended.
    pub(crate) fn of_command(name: &str, stays: bool) -> Self {
        match name {
            "exec" | "wait" => Self::Task,
            "run" | "ask" if stays => Self::Task,
            "hook" => Self::Hook,
            _ => Self::Plain,
        }
    }
}

/// The code for one task.
pub(crate) fn of_task(task: &Task) -> u8 {
    let outcome = task.outcome.as_ref();
    match task.status {
        Status::Queued | Status::Starting | Status::Running | Status::Paused | Status::Stopping => {
            STILL_RUNNING
        }
        Status::Succeeded => DONE,
        Status::Failed => {
            let code = outcome.and_then(|outcome| outcome.exit_code);
            let signal = outcome.and_then(|outcome| outcome.signal).map(|signal| signal.saturating_add(128));
            match code.or(signal).map(|code| code & 0xff) {
                // A failure never looks like success, whatever the record says.
                None | Some(0) => FAILED,
                Some(code) => u8::try_from(code).unwrap_or(FAILED),
            }
        }
        Status::Stopped => STOPPED,
        Status::TimedOut => TIMED_OUT,
        Status::StartFailed => match outcome.and_then(|outcome| outcome.start_error) {
            Some(StartError::NotFound) => NO_SUCH_PROGRAM,
            Some(StartError::NotExecutable | StartError::Other) | None => CANNOT_EXECUTE,
        },
        Status::Lost => LOST,
    }
}

/// The code of a wait for all: 0, or that of the first, in the order asked, that did not succeed.
pub(crate) fn of_all(answer: &WaitAnswer) -> u8 {
    if !answer.done {
        return STILL_RUNNING;
    }
    answer.items.iter().map(of_task).find(|code| *code != DONE).unwrap_or(DONE)
}

/// The code of a wait for any: that of the one that ended first.
pub(crate) fn of_any(answer: &WaitAnswer) -> u8 {
    let first = answer.first.as_ref().and_then(|id| answer.items.iter().find(|task| task.id == *id));
    match first.or_else(|| answer.items.iter().find(|task| task.status.is_terminal())) {
        Some(task) if answer.done => of_task(task),
        _ => STILL_RUNNING,
    }
}

/// The code of a failed command.
pub(crate) fn of_problem(manner: Manner, problem: &Problem) -> u8 {
    match (manner, problem.known()) {
        (Manner::Task, _) => HOMING_FAILED,
        (
            Manner::Plain,
            Some(Code::UnknownTask | Code::RecordExpired | Code::UnknownNotice | Code::UnknownDelivery),
        ) => NO_SUCH_TASK,
        (Manner::Plain, Some(Code::DaemonUnreachable | Code::NestedStart | Code::NoKeeper)) => UNREACHABLE,
        (Manner::Plain, Some(Code::InvalidRequest | Code::LooksLikeShell)) => USAGE,
        (Manner::Plain | Manner::Hook, _) => FAILED,
    }
}

/// The code of a command line that makes no sense.
pub(crate) fn of_usage(manner: Manner) -> u8 {
    match manner {
        Manner::Task => HOMING_FAILED,
        Manner::Plain => USAGE,
        Manner::Hook => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use homing_client::fake::sample_task;
    use serde_json::json;

    use super::*;

    fn ended(status: &str, outcome: &serde_json::Value) -> Task {
        let mut task = sample_task(status);
        for (key, value) in outcome.as_object().unwrap() {
            task["outcome"][key] = value.clone();
        }
        serde_json::from_value(task).unwrap()
    }

    #[test]
    fn every_end_has_its_code() {
        let cases = [
            ("succeeded", json!({ "exit_code": 0 }), 0),
            ("failed", json!({ "exit_code": 7 }), 7),
            ("failed", json!({ "exit_code": 255 }), 255),
            ("failed", json!({ "exit_code": null, "signal": 9 }), 137),
            ("failed", json!({ "exit_code": null, "signal": 64 }), 192),
            ("failed", json!({ "exit_code": null }), 1),
            ("lost", json!({ "reason": "machine rebooted" }), 121),
            ("stopped", json!({ "signal": 15 }), 122),
            ("stopped", json!({ "exit_code": 0 }), 122),
            ("timed_out", json!({ "signal": 15 }), 124),
            ("start_failed", json!({ "reason": "x", "start_error": "not_found" }), 127),
            ("start_failed", json!({ "reason": "x", "start_error": "not_executable" }), 126),
            (
                "start_failed",
                json!({ "reason": "no such file or directory: x", "start_error": "other" }),
                126,
            ),
            ("start_failed", json!({ "reason": "x", "start_error": "of a later release" }), 126),
            ("start_failed", json!({ "reason": null }), 126),
        ];
        for (status, outcome, code) in cases {
            assert_eq!(of_task(&ended(status, &outcome)), code, "{status} {outcome}");
        }
        for status in ["queued", "starting", "running", "paused", "stopping"] {
            assert_eq!(of_task(&serde_json::from_value(sample_task(status)).unwrap()), 123);
        }
    }

    fn three() -> Vec<Task> {
        let mut tasks = vec![
            ended("succeeded", &json!({})),
            ended("failed", &json!({ "exit_code": 5 })),
            ended("stopped", &json!({ "signal": 15 })),
        ];
        tasks[2].id = homing_model::TaskId::from_entropy(3);
        tasks
    }

    #[test]
    fn waiting_for_all_tells_of_the_first_that_did_not_succeed() {
        let mut answer = WaitAnswer { done: true, items: three(), first: None };
        assert_eq!(of_all(&answer), 5);
        answer.items.truncate(1);
        assert_eq!(of_all(&answer), 0);
        answer.done = false;
        assert_eq!(of_all(&answer), 123);
    }

    #[test]
    fn waiting_for_any_tells_of_the_one_that_ended_first() {
        let items = three();
        let first = Some(items[2].id.clone());
        assert_eq!(of_any(&WaitAnswer { done: true, items: items.clone(), first }), 122);
        assert_eq!(of_any(&WaitAnswer { done: false, items, first: None }), 123);
    }

    #[test]
    fn who_only_submits_follows_the_table_of_all_others() {
        for (name, stays, manner) in [
            ("run", false, Manner::Plain),
            ("run", true, Manner::Task),
            ("ask", false, Manner::Plain),
            ("ask", true, Manner::Task),
            ("exec", false, Manner::Task),
            ("wait", false, Manner::Task),
            ("list", true, Manner::Plain),
        ] {
            assert_eq!(Manner::of_command(name, stays), manner, "{name} {stays}");
        }
    }

    #[test]
    fn problems_have_the_codes_of_their_manner() {
        let code = |manner, code| of_problem(manner, &Problem::new(code, "x"));
        assert_eq!(code(Manner::Plain, Code::UnknownTask), 4);
        assert_eq!(code(Manner::Plain, Code::RecordExpired), 4);
        assert_eq!(code(Manner::Plain, Code::DaemonUnreachable), 69);
        assert_eq!(code(Manner::Plain, Code::TaskLive), 1);
        assert_eq!(code(Manner::Plain, Code::InvalidRequest), 2);
        assert_eq!(code(Manner::Task, Code::UnknownTask), 125);
        assert_eq!((of_usage(Manner::Task), of_usage(Manner::Plain)), (125, 2));
        assert_eq!((of_usage(Manner::Hook), code(Manner::Hook, Code::InvalidRequest)), (1, 1));
    }
}
