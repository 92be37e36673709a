//! `cargo xtask record`: what the samples of the book print, as it was printed.
//!
//! The test of the book runs every sample and compares what a page shows with what came. Told so by a variable, it writes down the pages
//! on which something differs, from top to bottom, and draws the pictures anew. Where all is as before, no byte changes.

use std::process::ExitCode;

use anyhow::Result;

use crate::step;

/// Arguments name pages, as the tests are called; without any it is the whole book. With `--all`, also pages on which nothing but times and ids
/// would change.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    step::timed("record", || {
        let (all, names): (Vec<_>, Vec<_>) = arguments.iter().partition(|word| *word == "--all");
        let what = if all.is_empty() { "changed" } else { "all" };
        let mut book = step::cargo(&["test", "-q", "-p", "homing", "--test", "it", "--"]);
        if names.is_empty() {
            book.arg("book::");
        }
        step::run(book.args(names).env("HOMING_WRITE_BOOK", what))
    })?;
    Ok(ExitCode::SUCCESS)
}
