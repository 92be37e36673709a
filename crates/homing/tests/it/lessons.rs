//! docs/lessons.md: every lesson once, and every test that is named there exists.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How many lessons there are.
const LESSONS: u32 = 74;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/lessons.md")).expect("docs/lessons.md")
}

/// The names of all functions in the workspace; tests of the store's suite are functions without an attribute.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            functions(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for rest in text.split("fn ").skip(1) {
                names.insert(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
            }
        }
    }
}

/// The cells of every row that begins with a number.
fn rows(page: &str) -> Vec<(u32, Vec<&str>)> {
    let cells =
        |line| str::split(line, '|').map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>();
    let rows = page.lines().filter(|line| line.starts_with('|')).map(cells);
    rows.filter_map(|cells| Some((cells.first()?.parse().ok()?, cells))).collect()
}

#[test]
fn every_lesson_is_there_once_and_every_test_that_is_named_exists() {
    let page = page();
    let rows = rows(&page);
    let numbers: Vec<u32> = rows.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=LESSONS).collect::<Vec<_>>());
    for (number, cells) in &rows {
        assert_eq!(cells.len(), 3, "lesson {number} has a number, a lesson, and what shows it");
        let shown = cells[2];
        let honest = ["`", "TODO(", "Not yet", "Does not apply"].iter().any(|word| shown.contains(word));
        assert!(honest, "lesson {number} names neither a test nor a reason");
    }
    let mut known = BTreeSet::new();
    functions(&root().join("crates"), &mut known);
    let is_test = |name: &&str| name.matches('_').count() > 2 && !name.contains(['/', '.', ' ', '-']);
    let named = page.split('`').skip(1).step_by(2).filter(is_test);
    let missing: Vec<_> = named.filter(|name| !known.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/lessons.md names tests that are not there: {missing:#?}");
}

#[test]
#[ignore = "until watches, external tasks, operator policy and the long proofs are merged"]
fn no_lesson_waits_for_its_test() {
    let page = page();
    let waiting: Vec<_> = page.lines().filter(|line| line.contains("TODO(")).collect();
    assert!(waiting.is_empty(), "{waiting:#?}");
}
