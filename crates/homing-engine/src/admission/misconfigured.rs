//! What is wrong with `config.toml`, in the words of whoever wrote it: the key, what it says, and what may stand there.
//!
//! The reader knows types and variants; a person knows sections, keys and values. Only the words change here: what is refused, and where,
//! is the reader's to say.

/// A line of the file, counted from 1, if one is to blame, and what is wrong with it.
pub(crate) fn told(text: &str, error: &toml::de::Error) -> (Option<usize>, String) {
    let message = error.message().lines().next().unwrap_or_default();
    let Some(span) = error.span() else { return (None, message.to_owned()) };
    let before = text.get(..span.start).unwrap_or(text);
    let number = before.matches('\n').count() + 1;
    let place = Place::of(text, number);
    let written = text.get(span).filter(|written| !written.contains('\n')).unwrap_or("this");
    (Some(number), reworded(message, &place, written))
}

fn reworded(message: &str, place: &Place<'_>, written: &str) -> String {
    if let Some((key, known)) = unknown(message, "unknown field ") {
        return match place.section {
            Some(section) if section != key => {
                format!("there is no key `{key}` in [{section}]; the keys there are {known}")
            }
            Some(_) | None => format!("there is no section [{key}]; the sections are {known}"),
        };
    }
    let name = place.name();
    if let Some((_, known)) = unknown(message, "unknown variant ") {
        return format!("{name} cannot be {written}: write one of {known}");
    }
    let typed = ["invalid type: ", "invalid value: "].iter().any(|head| message.starts_with(head));
    match message.split_once(", expected ") {
        Some((_, wanted)) if typed => format!("{name} cannot be {written}: write {}", expected(wanted)),
        // A value's own words say what is wrong with it, but not which.
        _ if place.key.is_some() && !is_syntax(message) => format!("{name}: {message}"),
        _ => message.to_owned(),
    }
}

/// The unknown word and the known ones, from `unknown field `a`, expected one of `b`, `c``.
fn unknown<'a>(message: &'a str, head: &str) -> Option<(&'a str, &'a str)> {
    let (word, known) = message.strip_prefix(head)?.split_once(", expected ")?;
    let known = known.strip_prefix("one of ").unwrap_or(known);
    Some((word.trim_matches('`'), known))
}

/// What the reader speaks of when the file is no TOML at all; then a key has little to do with it.
fn is_syntax(message: &str) -> bool {
    ["unclosed", "missing", "unexpected", "duplicate", "key with no", "string values", "extra"]
        .iter()
        .any(|head| message.starts_with(head))
}

/// A type of ours as something that can be written.
fn expected(wanted: &str) -> &str {
    match wanted {
        "a string" | "string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list: [\"…\", \"…\"]",
        "u16" => "a whole number from 0 to 65535",
        "u8" | "u32" | "u64" | "usize" | "i64" => "a whole number, 0 or above",
        wanted if wanted.starts_with("struct ") || wanted == "a map" => {
            "a section: `[name]` on a line of its own"
        }
        wanted => wanted,
    }
}

/// Where in the file a line is.
struct Place<'a> {
    section: Option<&'a str>,
    key: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// Of a line, counted from 1: the last heading up to it, and the last key below that.
    fn of(text: &'a str, number: usize) -> Self {
        let mut place = Self { section: None, key: None };
        for line in text.lines().take(number).map(str::trim) {
            if let Some(name) =
                line.strip_prefix('[').and_then(|line| line.split_once(']')).map(|(name, _)| name)
                && !line.contains(['"', '\'', ','])
            {
                place = Self { section: Some(name.trim()), key: None };
            } else if let Some((key, _)) = line.split_once('=').filter(|_| !line.starts_with(['#', '"'])) {
                place.key = Some(key.trim());
            }
        }
        place
    }

    fn name(&self) -> String {
        match (self.section, self.key) {
            (Some(section), Some(key)) => format!("`{section}.{key}`"),
            (None, Some(name)) | (Some(name), None) => format!("`{name}`"),
            (None, None) => "it".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn of(text: &str) -> String {
        super::told(text, &toml::from_str::<Config>(text).expect_err("it is wrong")).1
    }

    #[test]
    fn what_is_wrong_is_told_by_key_value_and_what_may_stand_there() {
        for (text, told) in [
            (
                "[notify]\non = \"sometimes\"",
                "`notify.on` cannot be \"sometimes\": write one of `always`, `failure`, `never`",
            ),
            ("[wake]\nper_hour = -1", "`wake.per_hour` cannot be -1: write a whole number, 0 or above"),
            ("[confined]\nallow = \"yes\"", "`confined.allow` cannot be \"yes\": write true or false"),
            ("[nested]\ndepth = \"3\"", "`nested.depth` cannot be \"3\": write a whole number, 0 or above"),
            (
                "[listener]\nport = 80000",
                "`listener.port` cannot be 80000: write a whole number from 0 to 65535",
            ),
            ("[stop]\ngrace = 5", "`stop.grace` cannot be 5: write a duration such as \"10s\" or \"7d\""),
            ("[stop]\nspeed = 5", "there is no key `speed` in [stop]; the keys there are `grace`"),
            ("stop = 5", "`stop` cannot be 5: write a section: `[name]` on a line of its own"),
        ] {
            assert_eq!(of(text), told);
        }
        let section = of("[nonsense]\na = 1");
        assert!(
            section.starts_with("there is no section [nonsense]; the sections are `reconcile`, "),
            "{section}"
        );
        let own = of("[stop]\ngrace = \"soon\"");
        assert!(own.starts_with("`stop.grace`: ") && own.contains("soon"), "{own}");
    }

    #[test]
    fn what_is_no_toml_keeps_its_words_and_nothing_is_ever_empty() {
        for text in [
            "[stop",
            "grace",
            "[stop]\ngrace = ",
            "a = [1,\n2",
            "\u{0}",
            "[stop]\ngrace = \"1s\"\ngrace = \"2s\"",
        ] {
            let told = of(text);
            assert!(!told.is_empty() && !told.contains("struct"), "{told}");
        }
    }
}
