//! Addresses: paths and query strings with everything else escaped.

use std::fmt::Write as _;

/// Adds `text` with every byte escaped that could mean something in an address.
fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// An address under construction.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    text: String,
    separator: char,
}

impl Target {
    /// A fixed path.
    pub(crate) fn new(path: &str) -> Self {
        Self { text: path.to_owned(), separator: '?' }
    }

    /// A task's own path, with `below` appended (`""`, `"/output"`, …).
    pub(crate) fn task(reference: &str, below: &str) -> Self {
        Self::under("/v1/tasks/", reference, below)
    }

    /// An owner's inbox.
    pub(crate) fn inbox(owner: &str, below: &str) -> Self {
        Self::under("/v1/inbox/", owner, below)
    }

    /// A session's own path, by the owner that it is.
    pub(crate) fn session(owner: &str) -> Self {
        Self::under("/v1/sessions/", owner, "")
    }

    /// A delivery's own path.
    pub(crate) fn delivery(reference: &str, below: &str) -> Self {
        Self::under("/v1/deliveries/", reference, below)
    }

    fn under(folder: &str, name: &str, below: &str) -> Self {
        let mut text = folder.to_owned();
        escape(name, &mut text);
        text.push_str(below);
        Self { text, separator: '?' }
    }

    /// Adds a parameter.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.text.push(self.separator);
        self.separator = '&';
        self.text.push_str(name);
        self.text.push('=');
        escape(value.as_ref(), &mut self.text);
        self
    }

    /// Adds a parameter, if there is one.
    pub(crate) fn maybe(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value.to_string()),
            None => self,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_their_place() {
        assert_eq!(
            Target::task("a/../b?x=1#é", "/output").as_str(),
            "/v1/tasks/a%2F..%2Fb%3Fx%3D1%23%C3%A9/output"
        );
        assert_eq!(Target::task("@last", "").as_str(), "/v1/tasks/@last");
    }

    #[test]
    fn parameters_are_joined_and_absent_ones_left_out() {
        let target = Target::new("/v1/tasks")
            .with("label", "a=b&c")
            .maybe("limit", Some(5))
            .maybe("cursor", None::<&str>);
        assert_eq!(target.as_str(), "/v1/tasks?label=a%3Db%26c&limit=5");
    }
}
