//! What changes in a file, line by line, as `diff -u` shows it. Lines that may hold a secret of somebody else's are named, not shown.

use homing_model::sanitize::line as safe;
use homing_model::secret;

use crate::console::{Console, Tint};

/// Lines around a change.
const AROUND: usize = 2;
/// The longest line that is shown, in characters.
const LONGEST: usize = 160;
/// Beyond so many lines on either side they are not matched with each other.
const MATCHED: usize = 2_000;

/// One line, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// The changes, in colour where that is shown.
pub(super) fn render(from: &str, to: &str, console: &Console) -> String {
    let steps = steps(&from.lines().collect::<Vec<_>>(), &to.lines().collect::<Vec<_>>());
    let changes = |step: &Step<'_>| !matches!(step, Step::Same(_));
    let mut out = String::new();
    let mut shown = 0;
    for (index, step) in steps.iter().enumerate() {
        let near = steps.iter().skip(index.saturating_sub(AROUND)).take(AROUND + index.min(AROUND) + 1);
        if !near.into_iter().any(changes) {
            continue;
        }
        if index > shown {
            out.push_str(&console.tint(Tint::Dim, "  …\n"));
        }
        shown = index + 1;
        out.push_str(&match step {
            Step::Same(text) => format!("  {}\n", shown_line(text)),
            Step::Gone(text) => console.tint(Tint::Red, &format!("- {}\n", shown_line(text))),
            Step::New(text) => console.tint(Tint::Green, &format!("+ {}\n", shown_line(text))),
        });
    }
    if from.lines().eq(to.lines()) && from != to {
        out.push_str(&console.tint(Tint::Dim, "  (only the end of the last line changes)\n"));
    }
    out
}

/// A line as it may be shown.
fn shown_line(text: &str) -> String {
    let (text, end) = match secret_at(text) {
        Some(at) => (&text[..at], " (not shown)"),
        None => (text, ""),
    };
    let blank = text.len() - text.trim_start().len();
    let indented = format!("{}{}", text[..blank].replace('\t', "    "), safe(&text[blank..]));
    match indented.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &indented[..at]),
        None => indented + end,
    }
}

/// The end of the first name in a line that something follows which may be a secret.
fn secret_at(text: &str) -> Option<usize> {
    let is_name = |character: char| character.is_alphanumeric() || "_-.".contains(character);
    let mut at = 0;
    while let Some(begin) = text[at..].find(is_name).map(|found| at + found) {
        let name = text[begin..].split(|character| !is_name(character)).next().unwrap_or_default();
        at = begin + name.len();
        let value = text[at..].trim_start_matches(['"', '\'', ' ']);
        if value.starts_with([':', '=']) && secret::is_likely(name) {
            return Some(at);
        }
    }
    None
}

/// From one to the other, with as much in common as can be.
fn steps<'a>(from: &[&'a str], to: &[&'a str]) -> Vec<Step<'a>> {
    let head = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let (from_rest, to_rest) = (&from[head..], &to[head..]);
    let tail = from_rest.iter().rev().zip(to_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&from_rest[..from_rest.len() - tail], &to_rest[..to_rest.len() - tail]);
    let same = |lines: &[&'a str]| lines.iter().copied().map(Step::Same).collect::<Vec<_>>();
    let mut out = same(&from[..head]);
    out.extend(middle(old, new));
    out.extend(same(&from_rest[from_rest.len() - tail..]));
    out
}

/// The longest common subsequence, by its table.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Step<'a>> {
    if old.len() > MATCHED || new.len() > MATCHED {
        return old.iter().copied().map(Step::Gone).chain(new.iter().copied().map(Step::New)).collect();
    }
    let width = new.len() + 1;
    let mut common = vec![0_u16; (old.len() + 1) * width];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            common[i * width + j] = if a == b {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push(Step::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            out.push(Step::Gone(old[i]));
            i += 1;
        } else {
            out.push(Step::New(new[j]));
            j += 1;
        }
    }
    out
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
        assert!(text.contains("API_KEY (not shown)") && text.contains("+ new"));
        assert_eq!(
            shown_line("env = { A = 1, MY_TOKEN = \"hunter2\" }"),
            "env = { A = 1, MY_TOKEN (not shown)"
        );
    }
}
