//! No other crate names an agent: what depends on one is here.

use std::path::{Path, PathBuf};

use homing_agents::registry;

/// Lines that may: examples in help texts and in the manual of the configuration, which have to name an agent that there is, and a tag
/// that one of them frames its own messages with.
const ALLOWED: [&str; 8] = [
    "homing hook claude ",
    "homing install claude ",
    "homing install codex ",
    "homing ask --wait --agent codex ",
    " mcp add homing -- homing mcp",
    "\"\\\"claude\\\"\"",
    "\"codex-internal-context\"",
    "written by `homing install codex`",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        // Suites and laws are tests that live beside the code.
        if path.is_dir() && !path.ends_with("conformance") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
            && !path.ends_with("laws.rs")
        {
            found.push(path);
        }
    }
}

#[test]
fn no_other_crate_names_an_agent() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates");
    let mut files = Vec::new();
    for other in std::fs::read_dir(crates).expect("the crates").flatten() {
        if other.file_name() != env!("CARGO_PKG_NAME") && other.path().join("src").is_dir() {
            sources(&other.path().join("src"), &mut files);
        }
    }
    assert!(files.len() > 100, "{files:?}");
    let names: Vec<_> = registry::names().collect();
    let mut used = [false; ALLOWED.len()];
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (number, line) in
            code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            let lower = line.to_lowercase();
            if !names.iter().any(|name| lower.contains(name)) {
                continue;
            }
            let allowed = ALLOWED.iter().position(|allowed| line.contains(allowed));
            let allowed = allowed.unwrap_or_else(|| panic!("{}:{}: {line}", file.display(), number + 1));
            used[allowed] = true;
        }
    }
    assert_eq!(used, [true; ALLOWED.len()], "what is not needed is not allowed either");
}
