//! Secrets that a command gives away by their form: `--password=…`, `API_TOKEN=…`, `Authorization: Bearer …`, `https://user:…@host`, `"password":"…"`,
//! `mysql -p…`, and tokens that say by their first letters what they are (`ghp_…`, `sk-ant-…`).
//!
//! Guesses, and meant to be modest: they decide what is shown and kept, never what is run. What refers to a variable (`$TOKEN`) is none.

use crate::secret::{SHORTEST_LIKELY, is_likely};
use crate::spec::Spec;
use crate::text::OsText;

/// First words of options that only speak about a secret: `--no-password`, `--ask-password`.
const SWITCHES: &[&str] = &["no", "ask", "with", "prompt", "show", "generate", "use", "skip"];

/// How tokens begin that services issue, and how many characters follow at least.
const TOKENS: &[(&[u8], usize)] = &[
    (b"ghp_", 16),
    (b"gho_", 16),
    (b"ghu_", 16),
    (b"ghs_", 16),
    (b"ghr_", 16),
    (b"github_pat_", 16),
    (b"glpat-", 16),
    (b"sk-ant-", 16),
    (b"sk-proj-", 16),
    (b"sk-svcacct-", 16),
    (b"sk-admin-", 16),
    (b"xoxa-", 10),
    (b"xoxb-", 10),
    (b"xoxp-", 10),
    (b"xoxr-", 10),
    (b"xoxs-", 10),
    (b"AKIA", 16),
    (b"ASIA", 16),
];

/// How OpenAI's first tokens begin, and how many letters and digits follow. Both are among them: words and digests are told apart so.
const CLASSIC: (&[u8], usize) = (b"sk-", 40);

/// Names that mean a secret also in small letters and without dashes (`psql "user=ann password=…"`); others may be any word before a sign.
const PLAIN: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "api_key",
    "apikey",
    "secret_key",
    "access_key",
    "access_token",
    "auth_token",
];

/// Programs that take a password as the rest of `-p`.
const REST_OF_P: &[&[u8]] = &[b"mysql", b"mariadb", b"sshpass"];

/// Ends of variables that hold an address, with a password in it or not.
const ADDRESSES: &[&str] = &["_URL", "_URI"];

/// Ends a value where nothing quotes it.
const DELIMITERS: &[u8] = b" \t\r\n'\"&;|<>()`";

/// A command line is looked at up to here, a value up to there: whatever is submitted, the look is short.
const MOST_TEXT: usize = 256 * 1024;
const MOST_VALUE: usize = 2 * 1024;
/// So many different ones are found and no more: each is looked for in all that is kept, and compared with each secret.
const MOST_FOUND: usize = 64;

/// What was found: what it seems to be, and the value.
pub type Obvious<'a> = (String, &'a [u8]);

/// The obvious secrets of a command, of the addresses in its environment, or of what an agent is asked.
#[must_use]
pub fn find(spec: &Spec) -> Vec<Obvious<'_>> {
    let mut found = Vec::new();
    let mut budget = MOST_TEXT;
    for argument in spec.argv.iter().map(OsText::as_bytes) {
        let looked_at = argument.get(..budget).unwrap_or(argument);
        in_argument(looked_at, &mut found);
        // It may be a line for a shell.
        if looked_at.iter().any(u8::is_ascii_whitespace) {
            in_words(&words(looked_at), &mut found);
        }
        budget = budget.saturating_sub(argument.len());
    }
    if let Some(prompt) = spec.prompt.as_deref().map(str::as_bytes) {
        in_text(prompt.get(..MOST_TEXT).unwrap_or(prompt), &mut found);
    }
    let words = match &spec.shell {
        Some(line) => {
            in_text(line.as_bytes().get(..MOST_TEXT).unwrap_or(line.as_bytes()), &mut found);
            words(line.as_bytes().get(..MOST_TEXT).unwrap_or(line.as_bytes()))
        }
        None => spec.argv.iter().map(OsText::as_bytes).collect(),
    };
    in_words(&words, &mut found);
    let addresses =
        spec.env.iter().flatten().filter(|(name, _)| ADDRESSES.iter().any(|end| name.ends_with(end)));
    for (name, value) in addresses {
        if let Some(password) = scheme(value.as_bytes()).and_then(password) {
            push(name.clone(), password, &mut found);
        }
    }
    found.sort();
    found
}

fn words(line: &[u8]) -> Vec<&[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect()
}

/// What words mean by the one before them.
fn in_words<'a>(words: &[&'a [u8]], found: &mut Vec<Obvious<'a>>) {
    for pair in words.windows(2) {
        if let Some(name) = pair[0].strip_prefix(b"--").and_then(option) {
            let value = trim_quotes(pair[1]);
            if !value.starts_with(b"-") {
                push(name, value, found);
            }
        }
    }
    let mut takes_rest = false;
    for word in words {
        let program = word.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if REST_OF_P.iter().any(|known| program.starts_with(known)) {
            takes_rest = true;
        } else if matches!(*word, b"|" | b"||" | b"&&" | b";") {
            takes_rest = false;
        } else if let Some(rest) = word.strip_prefix(b"-p").filter(|_| takes_rest) {
            push("password".into(), trim_quotes(rest), found);
        }
    }
}

/// What follows the scheme of an address.
fn scheme(address: &[u8]) -> Option<&[u8]> {
    let at = address.windows(3).position(|part| part == b"://")?;
    address.get(at + 3..)
}

/// The password in an address, which begins behind its scheme.
fn password(address: &[u8]) -> Option<&[u8]> {
    let end = address.iter().position(|byte| b"/?#".contains(byte) || DELIMITERS.contains(byte));
    let authority = address.get(..end.unwrap_or(address.len()))?;
    let user = authority.get(..authority.iter().rposition(|byte| *byte == b'@')?)?;
    user.get(user.iter().position(|byte| *byte == b':')? + 1..)
}

/// The token that a text begins with.
fn token(text: &[u8]) -> Option<&[u8]> {
    issued(text).or_else(|| classic(text))
}

fn classic(text: &[u8]) -> Option<&[u8]> {
    let (start, least) = CLASSIC;
    let rest = text.strip_prefix(start)?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let rest = rest.get(..length)?;
    let mixed = [u8::is_ascii_uppercase, u8::is_ascii_lowercase, u8::is_ascii_digit];
    (length >= least && mixed.iter().all(|kind| rest.iter().any(kind)))
        .then(|| text.get(..start.len() + length))
        .flatten()
}

fn issued(text: &[u8]) -> Option<&[u8]> {
    let (start, least) = TOKENS.iter().find(|(start, _)| text.starts_with(start))?;
    let rest = text.get(start.len()..)?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte)).count();
    (length >= *least).then(|| text.get(..start.len() + length)).flatten()
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
        if found.len() >= MOST_FOUND {
            return;
        }
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        let after = after.get(..MOST_VALUE).unwrap_or(after);
        if !before.last().is_some_and(u8::is_ascii_alphanumeric)
            && let Some(token) = text.get(at..).and_then(|rest| token(rest.get(..MOST_VALUE).unwrap_or(rest)))
        {
            push("token".into(), token, found);
        }
        match byte {
            b'=' => {
                let name = last_word(before, b"_.-");
                let lead = before.len().checked_sub(name.len() + 1).and_then(|at| before.get(at));
                // An option, a variable, or a part of an address: not any word that happens to stand before a sign.
                let named = name.starts_with(b"-")
                    || matches!(lead, Some(b'?' | b'&'))
                    || !name.iter().any(u8::is_ascii_lowercase)
                    || PLAIN.iter().any(|plain| name.eq_ignore_ascii_case(plain.as_bytes()));
                if let Some(name) = option_name(name).filter(|_| named) {
                    push(name, value(after), found);
                }
            }
            b':' if after.starts_with(b"//") => {
                if let Some(password) = after.get(2..).and_then(password) {
                    push("password".into(), password, found);
                }
            }
            b':' if matches!(before.last(), Some(b'"' | b'\'')) => in_member(before, after, found),
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

/// A member of a JSON object, with its quotes escaped or not: `"password": "…"`.
fn in_member<'a>(before: &[u8], after: &'a [u8], found: &mut Vec<Obvious<'a>>) {
    let name = before.get(..before.len().saturating_sub(1)).unwrap_or_default();
    let name = last_word(name.strip_suffix(b"\\").unwrap_or(name), b"_.-");
    let after = after.trim_ascii_start();
    let after = after.strip_prefix(b"\\").unwrap_or(after);
    if let Some(name) = option(name).filter(|_| after.starts_with(b"\"") || after.starts_with(b"'")) {
        let value = value(after);
        push(name, value.strip_suffix(b"\\").unwrap_or(value), found);
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
    let one = (name, value);
    if found.len() < MOST_FOUND
        && value.len() >= SHORTEST_LIKELY
        && !value.starts_with(b"$")
        && !value.contains(&0)
        && !found.contains(&one)
    {
        found.push(one);
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
    fn tokens_are_seen_by_how_they_begin() {
        let rest = "0123456789abcdefABCDEF0123456789";
        let starts =
            ["ghp_", "github_pat_", "glpat-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-admin-", "xoxb-"];
        for start in starts {
            let token = format!("{start}{rest}");
            assert_eq!(argv(&["tool", &token]), one("token", &token));
            assert_eq!(shell(&format!("tool '{token}'; echo")), one("token", &token));
            assert_eq!(argv(&["tool", &format!("task{token}")]), [], "{start} in the middle of a word");
            assert_eq!(argv(&["tool", &format!("{start}short")]), []);
        }
        assert_eq!(argv(&["aws", "AKIAIOSFODNN7EXAMPLE"]), one("token", "AKIAIOSFODNN7EXAMPLE"));
    }

    #[test]
    fn p11_a_classic_token_is_told_from_words_and_digests() {
        let token = "sk-0123456789abcdefABCDEF0123456789abcdefABCDEF0123";
        assert_eq!(argv(&["tool", token]), one("token", token));
        for word in [
            "sk-0123456789abcdef0123456789abcdef01234567",
            "sk-a-name-that-has-many-Words-and-more-than-40-characters",
            "disk-0123456789abcdefABCDEF0123456789abcdefABCDEF0123",
            "sk-0123456789abcdefABCDEF",
        ] {
            assert_eq!(argv(&["tool", word]), [], "{word}");
        }
    }

    #[test]
    fn p11_however_long_a_line_is_the_look_at_it_is_bounded() {
        let behind = format!("{} db --password hunter2", " ".repeat(MOST_TEXT));
        assert_eq!(shell(&behind), []);
        let many: String =
            (0..1_000).map(|n| format!("TOKEN=hunter{n} mysql -phunter{n} --password hunter{n} ")).collect();
        for spec in [
            Spec { shell: Some(many.as_str().into()), ..Spec::default() },
            Spec { argv: many.split(' ').map(OsText::from).collect(), ..Spec::default() },
            Spec { prompt: Some(many.clone()), ..Spec::default() },
        ] {
            assert_eq!(find(&spec).len(), MOST_FOUND);
        }
        let same = "TOKEN=hunter2 ".repeat(1_000) + "TOKEN=hunter3";
        assert_eq!(shell(&same), [one("TOKEN", "hunter2"), one("TOKEN", "hunter3")].concat());
    }

    #[test]
    fn passwords_are_seen_in_the_forms_of_other_programs() {
        let json = r#"{"user": "ann", "password":"hunter2", "n": 1}"#;
        assert_eq!(argv(&["curl", "-d", json]), one("password", "hunter2"));
        assert_eq!(shell(r#"curl -d "{\"apiToken\": \"hunter2\"}""#), one("apiToken", "hunter2"));
        assert_eq!(argv(&["psql", "host=x password=hunter2 user=ann"]), one("password", "hunter2"));
        assert_eq!(argv(&["mysql", "-u", "root", "-phunter2"]), one("password", "hunter2"));
        assert_eq!(shell("sudo /usr/bin/mysqldump -p'hunter2' db"), one("password", "hunter2"));
        assert_eq!(argv(&["sh", "-c", "db --password hunter2"]), one("password", "hunter2"));
        assert_eq!(argv(&["sh", "-c", "mysqladmin -phunter2 status"]), one("password", "hunter2"));
        for words in [
            &["mkdir", "-parents", "folder"][..],
            &["mysql", "-p", "database"],
            &["tar", "-preserve"],
            &["curl", "-d", r#"{"password": null, "key": "seconds"}"#],
        ] {
            assert_eq!(argv(words), [], "{words:?}");
        }
        assert_eq!(shell("mysql --version | grep -phunter2"), []);
    }

    #[test]
    fn the_password_of_an_address_in_the_environment_is_seen() {
        let variables = [
            ("DATABASE_URL", "postgres://ann:hunter2@db.example/x?y"),
            ("REDIS_URI", "redis://:hunter3@cache"),
            ("HOME_URL", "https://example.org/a:b@c"),
            ("OTHER", "postgres://ann:hunter4@db.example"),
        ];
        let env = variables.map(|(name, value)| (name.to_owned(), OsText::from(value)));
        let spec = Spec { argv: vec!["true".into()], env: Some(env.into()), ..Spec::default() };
        assert_eq!(seen(&spec), [one("DATABASE_URL", "hunter2"), one("REDIS_URI", "hunter3")].concat());
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
