//! What Debian's own judge says of the package. An error of his is one here; where he is not installed, that is said.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{step, tools};

/// Asks lintian.
pub(crate) fn check(package: &Path) -> Result<()> {
    if !tools::is_there("lintian") {
        println!("   lintian is missing (package lintian); skipped");
        return Ok(());
    }
    let mut lintian = Command::new("lintian");
    lintian.args(["--fail-on", "error", "--suppress-tags", SUPPRESSED.join(",").as_str()]);
    if tools::is_root() {
        lintian.arg("--allow-root");
    }
    step::run(lintian.arg(package))
}

/// What is for packages in Debian's own archive: a bug that asks for it.
const SUPPRESSED: [&str; 1] = ["initial-upload-closes-no-bugs"];
