//! What a command printed and how it ended.

use serde_json::Value;

/// A finished call of the command line.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its exit code; 128 + n for a signal.
    pub code: i32,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it complained about.
    pub stderr: String,
}

impl Output {
    /// Standard output as text, without the last line feed.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    /// Standard output as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {} / {}", self.text(), self.stderr))
    }

    /// Panics unless the call went well.
    #[must_use]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.text(), self.stderr);
        self
    }
}

/// Says that a test, or a part of it, was left out here, and why.
#[expect(clippy::print_stderr, reason = "whoever reads the test's output must see that it proved less")]
pub fn left_out(why: &str) {
    eprintln!("left out: {why}");
}
