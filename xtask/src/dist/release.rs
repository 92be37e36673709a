//! Which release it is: the version, and the moment that every file bears.
//!
//! A commit that is tagged `vVERSION` is that version. Every other one comes before it, in the order of time, so that a package of today replaces
//! one of yesterday and is replaced by the release.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::program;

/// What the workspace says.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A release, or what comes before one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// `0.1.0`, or `0.1.0~git20261116052932.899168a`.
    pub(crate) version: String,
    /// Seconds since 1970: SOURCE_DATE_EPOCH if that is set, otherwise the time of the last commit.
    pub(crate) epoch: u64,
    /// The same, as Debian's changelogs have it.
    pub(crate) date: String,
    /// The commit, in full.
    pub(crate) commit: String,
    /// Whether files differ from that commit.
    pub(crate) changed: bool,
}

impl Release {
    /// Asks git.
    pub(crate) fn of(root: &Path) -> Result<Release> {
        let git = |words: &[&str]| {
            program::says(
                Command::new("git").args(words).current_dir(root).env("TZ", "UTC").env("LC_ALL", "C"),
            )
        };
        let given = program::variable("SOURCE_DATE_EPOCH");
        let epoch = match given {
            Some(epoch) => epoch,
            None => git(&["log", "-1", "--format=%ct"])
                .context("without git, SOURCE_DATE_EPOCH has to say of which time the release is")?,
        };
        let Ok(epoch) = epoch.parse() else { bail!("SOURCE_DATE_EPOCH is no number: {epoch}") };
        let changed = !git(&["status", "--porcelain"])?.is_empty();
        let tags = git(&["tag", "--points-at", "HEAD"])?;
        let time = git(&["log", "-1", "--format=%cd", "--date=format-local:%Y%m%d%H%M%S"])?;
        let commit = git(&["rev-parse", "HEAD"])?;
        let short = git(&["rev-parse", "--short=7", "HEAD"])?;
        let date = program::says(
            Command::new("date").args(["-u", "-R", "-d", &format!("@{epoch}")]).env("LC_ALL", "C"),
        )?;
        Ok(Release { version: version(&tags, &time, &short, changed), epoch, date, commit, changed })
    }

    /// As Debian counts: the first package of it.
    pub(crate) fn debian(&self) -> String {
        format!("{}-1", self.version)
    }
}

fn version(tags: &str, time: &str, commit: &str, changed: bool) -> String {
    let released = tags.lines().any(|tag| tag.strip_prefix('v') == Some(VERSION));
    match (released, changed) {
        (true, false) => VERSION.to_owned(),
        (_, false) => format!("{VERSION}~git{time}.{commit}"),
        (_, true) => format!("{VERSION}~git{time}.{commit}.changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tagged_commit_is_the_release() {
        let tag = format!("other\nv{VERSION}\n");
        assert_eq!(version(&tag, "20261116052932", "899168a", false), VERSION);
        assert_eq!(
            version("", "20261116052932", "899168a", false),
            format!("{VERSION}~git20261116052932.899168a")
        );
        assert_eq!(version(&tag, "1", "a", true), format!("{VERSION}~git1.a.changed"));
    }
}
