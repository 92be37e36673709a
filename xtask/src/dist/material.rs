//! What packages are made of: sources, the program, what it says, and the licences.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::licences;
use super::release::Release;
use super::spoken::Spoken;
use crate::packages;

/// All of it.
#[derive(Debug)]
pub(crate) struct Material {
    /// The folder with the sources.
    pub(crate) root: PathBuf,
    /// The program.
    pub(crate) binary: PathBuf,
    pub(crate) release: Release,
    pub(crate) spoken: Spoken,
    /// THIRD-PARTY-LICENSES.txt.
    pub(crate) licences: String,
}

impl Material {
    /// Gathers it.
    pub(crate) fn gather(root: &Path, binary: &Path, release: &Release) -> Result<Material> {
        let linked = packages::linked_with(root, &[super::host()?], "homing")?;
        println!("   {} packages of others are in it", linked.len());
        Ok(Material {
            root: root.to_owned(),
            binary: binary.to_owned(),
            release: release.clone(),
            spoken: Spoken::by(binary)?,
            licences: licences::gather(root, &linked)?,
        })
    }
}
