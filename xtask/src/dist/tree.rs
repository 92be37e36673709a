//! The files of an installed homing, below a prefix, with owner, rights and times that depend on nothing but the release.

use std::fs::{File, FileTimes, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use super::material::Material;
use crate::step;

/// Documents at the root of the sources. Those in `docs` name them by `../`, and find them so.
const DOCUMENTS: [&str; 5] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
/// Folders with more of them.
const FOLDERS: [&str; 2] = ["docs", "examples"];

/// Where an installation is, and what is called otherwise there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefix {
    /// `/usr` or `/usr/local`.
    pub(crate) path: &'static str,
    /// The folder in `share/zsh` that zsh looks into.
    pub(crate) zsh_folder: &'static str,
}

/// A tree in the making.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// An empty one, in the place of what was there.
    pub(crate) fn new(root: PathBuf) -> Result<Tree> {
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(&root).with_context(|| format!("{} could not be made", root.display()))?;
        Ok(Tree { root })
    }

    /// Where it is.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Fills the tree with everything that belongs below a prefix, in a folder of the tree.
    pub(crate) fn fill(&self, within: &str, prefix: Prefix, material: &Material) -> Result<()> {
        let at = |path: &str| Path::new(within).join(path);
        self.put(&at("bin/homing"), &read(&material.binary)?)?;
        // What names the compiler helps nobody either.
        step::run(
            Command::new("strip")
                .args(["--strip-all", "--remove-section=.comment", "--remove-section=.note"])
                .arg(self.root.join(at("bin/homing"))),
        )?;
        for (file, text) in material.spoken.files(prefix.path, prefix.zsh_folder)? {
            self.put(&Path::new(within).join(file), text.as_bytes())?;
        }
        for page in files_below(&material.root.join("docs/man"))? {
            let name = page.file_name().and_then(|name| name.to_str()).context("a page without a name")?;
            self.put(&at(&format!("share/man/man1/{name}")), &read(&page)?)?;
            self.compress(&at(&format!("share/man/man1/{name}")))?;
        }
        for document in DOCUMENTS {
            self.put(&at(&format!("share/doc/homing/{document}")), &read(&material.root.join(document))?)?;
        }
        for folder in FOLDERS {
            for file in files_below(&material.root.join(folder))? {
                let path = file.strip_prefix(&material.root)?;
                if !path.starts_with("docs/man") {
                    self.put(&at("share/doc/homing").join(path), &read(&file)?)?;
                }
            }
        }
        self.put(&at("share/doc/homing/THIRD-PARTY-LICENSES.txt"), material.licences.as_bytes())
    }

    /// Writes a file, and the folders that it is in.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let path = self.root.join(path);
        let folder = path.parent().context("a file is in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("{} could not be made", folder.display()))?;
        std::fs::write(&path, bytes).with_context(|| format!("{} could not be written", path.display()))
    }

    /// Makes `FILE.gz` of a file, without its name and time in it.
    pub(crate) fn compress(&self, path: &Path) -> Result<()> {
        step::run(Command::new("gzip").args(["-9", "--no-name", "--force"]).arg(self.root.join(path)))
    }

    /// Every file of it, by its path within, in order.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        files_below(&self.root)?.iter().map(|file| Ok(file.strip_prefix(&self.root)?.to_owned())).collect()
    }

    /// Gives everything the rights of its kind and the time of the release. The last thing that is done to a tree.
    pub(crate) fn settle(&self, epoch: u64) -> Result<()> {
        let time = UNIX_EPOCH + Duration::from_secs(epoch);
        let times = FileTimes::new().set_accessed(time).set_modified(time);
        let mut all = files_below(&self.root)?;
        let mut folders: Vec<PathBuf> =
            all.iter().flat_map(|file| file.ancestors().skip(1)).map(Path::to_owned).collect();
        folders.retain(|folder| folder.starts_with(&self.root));
        folders.sort();
        folders.dedup();
        all.extend(folders);
        for path in all {
            let program = path.is_dir() || path.parent().is_some_and(|folder| folder.ends_with("bin"));
            let mode = if program { 0o755 } else { 0o644 };
            std::fs::set_permissions(&path, Permissions::from_mode(mode))
                .and_then(|()| File::open(&path)?.set_times(times))
                .with_context(|| format!("{} could not be settled", path.display()))?;
        }
        Ok(())
    }
}

/// Every plain file in a folder and those below it, in order. Links have no place in a package.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("{} could not be read", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            ensure!(!kind.is_symlink(), "{} is a link", entry.path().display());
            if kind.is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("{} could not be read", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::dist::scratch::Scratch;

    #[test]
    fn a_settled_tree_depends_on_the_release_alone() {
        let scratch = Scratch::new("tree").unwrap();
        let tree = Tree::new(scratch.path().join("tree")).unwrap();
        tree.put(Path::new("usr/bin/homing"), b"program").unwrap();
        tree.put(Path::new("usr/share/doc/a.md"), b"text").unwrap();
        tree.put(Path::new("usr/share/doc/b"), b"text").unwrap();
        tree.compress(Path::new("usr/share/doc/b")).unwrap();
        std::fs::set_permissions(tree.root().join("usr/share/doc/a.md"), Permissions::from_mode(0o700))
            .unwrap();
        tree.settle(1_794_806_972).unwrap();
        let files = ["usr/bin/homing", "usr/share/doc/a.md", "usr/share/doc/b.gz"];
        assert_eq!(tree.files().unwrap(), files.map(PathBuf::from));
        for (path, mode) in
            [("usr/bin/homing", 0o755), ("usr/share/doc/a.md", 0o644), ("usr/share", 0o755), ("", 0o755)]
        {
            let found = tree.root().join(path).metadata().unwrap();
            assert_eq!((found.mtime(), found.mode() & 0o7777), (1_794_806_972, mode), "{path}");
        }
    }

    #[test]
    fn a_link_is_refused() {
        let scratch = Scratch::new("link").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", scratch.path().join("link")).unwrap();
        assert!(files_below(scratch.path()).is_err());
    }
}
