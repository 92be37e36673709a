//! Keys by name, as `--keys` and `--detach-keys` take them: `ctrl-c`, `up`, `alt-x`, `ctrl-p,ctrl-q`.

/// One key that was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// What a terminal sends for it.
    pub(crate) bytes: Vec<u8>,
    /// What a terminal sends instead that was asked to tell keys apart (xterm's `modifyOtherKeys`, kitty's protocol).
    pub(crate) others: Vec<Vec<u8>>,
}

impl Key {
    fn plain(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), others: Vec::new() }
    }
}

const NAMED: [(&str, &str); 37] = [
    ("enter", "\r"),
    ("return", "\r"),
    ("tab", "\t"),
    ("esc", "\x1b"),
    ("escape", "\x1b"),
    ("space", " "),
    ("comma", ","),
    ("backspace", "\x7f"),
    ("up", "\x1b[A"),
    ("down", "\x1b[B"),
    ("right", "\x1b[C"),
    ("left", "\x1b[D"),
    ("home", "\x1b[H"),
    ("end", "\x1b[F"),
    ("insert", "\x1b[2~"),
    ("delete", "\x1b[3~"),
    ("del", "\x1b[3~"),
    ("pageup", "\x1b[5~"),
    ("pgup", "\x1b[5~"),
    ("pagedown", "\x1b[6~"),
    ("pgdn", "\x1b[6~"),
    ("shift-tab", "\x1b[Z"),
    ("backtab", "\x1b[Z"),
    ("newline", "\n"),
    ("nul", "\0"),
    ("f1", "\x1bOP"),
    ("f2", "\x1bOQ"),
    ("f3", "\x1bOR"),
    ("f4", "\x1bOS"),
    ("f5", "\x1b[15~"),
    ("f6", "\x1b[17~"),
    ("f7", "\x1b[18~"),
    ("f8", "\x1b[19~"),
    ("f9", "\x1b[20~"),
    ("f10", "\x1b[21~"),
    ("f11", "\x1b[23~"),
    ("f12", "\x1b[24~"),
];

/// Reads keys that are separated by commas.
pub(crate) fn parse(text: &str) -> Result<Vec<Key>, String> {
    if text.is_empty() {
        return Err("name a key, as `ctrl-c`, `up` or `enter`".to_owned());
    }
    text.split(',').map(|name| one(name.trim())).collect()
}

fn one(name: &str) -> Result<Key, String> {
    let unknown = || {
        format!(
            "there is no key `{name}`: write a character, `ctrl-` or `alt-` and a character, or one of enter, tab, esc, space, comma, \
             backspace, up, down, left, right, home, end, pageup, pagedown, insert, delete, shift-tab, f1 to f12; commas between"
        )
    };
    let mut chars = name.chars();
    if let (Some(only), None) = (chars.next(), chars.next()) {
        return Ok(Key::plain(only.to_string()));
    }
    let lower = name.to_lowercase();
    if let Some((_, bytes)) = NAMED.iter().find(|(known, _)| *known == lower) {
        return Ok(Key::plain(*bytes));
    }
    let after = |prefixes: [&str; 3]| {
        let found = prefixes.iter().find(|prefix| lower.starts_with(**prefix))?;
        name.get(found.len()..).filter(|rest| !rest.is_empty())
    };
    if let Some(rest) = after(["alt-", "meta-", "m-"]) {
        return Ok(Key::plain([b"\x1b".to_vec(), one(rest)?.bytes].concat()));
    }
    if let Some(rest) = after(["ctrl-", "c-", "^"]) {
        return control(rest).ok_or_else(unknown);
    }
    Err(unknown())
}

/// A key with Ctrl.
fn control(rest: &str) -> Option<Key> {
    let rest = if rest.eq_ignore_ascii_case("space") { " " } else { rest };
    let mut chars = rest.chars();
    let (Some(char), None) = (chars.next(), chars.next()) else { return None };
    let char = char.to_ascii_lowercase();
    let byte = match char {
        'a'..='z' | '[' | '\\' | ']' | '^' | '_' => u8::try_from(char).ok()? & 0x1f,
        '@' | ' ' => 0,
        '?' => 0x7f,
        _ => return None,
    };
    let code = u32::from(char);
    let others = vec![format!("\x1b[27;5;{code}~").into_bytes(), format!("\x1b[{code};5u").into_bytes()];
    Some(Key { bytes: vec![byte], others })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        parse(text).unwrap().into_iter().flat_map(|key| key.bytes).collect()
    }

    #[test]
    fn keys_are_what_a_terminal_sends_for_them() {
        assert_eq!(bytes("ctrl-\\"), b"\x1c");
        assert_eq!(bytes("ctrl-p,ctrl-q"), b"\x10\x11");
        assert_eq!(bytes("Ctrl-C"), b"\x03");
        assert_eq!(bytes("^c, c-d"), b"\x03\x04");
        assert_eq!(bytes("h,i,enter"), b"hi\r");
        assert_eq!(bytes("alt-x,up,F5,esc"), b"\x1bx\x1b[A\x1b[15~\x1b");
        assert_eq!(bytes("ctrl-space,ctrl-@,\u{e9}"), "\0\0\u{e9}".as_bytes());
        for wrong in ["", "ctrl-", "ctrl-\u{e9}", "up,", "nokey", "ctrl-up", "alt-"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
