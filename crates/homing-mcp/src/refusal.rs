//! Why a tool did not do what it was asked: one sentence with a code, and what to do next, for the model to read.

use homing_api::{Code, Problem};
use homing_model::nesting::Rule;
use rmcp::model::{CallToolResult, ContentBlock};

use crate::advice;
use crate::summary::line;

/// A problem that a model is told of, with advice for somebody who has tools.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Problem>);

/// So many bytes of a problem are told.
const LONGEST: usize = 2_000;

impl Refusal {
    /// A parameter that makes no sense.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Problem::new(Code::InvalidRequest, detail).into()
    }

    /// A problem with a next step of its own.
    pub(crate) fn advised(code: Code, detail: impl Into<String>, advice: &str) -> Self {
        let mut problem = Problem::new(code, detail);
        advice.clone_into(&mut problem.advice);
        Self(Box::new(problem))
    }

    /// What is refused to a caller inside a task, in the words of what it asked for: a tool looks at more than it was asked for.
    pub(crate) fn naming(self, rule: Rule, what: &str) -> Self {
        Self(Box::new(self.0.in_words_of(rule, what)))
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
        let told = |text: &str| line(text, LONGEST);
        format!("{} ({})\nNext: {}", told(&self.0.detail), self.0.code, told(&self.0.advice))
    }

    /// The same as the result of a tool.
    pub(crate) fn into_result(self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.text())])
    }
}

impl From<Problem> for Refusal {
    fn from(mut problem: Problem) -> Self {
        problem.advice = advice::of(&problem);
        Self(Box::new(problem))
    }
}

impl From<homing_client::Error> for Refusal {
    fn from(error: homing_client::Error) -> Self {
        error.into_problem().into()
    }
}
