//! What `cargo xtask dist` can be told.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

/// How it is called.
pub(crate) const USAGE: &str =
    "cargo xtask dist [--binary PATH | [--without-advisories] [--check-reproducible [--in FOLDER]]]";

/// The options.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Pack this program, instead of building one.
    pub(crate) binary: Option<PathBuf>,
    /// Build everything once more, elsewhere, and compare.
    pub(crate) check_reproducible: bool,
    /// Do so in this folder, and leave there what was built.
    pub(crate) second: Option<PathBuf>,
    /// Do not check the advisories: for a build that is not released.
    pub(crate) without_advisories: bool,
}

impl Options {
    /// The folder in `target/dist` for what is made: `out` has nothing that must not be released.
    pub(crate) const fn folder(&self) -> &'static str {
        match self {
            Self { binary: Some(_), .. } => "given",
            Self { without_advisories: true, .. } => "unchecked",
            Self { .. } => "out",
        }
    }

    /// Reads them.
    pub(crate) fn read(arguments: &[String]) -> Result<Options> {
        let mut options = Options::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--binary" => {
                    options.binary = Some(arguments.next().context("--binary needs a path")?.into());
                }
                "--in" => options.second = Some(arguments.next().context("--in needs a folder")?.into()),
                "--without-advisories" => options.without_advisories = true,
                "--check-reproducible" => options.check_reproducible = true,
                _ => bail!("`{argument}` is not understood\nUsage: {USAGE}"),
            }
        }
        ensure!(
            options.binary.is_none() || !options.check_reproducible,
            "a program that is given is not built, so there is nothing to compare\nUsage: {USAGE}"
        );
        ensure!(
            options.second.is_none() || options.check_reproducible,
            "--in says where the second build is, which --check-reproducible asks for\nUsage: {USAGE}"
        );
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_done_is_refused() {
        let read =
            |words: &[&str]| Options::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&[]).unwrap(), Options::default());
        assert_eq!(read(&["--binary", "a"]).unwrap().binary, Some("a".into()));
        assert!(read(&["--check-reproducible"]).unwrap().check_reproducible);
        assert!(!read(&[]).unwrap().without_advisories, "a release is checked unless the caller declines");
        assert!(read(&["--without-advisories"]).unwrap().without_advisories);
        assert_eq!(read(&[]).unwrap().folder(), "out");
        assert_eq!(
            read(&["--without-advisories"]).unwrap().folder(),
            "unchecked",
            "never among what is released"
        );
        assert_eq!(read(&["--binary", "homing"]).unwrap().folder(), "given");
        assert!(read(&["--binary"]).is_err() && read(&["--fast"]).is_err());
        assert!(read(&["--binary", "a", "--check-reproducible"]).is_err());
        assert_eq!(read(&["--check-reproducible", "--in", "b"]).unwrap().second, Some("b".into()));
        assert!(read(&["--in", "b"]).is_err() && read(&["--check-reproducible", "--in"]).is_err());
    }
}
