//! Any command that prints JSON lines: pointers (RFC 6901) say where in them the answer is.

use serde_json::Value;

use super::Parse;
use super::said::Said;
use super::words::of_error;

#[derive(Debug)]
pub(crate) struct Pointers {
    answer: String,
    error: Option<String>,
    session: Option<String>,
}

impl Pointers {
    pub(crate) fn new(answer: &str, error: Option<&str>, session: Option<&str>) -> Self {
        Self {
            answer: answer.to_owned(),
            error: error.map(str::to_owned),
            session: session.map(str::to_owned),
        }
    }
}

impl Parse for Pointers {
    fn read(&mut self, line: &Value, said: &mut Said) {
        said.session(self.session.as_deref().and_then(|pointer| line.pointer(pointer)));
        let told = match line.pointer(&self.answer) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(value) => Some(value.to_string()),
        };
        match self.error.as_deref().and_then(|pointer| line.pointer(pointer)) {
            // The line does not say.
            None => {}
            Some(Value::Null | Value::Bool(false)) => said.error = None,
            Some(Value::String(text)) if text.is_empty() => said.error = None,
            // What stands in the place of the answer then is the error.
            Some(Value::Bool(true)) => return said.fail(&told.unwrap_or_default()),
            Some(error) => return said.fail(&of_error(error)),
        }
        said.message(&told.unwrap_or_default());
    }
}
