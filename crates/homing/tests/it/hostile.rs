//! Output that wants to be more than output: it stays where it belongs on a terminal, and comes byte for byte where that is asked for.

use super::seat::Seat;

/// Escape sequences, bidi overrides, C1 controls, NULs, a bell, a title, a clipboard, half characters, and a very long line.
fn hostile() -> Vec<u8> {
    let mut bytes = b"\x1b[2J\x1b[H\x1b]0;owned\x07\x1b]52;c;aGk=\x07\x1b[?1049h\x1bc\x1b[31mred\n".to_vec();
    bytes.extend_from_slice("\u{202e}evil\u{2066}\u{200f}\u{9b}31m\u{90}q\u{9c}\n".as_bytes());
    bytes.extend_from_slice(b"\x00\x01\x02\x05\x08\x08\x0e\x0f\x7f\x9b31m\xff\xfe\xe2\x82\n");
    bytes.extend(std::iter::repeat_n(b"0123456789\x1b[5m".as_slice(), 20_000).flatten());
    bytes.extend_from_slice(b"\nthe end\n");
    bytes
}

/// Whether only text is left once what we write ourselves is taken away: colours, the line that is cleared, and links.
fn only_text(seen: &[u8], colours: bool) -> Result<(), String> {
    let text = String::from_utf8(seen.to_vec()).map_err(|error| error.to_string())?;
    let mut rest = text.as_str();
    while let Some(at) = rest.find('\u{1b}') {
        let sequence = &rest[at + 1..];
        let tint = sequence.strip_prefix('[').and_then(|inner| {
            let (codes, _) = inner.split_once('m')?;
            codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';').then_some(codes.len() + 2)
        });
        match tint {
            Some(length) if colours => rest = &sequence[length..],
            _ => return Err(format!("{:?}", sequence.chars().take(20).collect::<String>())),
        }
    }
    let bidi = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    let wrong = |c: char| (c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}')) || bidi(c);
    text.chars().find(|c| wrong(*c)).map_or(Ok(()), |c| Err(format!("{c:?}")))
}

#[test]
fn hostile_output_stays_in_its_place_on_every_terminal_and_is_byte_exact_raw() {
    let home = super::home();
    let bytes = hostile();
    std::fs::write(home.scratch().join("bytes"), &bytes).unwrap();
    let line = "cat bytes; exit 1 # \u{1b}[2J\u{9b}31m\u{7}\u{202e}";
    let id = home.submit(&["--notify", "inbox", "--notify", "exec:false"], line);
    let _ = home.ended(&id);
    assert_eq!(home.output(&id), bytes, "in a pipe");
    let settings: [(&[(&str, &str)], bool); 3] =
        [(&[], true), (&[("NO_COLOR", "1")], false), (&[("TERM", "dumb")], false)];
    let commands: [&[&str]; 12] = [
        &["list"],
        &["show", &id],
        &["show", &id, "--json"],
        &["inbox"],
        &["inbox", "--json"],
        &["events"],
        &["deliveries"],
        &["status"],
        &["doctor"],
        &["output", &id],
        &["output", "--timestamps", &id],
        &["wait", &id],
    ];
    for (variables, colours) in settings {
        for width in [40, 100] {
            for words in commands {
                let (_, seen) = Seat::take(&home, (width, 24), variables, words).ends();
                only_text(&seen, colours).unwrap_or_else(|what| {
                    panic!(
                        "{words:?} {variables:?} at {width}: {what} in {:?}",
                        String::from_utf8_lossy(&seen[..seen.len().min(2000)])
                    )
                });
                assert!(!seen.is_empty() || words[0] == "wait", "{words:?}");
            }
        }
    }
    assert_eq!(home.on_terminal(["output", "--raw", &id]), bytes, "whoever asks for it gets it");
}

#[test]
fn nothing_is_concealed_on_a_terminal_and_colours_end_with_the_output() {
    let home = super::home();
    let line = r"printf '\033[8mhidden \033[1;8mbold \033[38;5;8mgrey\n'";
    let id = home.submit(&[], line);
    let _ = home.ended(&id);
    let shown = "hidden \u{1b}[1mbold \u{1b}[38;5;8mgrey\r\n\u{1b}[0m";
    let (_, seen) = Seat::take(&home, (80, 24), &[], &["output", &id]).ends();
    assert_eq!(String::from_utf8_lossy(&seen), shown);
    let (_, seen) = Seat::take(&home, (80, 24), &[], &["exec", "--", "sh", "-c", line]).ends();
    assert!(String::from_utf8_lossy(&seen).contains(shown), "{}", String::from_utf8_lossy(&seen));
    let raw = "\u{1b}[8mhidden \u{1b}[1;8mbold \u{1b}[38;5;8mgrey\n";
    assert_eq!(String::from_utf8_lossy(&home.on_terminal(["output", "--raw", &id])), raw);
    assert_eq!(String::from_utf8_lossy(&home.output(&id)), raw, "in a pipe");
}

#[test]
fn everything_is_readable_at_forty_columns() {
    let home = super::home();
    let id = home.submit(&["--name", "build", "--label", "a=b"], "echo done; exit 1");
    let _ = home.ended(&id);
    let commands: [&[&str]; 6] =
        [&["list"], &["show", &id], &["inbox"], &["status"], &["doctor"], &["help", "--all"]];
    for variables in [&[("NO_COLOR", "1")][..], &[("TERM", "dumb")]] {
        for words in commands {
            let (code, seen) = Seat::take(&home, (40, 24), variables, words).ends();
            let text = String::from_utf8(seen).unwrap();
            assert!(code == 0 || words[0] == "doctor", "{text}");
            for line in text.lines() {
                assert!(line.trim_end().chars().count() <= 40, "{words:?}: {line:?}");
            }
        }
    }
}

#[test]
fn links_lead_to_the_output_where_the_terminal_knows_them_and_nowhere_else() {
    let home = super::home();
    let id = home.submit(&[], "true");
    let _ = home.ended(&id);
    for words in [&["list"][..], &["show", &id]] {
        let seen = |variables: &[(&str, &str)]| {
            String::from_utf8(Seat::take(&home, (100, 24), variables, words).ends().1).unwrap()
        };
        let linked = seen(&[("TERM_PROGRAM", "WezTerm")]);
        assert!(
            linked.contains("\u{1b}]8;id=") && linked.contains(&format!("/tasks/{id}/output.log\u{1b}\\")),
            "{linked:?}"
        );
        for variables in [&[][..], &[("TERM", "dumb"), ("FORCE_HYPERLINK", "1")]] {
            assert!(!seen(variables).contains("\u{1b}]8"), "{variables:?}");
        }
        let mut piped = home.command();
        let piped = homing_testkit::Home::finish(piped.env("FORCE_HYPERLINK", "1").args(words)).ok();
        assert!(!piped.stdout.contains(&0x1b));
    }
}
