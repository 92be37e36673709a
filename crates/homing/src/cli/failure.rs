//! Why a command ends early.

use std::io;

use homing_api::{Code, Problem};
use homing_model::{Task, TaskId};

use crate::cli::context::Context;

/// What ends a command before it is done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something to tell the user.
    Problem(Box<Problem>),
    /// Nobody reads stdout any more: nothing to say, and nobody to say it to.
    ClosedOutput,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl From<homing_client::Error> for Failure {
    fn from(error: homing_client::Error) -> Self {
        error.into_problem().into()
    }
}

/// Goes on where nobody reads stdout any more: for commands whose code is the answer, or that have more to do.
pub(crate) fn unless_closed(result: Result<(), Failure>) -> Result<(), Failure> {
    heard(result).map(drop)
}

/// The same, and whether somebody read it: who did not was not told.
pub(crate) fn heard(result: Result<(), Failure>) -> Result<bool, Failure> {
    match result {
        Ok(()) => Ok(true),
        Err(Failure::ClosedOutput) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Prints what was submitted: its id, or the task as JSON. Goes on where nobody reads it.
pub(crate) fn tell_submitted(task: &Task, context: &Context) -> Result<(), Failure> {
    let printed =
        if context.json { context.console.json(task) } else { context.console.line(task.id.as_str()) };
    unless_closed(printed).map_err(|failure| failure.naming(&task.id))
}

impl Failure {
    /// A failed write to stdout.
    pub(crate) fn writing(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ClosedOutput;
        }
        let mut problem =
            Problem::new(Code::StorageFailed, format!("standard output cannot be written: {error}"));
        problem.advice = "Look at where the output is redirected to.".to_owned();
        problem.into()
    }

    /// The same of the id of a task that was submitted: it is told here, since it could not be told there.
    pub(crate) fn naming(self, task: &TaskId) -> Self {
        match self {
            Self::Problem(mut problem) => {
                problem.detail.push_str(&format!("; the task was submitted, and is {task}"));
                problem.advice = format!(
                    "`homing show {task}` shows it, `homing stop {task}` ends it. Look at where the output is redirected to."
                );
                Self::Problem(problem)
            }
            Self::ClosedOutput => self,
        }
    }

    /// A request that makes no sense, with what to do instead.
    pub(crate) fn usage(detail: impl Into<String>, advice: impl Into<String>) -> Self {
        let mut problem = Problem::new(Code::InvalidRequest, detail);
        problem.advice = advice.into();
        problem.into()
    }
}
