//! What is printed, beside what a page shows: the same, but for what differs from one run to the next.

use std::sync::LazyLock;

use regex::Regex;

/// What differs, and what stands for it.
static CHANGING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\b([tnd])-[a-z0-9]{10}\b", "$1-ID"),
        (r"\bmsg_[A-Za-z0-9]+", "msg_ID"),
        (r"\b(pid|keeper|port|seq)(\D{1,3})\d+", "$1$2 N"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"\b\d+(\.\d+)? ?(ms|s|m|h|d)\b", "D"),
        (r"\b(D )+D\b", "D"),
        (r"\b\d+(\.\d+)? (B|KiB|MiB|GiB)\b", "SIZE"),
        (r"-{4,}", "----"),
        (r"\s+", " "),
    ];
    rules.map(|(rule, stands)| (Regex::new(rule).expect("a rule"), stands)).into()
});

/// A line without what differs from one run to the next.
pub(super) fn redacted(line: &str) -> String {
    let mut line = line.to_owned();
    for (rule, stands) in CHANGING.iter() {
        line = rule.replace_all(&line, *stands).into_owned();
    }
    line.trim().to_owned()
}

/// Whether the lines are those that are shown, where `…` alone stands for any.
pub(super) fn fits(shown: &str, printed: &str) -> bool {
    let shown: Vec<_> = shown.lines().map(redacted).collect();
    let printed: Vec<_> = printed.lines().map(redacted).collect();
    matches(&shown, &printed)
}

fn matches(shown: &[String], printed: &[String]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "…" => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        (Some((first, rest)), Some((line, lines))) => first == line && matches(rest, lines),
        _ => false,
    }
}

#[test]
fn only_what_differs_from_run_to_run_may_differ() {
    assert!(fits("t-wmqwr3br6h failed, exit 7 after 5.0s", "t-0000000000 failed, exit 7 after 812ms"));
    assert!(!fits("t-wmqwr3br6h failed, exit 7 after 5.0s", "t-0000000000 failed, exit 8 after 5.0s"));
    assert!(fits("daemon      pid 422, keeper 32643", "daemon  pid 1, keeper 2"));
    assert!(fits("a\n…\nz", "a\nb\nc\nz") && fits("a\n…", "a") && !fits("a\n…\nz", "a\nb"));
    assert!(!fits("a", "a\nb"));
}
