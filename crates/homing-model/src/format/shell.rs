//! Quoting for people: a command shown so that it can be pasted into a shell.

use std::borrow::Cow;

/// One word, quoted if a shell would read it otherwise.
#[must_use]
pub fn quote(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// Words as one line.
pub fn join<'a>(words: impl IntoIterator<Item = Cow<'a, str>>) -> String {
    words.into_iter().map(|word| quote(&word).into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_needed() {
        assert_eq!(quote("cargo"), "cargo");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
        assert_eq!(join(["echo".into(), "a b".into()]), "echo 'a b'");
    }
}
