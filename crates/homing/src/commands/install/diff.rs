//! What changes in a file, line by line, as `diff -u` shows it. What may be a secret of somebody else's is named, not
//! shown, and of a long line that changes there is the stretch that does.

use homing_model::sanitize::line as safe;
use homing_model::secret;
use similar::{Algorithm, DiffTag, capture_diff_slices, group_diff_ops};

use crate::render::console::{Console, Tint};

/// Lines around a change.
const AROUND: usize = 2;
/// The longest line that is shown of what stays, in characters.
const LONGEST: usize = 160;
/// So much is shown of what changes in a line,
const ALTERED: usize = 2_000;
/// and so much before and behind it.
const BESIDE: usize = 40;

/// The changes, in colour where that is shown.
pub(crate) fn render(from: &str, to: &str, console: &Console) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (from.lines().collect(), to.lines().collect());
    let mut out = String::new();
    let mut shown = 0;
    for op in group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), AROUND).concat() {
        let (tag, removed, added) = op.as_tag_tuple();
        if removed.start > shown {
            out.push_str(&console.tint(Tint::Dim, &console.spelt("  …\n")));
        }
        shown = removed.end;
        let (removed, added) = (&old[removed], &new[added]);
        if tag == DiffTag::Equal {
            out.extend(removed.iter().map(|text| format!("  {}\n", shown_line(text))));
            continue;
        }
        for (index, text) in removed.iter().enumerate() {
            let line = format!("- {}\n", shown_change(text, added.get(index)));
            out.push_str(&console.tint(Tint::Red, &line));
        }
        for (index, text) in added.iter().enumerate() {
            let line = format!("+ {}\n", shown_change(text, removed.get(index)));
            out.push_str(&console.tint(Tint::Green, &line));
        }
    }
    if old == new && from != to {
        out.push_str(&console.tint(Tint::Dim, "  (only the end of the last line changes)\n"));
    }
    out
}

/// A line that stays, as it may be shown.
fn shown_line(text: &str) -> String {
    let text = masked(text);
    let whole = text.chars().count();
    cut(&text, 0, whole.min(LONGEST))
}

/// A line that goes or comes, as it may be shown: the stretch in which it differs from the one that has or had its place.
fn shown_change(text: &str, partner: Option<&&str>) -> String {
    let text: Vec<char> = masked(text).chars().collect();
    let partner: Vec<char> = masked(partner.copied().unwrap_or_default()).chars().collect();
    let head = text.iter().zip(&partner).take_while(|(a, b)| a == b).count();
    let rests = text[head..].iter().rev().zip(partner[head..].iter().rev());
    let tail = rests.take_while(|(a, b)| a == b).count();
    let (from, to) = if text.len() <= LONGEST {
        (0, text.len())
    } else {
        let from = head.saturating_sub(BESIDE);
        (from, (text.len() - tail + BESIDE).min(text.len()).min(from + ALTERED))
    };
    cut(&text.iter().collect::<String>(), from, to)
}

/// The characters of a line from one to another.
fn cut(text: &str, from: usize, to: usize) -> String {
    let part: String = text.chars().skip(from).take(to - from).collect();
    let blank = part.len() - part.trim_start().len();
    let part = format!("{}{}", part[..blank].replace('\t', "    "), safe(&part[blank..]));
    let more = |more: bool| if more { "…" } else { "" };
    format!("{}{part}{}", more(from > 0), more(text.chars().nth(to).is_some()))
}

/// A line without the values that may be secrets.
fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some((from, to)) = secret_from(text, at) {
        out.push_str(&text[at..from]);
        out.push_str("(not shown)");
        at = to;
    }
    out + &text[at..]
}

/// Where the next value is that may be a secret, by the name before it.
fn secret_from(text: &str, from: usize) -> Option<(usize, usize)> {
    let is_name = |character: char| character.is_alphanumeric() || "_-.".contains(character);
    let mut at = from;
    while let Some(begin) = text[at..].find(is_name).map(|found| at + found) {
        let name = text[begin..].split(|character| !is_name(character)).next().unwrap_or_default();
        at = begin + name.len();
        let rest = text[at..].trim_start_matches(['"', '\'', ' ', '\t', '\\']);
        if rest.starts_with([':', '=']) && secret::is_likely(name) {
            let value = rest[1..].trim_start();
            let from = text.len() - value.len();
            let is_key = text[at..].starts_with('"');
            let length = if !is_key && is_within_text(&text[..begin]) {
                // In a list of words the value may be the next one.
                quote(value).filter(|end| *end > 0)
            } else {
                value_length(value, is_key)
            };
            return Some((from, from + length.unwrap_or(value.len())));
        }
    }
    None
}

/// Where the next quote is that is not escaped.
fn quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let found = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        found
    })
}

/// Whether what follows is inside of quotes.
fn is_within_text(mut before: &str) -> bool {
    let mut within = false;
    while let Some(at) = quote(before) {
        within = !within;
        before = &before[at + 1..];
    }
    within
}

/// How long a value is; unknown if it does not end on this line, or not for sure.
fn value_length(value: &str, json: bool) -> Option<usize> {
    if value.starts_with("\"\"\"") || value.starts_with("'''") {
        return None;
    }
    match value.as_bytes().first()? {
        b'"' => quote(&value[1..]).map(|end| end + 2),
        b'\'' => value[1..].find('\'').map(|end| end + 2),
        b'{' | b'[' if json => bracketed(value),
        _ if json => value.find([',', '}', ']']),
        _ => None,
    }
}

/// How long a value in brackets is.
fn bracketed(value: &str) -> Option<usize> {
    let (mut depth, mut inside, mut escaped) = (0_usize, false, false);
    for (at, character) in value.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            '\'' if !inside => return None,
            '{' | '[' if !inside => depth += 1,
            '}' | ']' if !inside => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_shown_with_what_is_around_it() {
        let from = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let to = "1\n2\n3\n4\nfive\n6\n7\n8\n9\nten\n";
        let text = render(from, to, &Console::plain(None));
        assert_eq!(text, "  …\n  3\n  4\n- 5\n+ five\n  6\n  7\n  8\n  9\n+ ten\n");
        assert_eq!(render(from, from, &Console::plain(None)), "");
        assert!(render("a", "a\n", &Console::plain(None)).contains("only the end"));
        assert_eq!(render("", "a\nb\n", &Console::plain(None)), "+ a\n+ b\n");
    }

    #[test]
    fn neither_secrets_nor_escapes_nor_endless_lines_are_shown() {
        let from = format!("  \"API_KEY\": \"hunter2\",\n\u{1b}[2J{}\n", "x".repeat(1_000));
        let text = render(&from, &format!("{from}new\n"), &Console::plain(None));
        assert!(!text.contains("hunter2") && !text.contains('\u{1b}') && text.len() < 500, "{text}");
        assert!(text.contains("\"API_KEY\": (not shown),\n") && text.contains("+ new"), "{text}");
    }

    #[test]
    fn only_the_value_of_a_secret_is_hidden() {
        for (line, shown) in [
            ("env = { A = 1, MY_TOKEN = \"hunter2\" }", "env = { A = 1, MY_TOKEN = (not shown) }"),
            (r#"{"API_KEY":"hun\"ter2","a":1}"#, r#"{"API_KEY":(not shown),"a":1}"#),
            (r#"{"API_KEY": "", "a": 1}"#, r#"{"API_KEY": (not shown), "a": 1}"#),
            (
                r#"{"password":5,"secrets":{"a":["}hunter2"]},"a":1}"#,
                r#"{"password":(not shown),"secrets":(not shown),"a":1}"#,
            ),
            (r#"["Authorization: Bearer hunter2, ä", "x"]"#, r#"["Authorization: (not shown)", "x"]"#),
            (r#"["x -d {\"token\": \"hunter2\"}", 1]"#, r#"["x -d {\"token\": (not shown)", 1]"#),
            (r#"["Authorization:", "Bearer hunter2"]"#, r#"["Authorization:(not shown)"#),
            ("MY_TOKEN = \"\"\"hunter2", "MY_TOKEN = (not shown)"),
            ("MY_TOKEN = 'hunter2' # why", "MY_TOKEN = (not shown) # why"),
            ("MY_TOKEN = ['a]', 'hunter2']", "MY_TOKEN = (not shown)"),
            ("\"API_KEY\": \"hunter2", "\"API_KEY\": (not shown)"),
            ("export PASSWORD=hunter2 hunter2", "export PASSWORD=(not shown)"),
            ("\"max_tokens\": 5", "\"max_tokens\": 5"),
        ] {
            assert_eq!(shown_line(line), shown, "{line}");
        }
    }

    #[test]
    fn of_a_long_line_the_stretch_that_changes_is_shown() {
        let from = format!("{{\"env\":{{\"API_KEY\":\"hunter2\"}},\"x\":\"{}\"}}", "ä".repeat(1_000));
        let to =
            format!("{}, \"hooks\": \"{} hook claude Stop\"}}", &from[..from.len() - 1], "h".repeat(300));
        let text = render(&from, &to, &Console::plain(None));
        let (old, new) = text.split_once('\n').unwrap();
        assert_eq!(old, format!("- …{}\"}}", "ä".repeat(39)));
        assert!(new.starts_with("+ …ää") && new.ends_with("h hook claude Stop\"}\n"), "{new}");
        let short = "{\"API_KEY\":\"hunter2\"}";
        let text = render(short, "{\"API_KEY\":\"hunter2\", \"a\": 1}", &Console::plain(None));
        assert_eq!(text, "- {\"API_KEY\":(not shown)}\n+ {\"API_KEY\":(not shown), \"a\": 1}\n");
        assert!(render("", &"x".repeat(100_000), &Console::plain(None)).len() < 3_000);
    }
}
