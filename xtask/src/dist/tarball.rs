//! The same for any other system of the kind: one folder, whose contents go below `/usr/local`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::material::Material;
use super::tree::{Prefix, Tree};
use crate::step;

const PREFIX: Prefix = Prefix { path: "/usr/local", zsh_folder: "site-functions" };

/// Makes `homing-VERSION-TARGET.tar.gz` in a folder.
pub(crate) fn pack(material: &Material, folder: &Path) -> Result<PathBuf> {
    let name = format!("homing-{}-{}", material.release.version, super::host()?);
    let tree = Tree::new(folder.join("stage/tarball").join(&name))?;
    tree.fill("", PREFIX, material)?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let text = std::fs::read(material.root.join(licence))
            .with_context(|| format!("{licence} could not be read"))?;
        tree.put(&Path::new("share/doc/homing").join(licence), &text)?;
    }
    tree.settle(material.release.epoch)?;

    let tarball = folder.join(format!("{name}.tar"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", material.release.epoch)).arg("--file").arg(&tarball);
    step::run(tar.arg("--directory").arg(folder.join("stage/tarball")).arg(&name).env("LC_ALL", "C"))?;
    step::run(Command::new("gzip").args(["-9", "--no-name", "--force"]).arg(&tarball))?;
    Ok(folder.join(format!("{name}.tar.gz")))
}
