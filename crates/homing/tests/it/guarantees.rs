//! docs/guarantees.md: promise, mechanism and tests, complete in both directions.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What there is to promise.
const PROMISES: std::ops::RangeInclusive<u32> = 1..=12;

type Names = BTreeMap<u32, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The number in `p12_…`.
fn promise(name: &str) -> Option<u32> {
    name.strip_prefix('p')?.split_once('_')?.0.parse().ok()
}

/// Every function named after a promise, in every source file of the workspace.
fn written(folder: &Path, names: &mut Names) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            written(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines() {
                let declared = line.trim_start().trim_start_matches("pub ").trim_start_matches("async ");
                let Some(rest) = declared.strip_prefix("fn ") else { continue };
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if let Some(number) = promise(&name) {
                    names.entry(number).or_default().insert(name);
                }
            }
        }
    }
}

/// Every name in backquotes under the heading of its promise.
fn listed(text: &str) -> Names {
    let (mut names, mut current) = (Names::new(), None);
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let word = heading.split([':', ' ']).next().unwrap_or_default();
            current = word.strip_prefix('P').and_then(|number| number.parse().ok());
        }
        for name in line.split('`').skip(1).step_by(2).filter(|name| promise(name).is_some()) {
            // `p8_` alone is a filter for the reader, no test.
            if name.ends_with('_') {
                continue;
            }
            assert_eq!(promise(name), current, "`{name}` is under another promise");
            names.entry(promise(name).unwrap()).or_default().insert(name.to_owned());
        }
    }
    names
}

#[test]
fn the_map_of_guarantees_is_complete_in_both_directions() {
    let mut written_names = Names::new();
    written(&root().join("crates"), &mut written_names);
    let text = std::fs::read_to_string(root().join("docs/guarantees.md")).expect("docs/guarantees.md");
    let listed_names = listed(&text);
    let none = BTreeSet::new();
    for number in PROMISES {
        let (written, listed) =
            (written_names.get(&number).unwrap_or(&none), listed_names.get(&number).unwrap_or(&none));
        let unlisted: Vec<_> = written.difference(listed).collect();
        let missing: Vec<_> = listed.difference(written).collect();
        assert!(unlisted.is_empty(), "docs/guarantees.md lacks under P{number}: {unlisted:#?}");
        assert!(
            missing.is_empty(),
            "docs/guarantees.md names under P{number} tests that are not there: {missing:#?}"
        );
        assert!(!written.is_empty(), "no test proves P{number}");
    }
    let numbers: BTreeSet<_> = written_names.keys().chain(listed_names.keys()).collect();
    assert!(numbers.iter().all(|number| PROMISES.contains(number)), "there is no such promise: {numbers:?}");
}
