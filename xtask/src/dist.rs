//! `cargo xtask dist`: what is handed out. A Debian package, a tarball and their checksums, in `target/dist`.
//!
//! The same commit and the same compilers make the same bytes, wherever the sources lie (`build`, `tree`; `--check-reproducible` proves it). Each package is tried before
//! it is called done (`trial`), the binary may not grow unnoticed (`size`), and the licences of what is in it go along (`licences`).
//! With `--binary PATH` a program that is there is packed: for trying out the packing, and into a folder of its own. So is what was
//! built `--without-advisories`: nothing of it gets among what is released.

mod build;
mod debian;
pub(crate) mod licences;
mod lint;
mod material;
mod options;
mod program;
mod release;
mod reproducible;
pub(crate) mod scratch;
mod size;
mod spoken;
mod tarball;
mod tree;
mod trial;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::{deny, step, verifiers};
use material::Material;
use options::Options;
use release::Release;

/// The files that were made.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    files: Vec<PathBuf>,
}

/// Does all of it.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let options = Options::read(arguments)?;
    program::all_there()?;
    let root = step::root();
    let release = Release::of(&root)?;
    println!("homing {}, {}", release.version, release.date);

    let folder = root.join("target/dist").join(options.folder());
    let binary = if let Some(given) = &options.binary {
        given.clone()
    } else {
        if options.without_advisories {
            println!("   advisories were not checked: do not release what this makes");
        } else {
            step::timed("tools", || verifiers::provide(&[verifiers::CARGO_DENY]))?;
            step::timed("advisories", deny::check_advisories)?;
        }
        let mut built = PathBuf::new();
        step::timed("release build", || {
            built = build::build(&root, &release)?;
            size::check(&root, &built)
        })?;
        built
    };
    let mut made = Made { files: Vec::new() };
    step::timed("packages", || {
        made = make(&root, &binary, &release, &folder)?;
        Ok(())
    })?;
    let package = made.files.first().context("invariant: the package comes first")?;
    step::timed("lintian", || lint::check(package))?;
    step::timed("trial", || trial::of(package))?;
    if options.check_reproducible {
        step::timed("once more, elsewhere", || {
            reproducible::check(&root, &release, &made, options.second.as_deref())
        })?;
    }
    println!();
    for file in &made.files {
        println!("{} ({} bytes)", file.display(), file.metadata()?.len());
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the packages and the list of their checksums in a folder, the package for Debian first.
fn make(root: &Path, binary: &Path, release: &Release, folder: &Path) -> Result<Made> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).with_context(|| format!("{} could not be made", folder.display()))?;
    let material = Material::gather(root, binary, release)?;
    let mut files = vec![debian::package(&material, folder)?, tarball::pack(&material, folder)?];
    std::fs::remove_dir_all(folder.join("stage")).context("what was packed could not be removed")?;

    let names = files.iter().filter_map(|file| file.file_name());
    let sums = program::says(Command::new("sha256sum").args(names).current_dir(folder))?;
    let list = folder.join("SHA256SUMS");
    std::fs::write(&list, format!("{sums}\n")).context("SHA256SUMS could not be written")?;
    files.push(list);
    Ok(Made { files })
}

/// The target that this machine is, which is the one that is built for.
pub(crate) fn host() -> Result<String> {
    let about = program::says(Command::new("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say on what it runs")?.to_owned())
}
