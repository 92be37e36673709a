//! Words out of JSON and bytes that nobody promised anything about.

use serde_json::Value;

/// So much of a line of stderr is held, in bytes.
const LONGEST: usize = 1024;

/// A number, where there is one.
pub(crate) fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// Where an error may have its words.
const PLACES: &[&str] = &["/error/message", "/data/message", "/message", "/error", "/name"];

/// The words of an error, wherever it has them. Some agents hand on what their provider answered, as it is: an object in a text.
pub(crate) fn of_error(error: &Value) -> String {
    let said =
        |value: &Value| PLACES.iter().find_map(|place| value.pointer(place)?.as_str().map(str::to_owned));
    let text = match error {
        Value::String(text) => text.clone(),
        Value::Object(_) => said(error).unwrap_or_else(|| error.to_string()),
        Value::Null | Value::Bool(_) => return String::new(),
        Value::Number(_) | Value::Array(_) => return error.to_string(),
    };
    let bare =
        text.trim().strip_prefix("[API Error: ").and_then(|text| text.strip_suffix(']')).unwrap_or(&text);
    let within = serde_json::from_str::<Value>(bare).ok().filter(Value::is_object);
    within.and_then(|value| said(&value)).unwrap_or(text)
}

/// The last line that is not blank, the beginning of it.
#[derive(Debug, Default)]
pub(crate) struct LastLine {
    line: Vec<u8>,
    last: Option<Vec<u8>>,
}

impl LastLine {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for (index, part) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                self.end();
            }
            let room = LONGEST.saturating_sub(self.line.len());
            self.line.extend_from_slice(part.get(..room).unwrap_or(part));
        }
    }

    fn end(&mut self) {
        if !self.line.trim_ascii().is_empty() {
            self.last = Some(std::mem::take(&mut self.line));
        }
        self.line.clear();
    }

    pub(crate) fn finish(&mut self) -> Option<String> {
        self.end();
        self.last.take().map(|line| String::from_utf8_lossy(line.trim_ascii()).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_is_told_in_its_own_words() {
        assert_eq!(of_error(&json!("no")), "no");
        assert_eq!(of_error(&json!({ "message": "no" })), "no");
        assert_eq!(of_error(&json!({ "name": "ProviderError", "data": { "message": "no" } })), "no");
        assert_eq!(of_error(&json!("{\"error\": {\"message\": \"no\"}}")), "no");
        assert_eq!(of_error(&json!({ "code": 7 })), "{\"code\":7}");
        assert_eq!(of_error(&json!(true)), "");
    }

    #[test]
    fn the_last_line_that_says_something() {
        let mut last = LastLine::default();
        for piece in ["one\ntw", "o\n\n  \n"] {
            last.push(piece.as_bytes());
        }
        assert_eq!(last.finish().as_deref(), Some("two"));
        assert_eq!(LastLine::default().finish(), None);
        let mut long = LastLine::default();
        long.push(&[b'x'; 5000]);
        assert_eq!(long.finish().map(|line| line.len()), Some(LONGEST));
    }
}
