//! Secrets that a command line gives away by its form: `--password=…`, `API_TOKEN=…`, `Authorization: Bearer …`, `https://user:…@host`.
//!
//! Guesses, and meant to be modest: they decide what is shown and kept, never what is run. What refers to a variable (`$TOKEN`) is none.

use crate::secret::{SHORTEST_LIKELY, is_likely};
use crate::spec::Spec;
use crate::text::OsText;

/// First words of options that only speak about a secret: `--no-password`, `--ask-password`.
const SWITCHES: &[&str] = &["no", "ask", "with", "prompt", "show", "generate", "use", "skip"];

/// Ends a value where nothing quotes it.
const DELIMITERS: &[u8] = b" \t\r\n'\"&;|<>()`";

/// A command line is looked at up to here, a value up to there: whatever is submitted, the look is short.
const MOST_TEXT: usize = 256 * 1024;
const MOST_VALUE: usize = 2 * 1024;

/// What was found: what it seems to be, and the value.
pub type Obvious<'a> = (String, &'a [u8]);

/// The obvious secrets of a command, or of what an agent is asked.
#[must_use]
pub fn find(spec: &Spec) -> Vec<Obvious<'_>> {
    let mut found = Vec::new();
    let mut budget = MOST_TEXT;
    for argument in spec.argv.iter().map(OsText::as_bytes) {
        in_argument(argument.get(..budget).unwrap_or(argument), &mut found);
        budget = budget.saturating_sub(argument.len());
    }
    if let Some(prompt) = spec.prompt.as_deref().map(str::as_bytes) {
        in_text(prompt.get(..MOST_TEXT).unwrap_or(prompt), &mut found);
    }
    let words: Vec<&[u8]> = match &spec.shell {
        Some(line) => {
            in_text(line.as_bytes().get(..MOST_TEXT).unwrap_or(line.as_bytes()), &mut found);
            line.as_bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect()
        }
        None => spec.argv.iter().map(OsText::as_bytes).collect(),
    };
    for pair in words.windows(2) {
        if let Some(name) = pair[0].strip_prefix(b"--").and_then(option) {
            let value = trim_quotes(pair[1]);
            if !value.starts_with(b"-") {
                push(name, value, &mut found);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// One argument: an option's value is all that follows, whatever it holds.
fn in_argument<'a>(argument: &'a [u8], found: &mut Vec<Obvious<'a>>) {
    let at = argument.iter().position(|byte| *byte == b'=');
    let option = at.and_then(|at| Some((argument.get(..at)?, argument.get(at + 1..)?)));
    match option {
        Some((name, value)) if name.starts_with(b"-") && !name.iter().any(u8::is_ascii_whitespace) => {
            if let Some(name) = option_name(name) {
                push(name, value, found);
            }
        }
        Some(_) | None => {}
    }
    in_text(argument, found);
}

fn in_text<'a>(text: &'a [u8], found: &mut Vec<Obvious<'a>>) {
    for (at, byte) in text.iter().enumerate() {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        let after = after.get(..MOST_VALUE).unwrap_or(after);
        match byte {
            b'=' => {
                let name = last_word(before, b"_.-");
                let lead = before.len().checked_sub(name.len() + 1).and_then(|at| before.get(at));
                // An option, a variable, or a part of an address: not any word that happens to stand before a sign.
                let named = name.starts_with(b"-")
                    || matches!(lead, Some(b'?' | b'&'))
                    || !name.iter().any(u8::is_ascii_lowercase);
                if let Some(name) = option_name(name).filter(|_| named) {
                    push(name, value(after), found);
                }
            }
            b':' if after.starts_with(b"//") => {
                let address = after.get(2..).unwrap_or_default();
                let end = address.iter().position(|byte| b"/?#".contains(byte) || DELIMITERS.contains(byte));
                let authority = address.get(..end.unwrap_or(address.len())).unwrap_or_default();
                let user =
                    authority.iter().rposition(|byte| *byte == b'@').and_then(|at| authority.get(..at));
                let password =
                    user.and_then(|user| Some((user, user.iter().position(|byte| *byte == b':')?)));
                if let Some((user, at)) = password {
                    push("password".into(), user.get(at + 1..).unwrap_or_default(), found);
                }
            }
            b':' => {
                let name = String::from_utf8_lossy(last_word(before, b"-")).into_owned();
                let lower = name.to_ascii_lowercase();
                let header = lower.ends_with("authorization")
                    || (is_likely(&name)
                        && (lower.starts_with("x-") || lower.ends_with("-token") || lower.ends_with("-key")));
                if header {
                    let rest = after.trim_ascii_start();
                    let words: Vec<&[u8]> = rest.splitn(2, |byte| *byte == b' ').collect();
                    let scheme = |word: &[u8]| {
                        [&b"bearer"[..], b"basic", b"token", b"digest"]
                            .iter()
                            .any(|known| word.eq_ignore_ascii_case(known))
                    };
                    let rest = words
                        .get(1)
                        .filter(|_| words.first().is_some_and(|word| scheme(word)))
                        .unwrap_or(&rest);
                    push(name, value(rest), found);
                }
            }
            _ => {}
        }
    }
}

/// The name of an option that takes a secret.
fn option(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok().filter(|name| !name.contains(['=', ' ']))?;
    let first = name.split(['-', '_']).next().unwrap_or_default();
    (is_likely(name) && !SWITCHES.contains(&first)).then(|| name.to_owned())
}

fn option_name(name: &[u8]) -> Option<String> {
    let dashes = name.iter().take_while(|byte| **byte == b'-').count();
    option(name.get(dashes..).unwrap_or_default())
}

/// The word that a text ends with.
fn last_word<'a>(text: &'a [u8], also: &[u8]) -> &'a [u8] {
    let length = text
        .iter()
        .rev()
        .take(MOST_VALUE)
        .take_while(|byte| byte.is_ascii_alphanumeric() || also.contains(byte))
        .count();
    text.get(text.len() - length..).unwrap_or_default()
}

/// The value that a text begins with: in its quotes, or up to what ends a word.
fn value(text: &[u8]) -> &[u8] {
    let (quoted, rest) = match text.split_first() {
        Some((quote @ (b'"' | b'\''), rest)) => (Some(*quote), rest),
        Some(_) | None => (None, text),
    };
    let ends = |byte: &u8| quoted.map_or_else(|| DELIMITERS.contains(byte), |quote| *byte == quote);
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

fn trim_quotes(word: &[u8]) -> &[u8] {
    let inner = |quote: u8| word.strip_prefix(&[quote]).and_then(|word| word.strip_suffix(&[quote]));
    inner(b'"').or_else(|| inner(b'\'')).unwrap_or(word)
}

fn push<'a>(name: String, value: &'a [u8], found: &mut Vec<Obvious<'a>>) {
    if value.len() >= SHORTEST_LIKELY && !value.starts_with(b"$") && !value.contains(&0) {
        found.push((name, value));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(spec: &Spec) -> Vec<(String, String)> {
        let seen = find(spec).into_iter();
        seen.map(|(name, value)| (name, String::from_utf8_lossy(value).into_owned())).collect()
    }

    fn argv(words: &[&str]) -> Vec<(String, String)> {
        seen(&Spec { argv: words.iter().map(|word| OsText::from(*word)).collect(), ..Spec::default() })
    }

    fn shell(line: &str) -> Vec<(String, String)> {
        seen(&Spec { shell: Some(line.into()), ..Spec::default() })
    }

    fn one(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    #[test]
    fn the_usual_forms_are_seen() {
        assert_eq!(
            argv(&["db", "--password=hunter two"]),
            [one("password", "hunter"), one("password", "hunter two")].concat()
        );
        assert_eq!(argv(&["db", "--api-key", "hunter2"]), one("api-key", "hunter2"));
        assert_eq!(argv(&["curl", "-H", "Authorization: Bearer hunter2"]), one("Authorization", "hunter2"));
        assert_eq!(argv(&["curl", "-H", "X-Api-Key: hunter2"]), one("X-Api-Key", "hunter2"));
        assert_eq!(argv(&["git", "clone", "https://ann:hunter2@x.example/y"]), one("password", "hunter2"));
        assert_eq!(argv(&["curl", "https://x.example/y?a=b&token=hunter2"]), one("token", "hunter2"));
        assert_eq!(shell("API_TOKEN='hunter 2' ./deploy"), one("API_TOKEN", "hunter 2"));
        assert_eq!(shell("db --password 'hunter2' | cat"), one("password", "hunter2"));
        let asked = Spec { prompt: Some("Log in with API_TOKEN=hunter2, please.".into()), ..Spec::default() };
        assert_eq!(seen(&asked), one("API_TOKEN", "hunter2,"));
        assert_eq!(shell("curl -H \"Authorization: token hunter2\" x"), one("Authorization", "hunter2"));
    }

    #[test]
    fn what_only_looks_like_it_is_not() {
        for words in [
            &["sort", "--key=second"][..],
            &["db", "--password", "--verbose"],
            &["db", "--no-password", "database"],
            &["db", "--password=$PASSWORD"],
            &["git", "commit", "-m", "token=refresh and password: optional"],
            &["curl", "http://127.0.0.1:8080/path"],
            &["ssh", "ann@host:22222222"],
            &["cargo", "test", "--features=tokenizer"],
        ] {
            assert_eq!(argv(words), [], "{words:?}");
        }
        assert_eq!(shell("TOKEN=$(pass show x) curl -H \"Authorization: Bearer $TOKEN\""), []);
    }

    proptest! {
        #[test]
        fn no_text_panics(bytes: Vec<u8>, text in "[-a=:/@ ?'tokenTOKEN]{0,60}") {
            let spec = Spec { argv: vec![bytes.into(), text.as_str().into()], shell: Some(text.as_str().into()), ..Spec::default() };
            let _ = find(&spec);
        }
    }
}
