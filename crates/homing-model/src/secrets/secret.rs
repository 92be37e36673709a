//! Which values are kept out of sight: those that were given as secrets, and those whose variable has a name like one.
//!
//! A name is read by its words (`MY_API_TOKEN`, `dbPassword`, `npm_config_//registry/:_authToken`), never by the letters in it, so that
//! `TOKENIZERS_PARALLELISM` is what it is. Names that say where a secret is, or how long it lasts, are not names of secrets.

/// A value given as a secret is recognised from this length on. A shorter one would be found in every second line.
pub const SHORTEST_GIVEN: usize = 4;
/// The same for a value that is only likely to be one.
pub const SHORTEST_LIKELY: usize = 6;
/// So many likely ones of a task are recognised; nobody has more.
pub const MOST_LIKELY: usize = 64;

/// Words that make a name one of a secret, wherever they stand in it, also as the end of a word (`PGPASSWORD`, `authToken`).
const ANYWHERE: &[&str] = &[
    "SECRET",
    "SECRETS",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
    "BEARER",
];

/// Words that do so at the end.
const AT_THE_END: &[&str] =
    &["AUTH", "AUTHORIZATION", "PASS", "SSHPASS", "PASSCODE", "PWD", "PW", "PAT", "COOKIE", "DSN"];

/// Words that do so together with a following `KEY`.
const BEFORE_KEY: &[&str] = &[
    "API",
    "ACCESS",
    "PRIVATE",
    "SECRET",
    "SIGNING",
    "ENCRYPTION",
    "AUTH",
    "MASTER",
    "SSH",
    "DEPLOY",
    "SERVICE",
    "SESSION",
    "ACCOUNT",
    "LICENSE",
    "WEBHOOK",
];

/// Last words of names that only speak about a secret.
const ABOUT: &[&str] = &[
    "FILE",
    "PATH",
    "DIR",
    "FOLDER",
    "URL",
    "URI",
    "ENDPOINT",
    "SOCK",
    "SOCKET",
    "HOST",
    "PORT",
    "NAME",
    "TYPE",
    "TTL",
    "EXPIRY",
    "EXPIRES",
    "TIMEOUT",
    "COUNT",
    "LIMIT",
    "MAX",
    "MIN",
    "LENGTH",
    "SIZE",
    "ALGORITHM",
    "ISSUER",
    "SCOPE",
    "SCOPES",
    "HELPER",
    "PROVIDER",
    "MODE",
    "ENABLED",
    "DISABLED",
    "REQUIRED",
];

/// Whether a variable of this name probably holds a secret.
#[must_use]
pub fn is_likely(name: &str) -> bool {
    let words = words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((last, before)) = words.split_last() else { return false };
    // `PWD` and `OLDPWD` are folders; a password has a word before it.
    if ABOUT.contains(last) || (before.is_empty() && *last == "PWD") || words == ["OLD", "PWD"] {
        return false;
    }
    words.iter().any(|word| ANYWHERE.iter().any(|end| word.ends_with(end)))
        || AT_THE_END.contains(last)
        || words.windows(2).any(|pair| pair[1] == "KEY" && BEFORE_KEY.contains(&pair[0]))
}

/// The words of a name, in capitals: split at what is no letter or digit, and where a capital follows a small letter.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut small = false;
    for c in name.chars() {
        if (!c.is_alphanumeric() || (small && c.is_uppercase())) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_uppercase());
        }
        small = c.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_seen() {
        for name in [
            "MY_API_TOKEN",
            "GITHUB_TOKEN",
            "DB_PASSWORD",
            "PGPASSWORD",
            "SSHPASS",
            "GITHUB_PAT",
            "accesstoken",
            "MYSQL_PWD",
            "SMTP_PASS",
            "OPENAI_API_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "SSH_PRIVATE_KEY",
            "SIGNING_KEY",
            "REDIS_AUTH",
            "GOOGLE_CREDENTIALS",
            "dbPassword",
            "api-key",
            "npm_config_//registry.example/:_authToken",
            "TOKEN",
            "SENTRY_DSN",
        ] {
            assert!(is_likely(name), "{name}");
        }
    }

    #[test]
    fn names_that_only_look_like_it_are_not() {
        for name in [
            "SSH_AUTH_SOCK",
            "PATH",
            "PWD",
            "OLDPWD",
            "OLD_PWD",
            "TOKENIZERS_PARALLELISM",
            "MAX_TOKENS",
            "XDG_SESSION_ID",
            "DBUS_SESSION_BUS_ADDRESS",
            "XAUTHORITY",
            "GIT_ASKPASS",
            "SSH_ASKPASS",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "TOKEN_TTL",
            "PASSWORD_STORE_DIR",
            "KEYBOARD",
            "HOTKEY",
            "COMPASS",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "LS_COLORS",
            "KEY",
            "PATTERN",
            "HOMING_OWNER",
            "",
            "_",
        ] {
            assert!(!is_likely(name), "{name}");
        }
    }
}
