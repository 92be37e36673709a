//! Links to files (OSC 8), for terminals that are known to show them as such.
//!
//! A terminal that does not know the sequence should skip it, and some print it instead: so only those on a short list get it, or whoever asks
//! by `FORCE_HYPERLINK`, the variable that other programs go by too. What a link leads to is percent-encoded, so that nothing in the
//! name of a file can end it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use homing_model::digest::sha256;

use crate::options::environment::Surroundings;

/// Terminals that name themselves in `TERM_PROGRAM`.
const PROGRAMS: &[&str] = &["iTerm.app", "WezTerm", "vscode", "Hyper", "ghostty", "rio", "Tabby", "mintty"];
/// Terminals with an entry of their own: `TERM` is this, or begins like this with a dash.
const ENTRIES: &[&str] = &["xterm-kitty", "alacritty", "foot", "wezterm", "xterm-ghostty", "contour", "rio"];
/// The first release of VTE (GNOME Terminal and others) that has them: 0.50.
const VTE: u32 = 5_000;
/// The first release of Konsole: 20.12.
const KONSOLE: u32 = 201_200;

/// Whether the terminal of these surroundings shows links.
pub(crate) fn are_known(surroundings: &Surroundings) -> bool {
    let term = surroundings.text("TERM").unwrap_or_default();
    if term == "dumb" {
        return false;
    }
    if let Some(force) = surroundings.text("FORCE_HYPERLINK") {
        return force != "0";
    }
    // What is behind a multiplexer is not to be seen from inside.
    if surroundings.get("TMUX").is_some() || ["screen", "tmux"].iter().any(|name| is_entry(term, name)) {
        return false;
    }
    let at_least = |name: &str, least: u32| {
        surroundings.text(name).and_then(|text| text.parse().ok()).is_some_and(|found: u32| found >= least)
    };
    ENTRIES.iter().any(|name| is_entry(term, name))
        || surroundings.text("TERM_PROGRAM").is_some_and(|name| PROGRAMS.contains(&name))
        || surroundings.get("WT_SESSION").is_some()
        || at_least("VTE_VERSION", VTE)
        || at_least("KONSOLE_VERSION", KONSOLE)
}

fn is_entry(term: &str, name: &str) -> bool {
    term.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The text, as a link to a file of this machine. Parts of one text that stand on several lines are one link by its `id`.
pub(crate) fn to_file(path: &str, text: &str) -> String {
    let address = address(path);
    let digest = sha256(address.as_bytes());
    format!("\x1b]8;id={};{address}\x1b\\{text}\x1b]8;;\x1b\\", digest.get(..8).unwrap_or_default())
}

fn address(path: &str) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut out = format!("file://{}", encoded(host.as_bytes()));
    out.push_str(&encoded(Path::new(path).as_os_str().as_bytes()));
    out
}

fn encoded(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(*byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminals_that_know_links_get_them() {
        for known in [
            Surroundings::from([("TERM", "xterm-256color"), ("VTE_VERSION", "7402")]),
            Surroundings::from([("TERM", "xterm-kitty")]),
            Surroundings::from([("TERM", "foot-extra")]),
            Surroundings::from([("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")]),
            Surroundings::from([("TERM", "screen-256color"), ("FORCE_HYPERLINK", "1")]),
        ] {
            assert!(are_known(&known), "{known:?}");
        }
        for unknown in [
            Surroundings::from([("TERM", "xterm-256color")]),
            Surroundings::from([("TERM", "xterm"), ("VTE_VERSION", "4601")]),
            Surroundings::from([("TERM", "linux")]),
            Surroundings::from([("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux-1/default,1,0")]),
            Surroundings::from([("TERM", "tmux-256color"), ("TERM_PROGRAM", "WezTerm")]),
            Surroundings::from([("TERM", "xterm-kitty"), ("FORCE_HYPERLINK", "0")]),
            Surroundings::from([("TERM", "dumb"), ("FORCE_HYPERLINK", "1")]),
            Surroundings::default(),
        ] {
            assert!(!are_known(&unknown), "{unknown:?}");
        }
    }

    #[test]
    fn no_name_of_a_file_ends_its_link() {
        let link = to_file("/a b/\u{1b}\\\u{7}é;x", "text");
        let (address, rest) = link.split_once("\x1b\\").unwrap();
        assert_eq!(rest, "text\x1b]8;;\x1b\\");
        assert!(address.ends_with("/a%20b/%1B%5C%07%C3%A9%3Bx"), "{address}");
        assert!(address[1..].bytes().all(|byte| byte.is_ascii_graphic()), "{address}");
    }
}
