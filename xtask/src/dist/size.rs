//! How large the release binary may be: `packaging/binary-size`. What makes it larger is decided on, and does not just happen.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Fails beyond the budget.
pub(crate) fn check(root: &Path, binary: &Path) -> Result<()> {
    let path = root.join("packaging/binary-size");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("{} could not be read", path.display()))?;
    let budget = budget(&text).with_context(|| format!("{} has no number", path.display()))?;
    let size = binary.metadata().with_context(|| format!("{} could not be read", binary.display()))?.len();
    println!("   {size} bytes, {}% of the budget", size * 100 / budget);
    ensure!(
        size <= budget,
        "the binary has {size} bytes, {budget} are allowed: find out what made it larger, or decide in packaging/binary-size that it may be"
    );
    Ok(())
}

fn budget(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| !line.is_empty() && !line.starts_with('#'))?;
    line.trim().replace('_', "").parse().ok().filter(|budget| *budget > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_the_first_line_that_is_no_comment() {
        assert_eq!(budget("# why\n\n24_000_000\n"), Some(24_000_000));
        assert_eq!(budget("# why\n"), None);
        assert_eq!(budget("much\n"), None);
    }

    #[test]
    fn what_is_too_large_fails() {
        let scratch = crate::dist::scratch::Scratch::new("size").unwrap();
        std::fs::create_dir(scratch.path().join("packaging")).unwrap();
        std::fs::write(scratch.path().join("packaging/binary-size"), "3\n").unwrap();
        let binary = scratch.path().join("homing");
        std::fs::write(&binary, "abc").unwrap();
        check(scratch.path(), &binary).unwrap();
        std::fs::write(&binary, "abcd").unwrap();
        assert!(check(scratch.path(), &binary).is_err());
    }
}
