//! Why a tool did not do what it was asked: one sentence with a code, and what to do next, for the model to read.

use homing_model::{Code, Problem, sanitize};
use rmcp::model::{CallToolResult, ContentBlock};

use crate::summary::clip;

/// A problem that a model is told of.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Problem>);

/// So many bytes of a problem are told.
const LONGEST: usize = 2_000;

impl Refusal {
    /// A parameter that makes no sense.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::advised(
            Code::InvalidRequest,
            detail,
            "Mend what the message names; the tool's schema describes every field.",
        )
    }

    /// A problem with a next step of its own.
    pub(crate) fn advised(code: Code, detail: impl Into<String>, advice: &str) -> Self {
        let mut problem = Problem::new(code, detail);
        advice.clone_into(&mut problem.advice);
        problem.into()
    }

    /// What kind it is.
    pub(crate) fn code(&self) -> Option<Code> {
        self.0.known()
    }

    /// The problem itself.
    pub(crate) fn problem(&self) -> &Problem {
        &self.0
    }

    /// The same as one text.
    pub(crate) fn text(&self) -> String {
        let line = |text: &str| clip(&sanitize::line(text), LONGEST);
        format!("{} ({})\nNext: {}", line(&self.0.detail), self.0.code, line(&self.0.advice))
    }

    /// The same as the result of a tool.
    pub(crate) fn into_result(self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.text())])
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<homing_client::Error> for Refusal {
    fn from(error: homing_client::Error) -> Self {
        error.into_problem().into()
    }
}
