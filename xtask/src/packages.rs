//! The packages that the workspace is made of. `cargo tree` says which they are and `cargo metadata` what they are: the latter alone tells of optional ones
//! too that nobody asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::step;

/// One package, ours or another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// As its author wrote it.
    pub(crate) license: Option<String>,
    /// Where its sources are.
    pub(crate) folder: PathBuf,
    /// Where it came from; none if it is our own.
    pub(crate) source: Option<String>,
}

/// A name and a version.
type Id = (String, String);

/// What others wrote and a program of ours is linked with, macros included; not what only builds or tests it.
pub(crate) fn linked_with(root: &Path, targets: &[String], program: &str) -> Result<Vec<Package>> {
    let mut found = chosen(root, targets, &["--package", program, "--edges", "normal"])?;
    found.retain(|package| package.source.is_some());
    Ok(found)
}

fn chosen(root: &Path, targets: &[String], which: &[&str]) -> Result<Vec<Package>> {
    let mut ids = BTreeSet::new();
    for target in targets {
        let tree = ["tree", "--locked", "--prefix", "none", "--format", "{p}", "--target", target];
        ids.extend(listed(&String::from_utf8_lossy(&cargo(root, &[&tree, which].concat())?)));
    }
    let mut metadata = vec!["metadata", "--format-version", "1", "--locked"];
    metadata.extend(targets.iter().flat_map(|target| ["--filter-platform", target]));
    let metadata = serde_json::from_slice(&cargo(root, &metadata)?).context("what cargo metadata says")?;
    let mut told = told(&metadata)?;
    let package =
        |id: Id| told.remove(&id).with_context(|| format!("cargo metadata does not know {} {}", id.0, id.1));
    ids.into_iter().map(package).collect()
}

fn cargo(root: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let output = step::cargo(words).current_dir(root).output().context("cargo could not be started")?;
    if !output.status.success() {
        bail!("cargo {} failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// Of `name v1.0.0 (proc-macro) (*)` the first two words.
fn listed(tree: &str) -> BTreeSet<Id> {
    let id = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    tree.lines().filter_map(id).collect()
}

fn told(metadata: &Value) -> Result<BTreeMap<Id, Package>> {
    let mut told = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let package = read(package)?;
        told.insert((package.name.clone(), package.version.clone()), package);
    }
    Ok(told)
}

fn read(package: &Value) -> Result<Package> {
    let manifest = PathBuf::from(text(&package["manifest_path"])?);
    Ok(Package {
        name: text(&package["name"])?,
        version: text(&package["version"])?,
        license: package["license"].as_str().map(str::to_owned),
        folder: manifest.parent().context("a manifest is in a folder")?.to_owned(),
        source: package["source"].as_str().map(str::to_owned),
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> Result<String> {
    Ok(value.as_str().context("cargo metadata lacks a text")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_a_list_in_which_each_is_once() {
        let tree = "homing v0.1.0 (/src/homing)\nserde_derive v1.0.2 (proc-macro)\n\ntoml v1.1.8+spec-1.1.0\ntoml v1.1.8+spec-1.1.0 (*)\n";
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let expected = [id("homing", "0.1.0"), id("serde_derive", "1.0.2"), id("toml", "1.1.8+spec-1.1.0")];
        assert_eq!(listed(tree), BTreeSet::from(expected));
    }

    #[test]
    fn our_own_program_is_linked_with_what_it_needs_and_not_with_what_tests_it() {
        let host = crate::dist::host().unwrap();
        let linked = linked_with(&step::root(), &[host], "homing").unwrap();
        let has = |name: &str| linked.iter().any(|package| package.name == name);
        assert!(has("tokio") && has("rusqlite") && has("libsqlite3-sys"));
        assert!(!has("proptest") && !has("homing-engine") && !has("clap_mangen"));
    }
}
