//! The pages of the manual, `docs/man/*.1`: made of the same grammar as the help, so that they say the same.
//!
//! The program itself has no part in it, only its tests: `cargo xtask generate` runs this one with `HOMING_WRITE_MAN` set, and then it writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cli::completion;

/// Says that the pages are to be written, and not compared.
const WRITE: &str = "HOMING_WRITE_MAN";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man")
}

/// The pages in a folder, by their names.
fn pages(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    named.map(|(name, path)| (name, std::fs::read_to_string(path).unwrap_or_default())).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "xtask says by a variable that the pages are to be written")]
fn the_pages_say_what_the_help_says() {
    let fresh = tempfile::tempdir().unwrap();
    clap_mangen::generate_to(completion::grammar(), fresh.path()).unwrap();
    let fresh = pages(fresh.path());
    assert!(fresh.contains_key("homing.1") && fresh.contains_key("homing-daemon-start.1"));
    assert!(fresh["homing-run.1"].contains("homing run"));
    if std::env::var_os(WRITE).is_some() {
        let _ = std::fs::remove_dir_all(folder());
        std::fs::create_dir_all(folder()).unwrap();
        for (name, page) in &fresh {
            std::fs::write(folder().join(name), page).unwrap();
        }
    }
    let kept = pages(&folder());
    let all: std::collections::BTreeSet<_> = fresh.keys().chain(kept.keys()).collect();
    let stale: Vec<_> = all.into_iter().filter(|name| fresh.get(*name) != kept.get(*name)).collect();
    assert!(stale.is_empty(), "out of date in docs/man/: {stale:?}; `cargo xtask generate` writes them anew");
}
