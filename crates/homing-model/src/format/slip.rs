//! Words that were meant: what is nearly one of those that there are.

/// The name that is fewest slips of the finger away from a word, if they are few.
#[must_use]
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|name| (strsim::osa_distance(word, name), name)).min()?;
    (near.0 <= (word.chars().count() / 3).max(1)).then_some(near.1)
}

/// The same as a question, to be put behind a sentence; nothing if nothing is near.
#[must_use]
pub fn meant<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_slips_are_forgiven_and_other_words_are_not() {
        let names = ["claude", "codex", "opencode", "gemini"];
        for (word, meant) in
            [("claud", "claude"), ("calude", "claude"), ("codx", "codex"), ("gemnii", "gemini")]
        {
            assert_eq!(nearest(word, names), Some(meant), "{word}");
        }
        assert_eq!(nearest("opncode", names), Some("opencode"));
        for word in ["aider", "x", "cursor", ""] {
            assert_eq!(nearest(word, names), None, "{word}");
        }
        assert_eq!(meant("claud", names), " (did you mean `claude`?)");
        assert_eq!((meant("aider", names).as_str(), nearest("x", [])), ("", None));
    }
}
