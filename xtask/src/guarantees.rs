//! The lists of tests in `docs/guarantees.md`, made of the tests that there are. The words around them are written by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

use crate::step;

/// Names of tests by the number of their promise.
type Tests = BTreeMap<u32, BTreeSet<String>>;

/// Writes the lists anew.
pub(crate) fn write() -> Result<()> {
    let root = step::root();
    let mut tests = Tests::new();
    collect(&root.join("crates"), &mut tests)?;
    let path = root.join("docs/guarantees.md");
    let text = std::fs::read_to_string(&path).context("docs/guarantees.md could not be read")?;
    std::fs::write(&path, renewed(&text, &tests)).context("docs/guarantees.md could not be written")
}

fn collect(folder: &Path, tests: &mut Tests) -> Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("{} could not be read", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, tests)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
            for (number, name) in text.split("fn p").skip(1).filter_map(test_name) {
                tests.entry(number).or_default().insert(name);
            }
        }
    }
    Ok(())
}

/// `8_stop_stops() {…` is the test `p8_stop_stops`.
fn test_name(rest: &str) -> Option<(u32, String)> {
    let name = rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next()?;
    let (number, _) = name.split_once('_')?;
    Some((number.parse().ok()?, format!("p{name}")))
}

/// The same text, with the list of each promise replaced.
fn renewed(text: &str, tests: &Tests) -> String {
    let mut lines = Vec::new();
    let mut promise = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("## P") {
            promise = rest.split(':').next().and_then(|number| number.parse().ok());
        }
        if line.starts_with("- `p") {
            continue;
        }
        lines.push(line.to_owned());
        if line == "Tests:" {
            let found = promise.and_then(|number: u32| tests.get(&number)).into_iter().flatten();
            lines.push(String::new());
            lines.extend(found.map(|name| format!("- `{name}`")));
        }
    }
    // Where a list was, the empty lines before and after it have met.
    lines.dedup_by(|later, earlier| later.is_empty() && earlier.is_empty());
    let mut text = lines.join("\n");
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_follow_the_tests_and_the_words_stay() {
        let tests = Tests::from([(1, BTreeSet::from(["p1_b".to_owned(), "p1_a".to_owned()]))]);
        let text =
            "# G\n\n## P1: One\n\nWords.\n\nTests:\n\n- `p1_gone`\n\n## P2: Two\n\nTests:\n\n- `p2_gone`\n";
        let expected =
            "# G\n\n## P1: One\n\nWords.\n\nTests:\n\n- `p1_a`\n- `p1_b`\n\n## P2: Two\n\nTests:\n";
        assert_eq!(renewed(text, &tests), expected);
        assert_eq!(renewed(expected, &tests), expected);
    }

    #[test]
    fn a_test_is_known_by_its_name() {
        assert_eq!(test_name("8_stop_stops() {"), Some((8, "p8_stop_stops".to_owned())));
        assert_eq!(test_name("ause() {"), None);
    }
}
