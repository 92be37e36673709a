//! The release binary, made so that the same sources make the same bytes wherever they lie.
//!
//! Paths of the machine that builds get into a binary by the places that panics and assertions name. They are written as they would be below
//! `/usr/src`; what is found of them afterwards, by a search of the whole binary, is an error. The same toolchain (rustc and C compiler) is needed: a
//! compiler of another version makes another binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::program;
use super::release::Release;
use crate::step;

/// The folders of this machine that the compilers see, and what they are called instead.
#[derive(Debug)]
struct Paths {
    renamed: Vec<(String, String)>,
}

impl Paths {
    fn of(root: &Path) -> Result<Paths> {
        let rustc = |words: &[&str]| program::says(Command::new("rustc").args(words).current_dir(root));
        let about = rustc(&["-vV"])?;
        let commit = about.lines().find_map(|line| line.strip_prefix("commit-hash: "));
        let cargo = cargo_home()?;
        let mut renamed =
            vec![(plain(root)?, "/usr/src/homing".to_owned()), (plain(&cargo)?, "/usr/src/cargo".to_owned())];
        // Each registry has a folder, named after it by a hash; what a crate is called does not depend on it.
        let mut registries = Vec::new();
        if let Ok(entries) = std::fs::read_dir(cargo.join("registry/src")) {
            for entry in entries {
                registries.push(plain(&entry?.path())?);
            }
        }
        registries.sort();
        renamed.extend(registries.into_iter().map(|registry| (registry, "/usr/src/cargo".to_owned())));
        // Where the sources of the standard library are installed, that is where panics in it are said to be.
        let library = format!("{}/lib/rustlib/src/rust", rustc(&["--print", "sysroot"])?);
        renamed.push((library, format!("/rustc/{}", commit.unwrap_or("unknown"))));
        Ok(Paths { renamed })
    }

    /// The later ones count more, for both compilers.
    fn flags(&self, option: &str) -> Vec<String> {
        self.renamed.iter().map(|(from, to)| format!("{option}={from}={to}")).collect()
    }
}

fn cargo_home() -> Result<PathBuf> {
    if let Some(path) = program::variable("CARGO_HOME") {
        return Ok(path.into());
    }
    let home = program::variable("HOME").context("neither CARGO_HOME nor HOME is set")?;
    Ok(Path::new(&home).join(".cargo"))
}

/// A path that can be handed on in a variable with flags.
fn plain(path: &Path) -> Result<String> {
    let text = path.to_str().filter(|text| !text.contains([' ', '=', '\x1f']));
    Ok(text
        .with_context(|| format!("{} cannot be written into flags of a compiler", path.display()))?
        .to_owned())
}

/// Builds in a folder with the sources, below its own `target`, and looks for paths in what came of it.
pub(crate) fn build(root: &Path, release: &Release) -> Result<PathBuf> {
    // The folders of the registries are there from then on.
    step::run(step::cargo(&["fetch", "--quiet", "--locked"]).current_dir(root))?;
    let paths = Paths::of(root)?;
    let host = super::host()?;
    let target = root.join("target/dist/build");
    let mut cargo =
        step::cargo(&["build", "--release", "--locked", "--package", "homing", "--bin", "homing"]);
    cargo.current_dir(root).arg("--target").arg(&host).arg("--target-dir").arg(&target);
    cargo.env_remove("RUSTFLAGS");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", paths.flags("--remap-path-prefix").join("\x1f"));
    cargo.env("CFLAGS", paths.flags("-ffile-prefix-map").join(" "));
    cargo.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    cargo.envs([("CARGO_INCREMENTAL", "0"), ("LC_ALL", "C"), ("TZ", "UTC")]);
    step::run(&mut cargo)?;
    let binary = target.join(&host).join("release/homing");
    no_paths(&binary, &paths)?;
    Ok(binary)
}

fn no_paths(binary: &Path, paths: &Paths) -> Result<()> {
    let bytes = std::fs::read(binary).with_context(|| format!("{} could not be read", binary.display()))?;
    let home = program::variable("HOME").filter(|home| home.len() > 1);
    let sought = paths.renamed.iter().map(|(from, _)| from.clone()).chain(home);
    let found: Vec<_> = sought.filter(|path| contains(&bytes, &format!("{path}/"))).collect();
    ensure!(found.is_empty(), "the binary names folders of this machine: {found:?}");
    println!("   no folder of this machine is named in it");
    Ok(())
}

fn contains(bytes: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    bytes.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_wherever_it_is() {
        assert!(contains(b"\0panicked at /home/ann/x.rs\0", "/home/ann/"));
        assert!(!contains(b"/home/anna/", "/home/ann/"));
        assert!(!contains(b"", "/home/ann/"));
    }

    #[test]
    fn a_path_that_would_end_a_flag_is_refused() {
        assert_eq!(plain(Path::new("/a/b-c")).unwrap(), "/a/b-c");
        assert!(plain(Path::new("/a b")).is_err() && plain(Path::new("/a=b")).is_err());
    }
}
