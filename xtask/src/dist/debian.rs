//! The Debian package, by `dpkg-deb` alone: the tree is simple enough that a helper would hide more than it does, and nothing has to be installed.
//!
//! It has no scripts: nothing is started, stopped or enabled for users who did not ask. What runs while it is replaced runs on; docs/packaging.md says
//! what to do then.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::material::Material;
use super::program;
use super::tree::{Prefix, Tree};
use crate::step;

/// Who answers for a package that nobody else put a name on.
const MAINTAINER: (&str, &str) = ("The homing contributors", "maintainers@homing.invalid");

const PREFIX: Prefix = Prefix { path: "/usr", zsh_folder: "vendor-completions" };

/// Makes `homing_VERSION_ARCHITECTURE.deb` in a folder.
pub(crate) fn package(material: &Material, folder: &Path) -> Result<PathBuf> {
    let tree = Tree::new(folder.join("stage/debian"))?;
    tree.fill("usr", PREFIX, material)?;
    let doc = Path::new("usr/share/doc/homing");
    let template = |name: &str| {
        let path = material.root.join("packaging/debian").join(name);
        std::fs::read_to_string(&path).with_context(|| format!("{} could not be read", path.display()))
    };
    let maintainer = maintainer();
    let debian = material.release.debian();
    tree.put(&doc.join("copyright"), template("copyright")?.as_bytes())?;
    tree.put(
        &doc.join("changelog.Debian"),
        changelog(&debian, &maintainer, &material.release.date).as_bytes(),
    )?;
    // The name by which Debian's programs find what changed.
    std::fs::rename(tree.root().join(doc).join("CHANGELOG.md"), tree.root().join(doc).join("changelog"))?;
    for compressed in ["changelog.Debian", "changelog", "THIRD-PARTY-LICENSES.txt"] {
        tree.compress(&doc.join(compressed))?;
    }

    let files = tree.files()?;
    let architecture = program::says(Command::new("dpkg").arg("--print-architecture"))?;
    let control = template("control.in")?
        .replace("{version}", &debian)
        .replace("{architecture}", &architecture)
        .replace("{maintainer}", &maintainer)
        .replace("{size}", &kibibytes(tree.root(), &files)?.to_string())
        .replace("{depends}", &depends(folder, &tree.root().join("usr/bin/homing"))?);
    let sums = program::says(Command::new("md5sum").args(&files).current_dir(tree.root()))?;
    tree.put(Path::new("DEBIAN/md5sums"), format!("{sums}\n").as_bytes())?;
    tree.put(Path::new("DEBIAN/control"), control.as_bytes())?;
    tree.settle(material.release.epoch)?;

    let package = folder.join(format!("homing_{debian}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(tree.root()).arg(&package);
    build.env("SOURCE_DATE_EPOCH", material.release.epoch.to_string());
    // With several threads the blocks would be as many as the machine has cores.
    step::run(build.env("DPKG_DEB_THREADS_MAX", "1"))?;
    Ok(package)
}

/// By the variables that Debian's own programs go by.
fn maintainer() -> String {
    let (name, address) = MAINTAINER;
    let name = program::variable("DEBFULLNAME").unwrap_or_else(|| name.to_owned());
    let address = program::variable("DEBEMAIL").unwrap_or_else(|| address.to_owned());
    format!("{name} <{address}>")
}

fn changelog(version: &str, maintainer: &str, date: &str) -> String {
    format!(
        "homing ({version}) unstable; urgency=medium\n\n  * What changed is in changelog.gz.\n\n -- {maintainer}  {date}\n"
    )
}

/// What the files take on a disk, as Debian counts it.
fn kibibytes(root: &Path, files: &[PathBuf]) -> Result<u64> {
    let sizes = files.iter().map(|file| Ok(root.join(file).metadata()?.len().div_ceil(1024)));
    Ok(sizes.collect::<Result<Vec<_>>>()?.iter().sum())
}

/// The libraries that the program needs, and since when they have what it calls.
fn depends(folder: &Path, binary: &Path) -> Result<String> {
    let scratch = folder.join("stage/shlibdeps");
    let installed = scratch.join("debian/homing/usr/bin/homing");
    std::fs::create_dir_all(scratch.join("debian/homing/DEBIAN"))?;
    std::fs::create_dir_all(scratch.join("debian/homing/usr/bin"))?;
    std::fs::copy(binary, &installed)?;
    std::fs::write(scratch.join("debian/control"), "Source: homing\n\nPackage: homing\nArchitecture: any\n")?;
    let said = program::says(Command::new("dpkg-shlibdeps").arg("-O").arg(&installed).current_dir(&scratch))?;
    let found = said.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(found.with_context(|| format!("dpkg-shlibdeps names no libraries: {said}"))?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changelog_is_in_the_form_that_debian_reads() {
        let text = changelog("0.1.0-1", "Ann <ann@example.org>", "Mon, 16 Nov 2026 05:29:32 +0000");
        assert!(text.starts_with("homing (0.1.0-1) unstable; urgency=medium\n\n  * "), "{text}");
        assert!(text.ends_with("\n\n -- Ann <ann@example.org>  Mon, 16 Nov 2026 05:29:32 +0000\n"), "{text}");
    }

    #[test]
    fn every_begun_kibibyte_counts() {
        let scratch = crate::dist::scratch::Scratch::new("kibibytes").unwrap();
        std::fs::write(scratch.path().join("a"), [0; 1025]).unwrap();
        std::fs::write(scratch.path().join("b"), [0; 1]).unwrap();
        assert_eq!(kibibytes(scratch.path(), &["a".into(), "b".into()]).unwrap(), 3);
    }
}
