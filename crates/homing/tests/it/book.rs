//! The book is true: every sample in README.md and under docs/ is run, in the order of its page, as a reader would type it; every link leads
//! somewhere; what is not run says why, and is listed.
//!
//! How a fence is marked:
//!
//! | opening | what the test does |
//! |---|---|
//! | `sh` | runs it; each line must succeed |
//! | `console` | runs what stands behind `$ ` (lines behind `> ` go on with it) and compares what follows; `…` on a line stands for any lines |
//! | `python NAME`, `ts NAME`, any language and a file's name | writes the file, for the samples after it |
//! | `toml` | must be a sound configuration |
//! | `… needs: PROGRAM` | runs it where the program is, and else says that it was left out |
//! | `… no-run: REASON` | is not run; the list in docs/README.md has it |
//!
//! A page has a machine of its own: an empty folder to stand in, another one as HOME, and so a home where everybody has it. With
//! `HOMING_WRITE_BOOK` set (`cargo xtask record`), what differs is written down as it was printed, and nothing is compared.

mod block;
mod codes;
mod compare;
mod fence;
mod links;
mod page;
mod panel;
mod screen;
mod session;
mod svg;
mod unrun;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is to be written down, and not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// Pages and pictures that differ from what is so.
    Changed,
    /// All of them, with the times and ids of this run.
    All,
}

#[expect(clippy::disallowed_methods, reason = "xtask says by a variable that the book is to be written")]
fn writing() -> Option<Writing> {
    let word = std::env::var_os("HOMING_WRITE_BOOK")?;
    Some(if word == "all" { Writing::All } else { Writing::Changed })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page, by its path below the root.
fn pages() -> BTreeSet<String> {
    let mut found = BTreeSet::from(["README.md".to_owned()]);
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.insert(path.strip_prefix(root()).expect("a folder").display().to_string());
            }
        }
    }
    found
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Whether a picture says what is so; while pictures are drawn, whatever is so will do.
fn fits(path: &str, is: &str) -> bool {
    let shown = svg::text(&std::fs::read_to_string(root().join(path)).unwrap_or_default());
    writing().is_some() || compare::fits(&shown, is)
}

/// Compares what a picture says with what is so, or draws it anew.
#[track_caller]
fn picture(path: &str, is: &str, draw: impl FnOnce() -> String) {
    let shown = svg::text(&std::fs::read_to_string(root().join(path)).unwrap_or_default());
    if compare::fits(&shown, is) && writing() != Some(Writing::All) {
        return;
    }
    assert!(
        writing().is_some(),
        "{path} shows\n\n{shown}\nbut this is so\n\n{is}\n`cargo xtask record` draws it anew"
    );
    std::fs::write(root().join(path), draw()).expect("a file");
}

/// One test for each page that has something to run.
macro_rules! runs {
    ($($name:ident: $path:literal,)+) => {
        mod the_samples_run_in {
            $(
                #[test]
                fn $name() {
                    super::page::check($path);
                }
            )+
        }

        const RUN: &[&str] = &[$($path),+];
    };
}

runs! {
    the_readme: "README.md",
    the_tour: "docs/tour.md",
    howto_agent: "docs/howto/agent.md",
    howto_api: "docs/howto/api.md",
    howto_build: "docs/howto/build.md",
    howto_schedule: "docs/howto/schedule.md",
    howto_script: "docs/howto/script.md",
    howto_server: "docs/howto/server.md",
    howto_ssh: "docs/howto/ssh.md",
    howto_webhook: "docs/howto/webhook.md",
    agents_gemini: "docs/agents/gemini.md",
    agents_qwen: "docs/agents/qwen.md",
    ask: "docs/ask.md",
    config: "docs/config.md",
    harness: "docs/harness.md",
    home: "docs/home.md",
    http: "docs/http.md",
    install: "docs/install.md",
    metrics: "docs/metrics.md",
    notices: "docs/notices.md",
    service: "docs/service.md",
    troubleshooting: "docs/troubleshooting.md",
    wakes: "docs/wakes.md",
}

#[test]
fn every_page_with_samples_has_its_test() {
    let with_samples = |page: &String| fence::all(&read(page)).iter().any(|fence| page::is_run(page, fence));
    let expected: BTreeSet<_> = pages().into_iter().filter(with_samples).collect();
    let tested: BTreeSet<_> = RUN.iter().map(|page| (*page).to_owned()).collect();
    assert_eq!(tested, expected, "`runs!` in book.rs lists the pages that have something to run");
}
