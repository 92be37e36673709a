//! How many columns of a terminal a text takes, and cutting it to fit.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether what is cut must be marked by what every terminal shows. There is one terminal, so there is one such mark.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// From now on, marks what is cut by `~`: symbols beyond ASCII cannot be expected to show.
pub(crate) fn mark_plainly() {
    PLAIN.store(true, Ordering::Relaxed);
}

/// Characters that take two columns: East Asian wide ones and emoji.
const WIDE: &[(u32, u32)] = &[
    (0x1100, 0x115f),
    (0x231a, 0x231b),
    (0x2329, 0x232a),
    (0x23e9, 0x23ec),
    (0x25fd, 0x25fe),
    (0x2614, 0x2615),
    (0x2e80, 0x303e),
    (0x3041, 0x33ff),
    (0x3400, 0x4dbf),
    (0x4e00, 0x9fff),
    (0xa000, 0xa4cf),
    (0xa960, 0xa97f),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe30, 0xfe6f),
    (0xff01, 0xff60),
    (0xffe0, 0xffe6),
    (0x1_f300, 0x1_f64f),
    (0x1_f680, 0x1_f6ff),
    (0x1_f900, 0x1_f9ff),
    (0x2_0000, 0x3_fffd),
];

/// Characters that take none: marks that sit on the one before.
const ZERO: &[(u32, u32)] = &[
    (0x0300, 0x036f),
    (0x0483, 0x0489),
    (0x0591, 0x05bd),
    (0x064b, 0x065f),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x200b, 0x200f),
    (0x20d0, 0x20ff),
    (0xfe00, 0xfe0f),
    (0xfe20, 0xfe2f),
];

fn within(ranges: &[(u32, u32)], c: char) -> bool {
    let c = u32::from(c);
    ranges
        .binary_search_by(|(from, to)| {
            if *to < c {
                std::cmp::Ordering::Less
            } else if *from > c {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Equal
            }
        })
        .is_ok()
}

fn of_char(c: char) -> usize {
    match c {
        ' '..='~' => 1,
        _ if within(ZERO, c) => 0,
        _ if within(WIDE, c) => 2,
        _ => 1,
    }
}

/// The columns that a text takes.
pub(crate) fn of(text: &str) -> usize {
    text.chars().map(of_char).sum()
}

/// The text, cut to a number of columns; what was cut shows as `…`, or as `~` where that does not show.
pub(crate) fn fit(text: &str, limit: usize) -> String {
    if of(text) <= limit {
        return text.to_owned();
    }
    let Some(room) = limit.checked_sub(1) else { return String::new() };
    let mut used = 0;
    let mut out: String = text
        .chars()
        .take_while(|c| {
            used += of_char(*c);
            used <= room
        })
        .collect();
    out.push(if PLAIN.load(Ordering::Relaxed) { '~' } else { '…' });
    out
}

/// Three parts on a line, the middle of it cut to fit; where that is not enough, the line is.
pub(crate) fn squeeze(before: &str, middle: &str, after: &str, limit: usize) -> String {
    let room = limit.saturating_sub(of(before) + of(after));
    fit(&format!("{before}{}{after}", fit(middle, room)), limit)
}

/// The text on as many lines as it takes, broken between words; one that is longer than a line goes on in the next.
pub(crate) fn wrap(text: &str, limit: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if of(line).saturating_add(1 + of(word)) <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.extend(broken(word, limit)),
        }
    }
    lines
}

/// The text on as many lines as it takes, each but the first further in by some columns. It is broken between words only, and not within
/// backticks: what is longer than a line is left to the terminal, so that it can be copied. Colours take no columns.
pub(crate) fn flow(text: &str, limit: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for word in unbroken(text) {
        let wide = of(&homing_model::sanitize::line(&word));
        match lines.last_mut() {
            Some(line) if used + 1 + wide <= limit => {
                line.push(' ');
                line.push_str(&word);
                used += 1 + wide;
            }
            Some(_) => {
                lines.push(format!("{}{word}", " ".repeat(indent)));
                used = indent + wide;
            }
            None => {
                lines.push(word);
                used = wide;
            }
        }
    }
    lines
}

/// The lines of a text, broken between words; what is broken continues two columns further in.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len() + 2;
    text.lines().flat_map(|line| flow(line, width, indent(line))).collect()
}

/// Words, with what stands in backticks as one.
fn unbroken(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut within = false;
    for word in text.split(' ') {
        match words.last_mut() {
            Some(last) if within => {
                last.push(' ');
                last.push_str(word);
            }
            Some(_) | None => words.push(word.to_owned()),
        }
        within ^= word.matches('`').count() % 2 == 1;
    }
    words
}

/// A word in pieces that fit; each has a character at least.
fn broken(word: &str, limit: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in word.chars() {
        used += of_char(c);
        match pieces.last_mut() {
            Some(piece) if used <= limit || piece.is_empty() => piece.push(c),
            Some(_) | None => {
                pieces.push(c.to_string());
                used = of_char(c);
            }
        }
    }
    pieces
}

/// The text, with spaces up to a number of columns.
pub(crate) fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(of(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_combining_characters_are_counted_as_shown() {
        assert_eq!(of("abc"), 3);
        assert_eq!(of("日本"), 4);
        assert_eq!(of("e\u{301}"), 1);
        assert_eq!(of("🚀"), 2);
    }

    #[test]
    fn fitted_text_never_takes_more() {
        for text in ["", "abc", "日本語のテスト", "a日b本c", "plain and long enough"] {
            for limit in 0..12 {
                assert!(of(&fit(text, limit)) <= limit, "{text} {limit}");
            }
        }
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(pad("日", 4), "日  ");
    }

    #[test]
    fn only_the_middle_is_cut_while_that_is_enough() {
        assert_eq!(squeeze("id  ", "a long command", "  (1m ago)", 40), "id  a long command  (1m ago)");
        assert_eq!(squeeze("id  ", "a long command", "  (1m ago)", 20), "id  a lon…  (1m ago)");
        assert_eq!(squeeze("id  ", "a long command", "  (1m ago)", 8), "id    (…");
    }

    #[test]
    fn wrapped_text_is_all_there_and_never_takes_more() {
        for text in ["", "a b", "a  b", "日本語のテスト and more", "a-word-that-is-longer-than-a-line b"]
        {
            for limit in 2..40 {
                let lines = wrap(text, limit);
                assert!(lines.iter().all(|line| of(line) <= limit), "{lines:?} {limit}");
                let squashed = |text: &str| text.replace(' ', "");
                assert_eq!(squashed(&lines.concat()), squashed(text));
            }
            assert_eq!(wrap(text, usize::MAX), [text]);
            assert!(wrap(text, 0).len() <= text.chars().count().max(1), "it ends");
        }
        assert_eq!(wrap("aaaa b c", 3), ["aaa", "a b", "c"]);
    }

    #[test]
    fn what_flows_is_broken_between_words_and_never_within_a_command() {
        let text = "\x1b[31mhoming:\x1b[0m there is none; `homing list --all` shows them";
        assert_eq!(
            flow(text, 24, 2),
            ["\x1b[31mhoming:\x1b[0m there is none;", "  `homing list --all`", "  shows them"]
        );
        assert_eq!(
            flow("see https://a.example/very/long more", 12, 0),
            ["see", "https://a.example/very/long", "more"]
        );
        assert_eq!(flow("an odd ` there is", 8, 0).join(" "), "an odd ` there is");
        assert_eq!(flow("  next: a", 80, 8), ["  next: a"], "spaces stay");
        assert_eq!(flow("", 80, 2), [""]);
    }

    #[test]
    fn the_tables_are_in_order() {
        for table in [WIDE, ZERO] {
            assert!(table.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
