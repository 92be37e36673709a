//! Words that were meant: what is nearly one of those that there are.

/// The name that is fewest slips of the finger away from a word, if they are few.
#[must_use]
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|name| (slips(word, name), name)).min()?;
    (near.0 <= (word.chars().count() / 3).max(1)).then_some(near.1)
}

/// The same as a question, to be put behind a sentence; nothing if nothing is near.
#[must_use]
pub fn meant<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// How many letters are wrong, missing, too many, or swapped with their neighbour.
fn slips(left: &str, right: &str) -> usize {
    let (left, right): (Vec<_>, Vec<_>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let wrong = usize::from(left[i - 1] != right[j - 1]);
            let mut least = (rows[i - 1][j - 1] + wrong).min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
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
