//! The same once more, from a copy of the commit in another folder, and the bytes compared.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::release::Release;
use super::scratch::Scratch;
use super::{Made, make};
use crate::step;

/// Fails with the names of what differs. What was built stays in a folder that was chosen, and makes the next time shorter.
pub(crate) fn check(root: &Path, release: &Release, first: &Made, chosen: Option<&Path>) -> Result<()> {
    ensure!(
        !release.changed,
        "files differ from the last commit, of which the second build is made: commit them first"
    );
    match chosen {
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("{} could not be made", folder.display()))?;
            check_in(&folder.canonicalize()?, root, release, first)
        }
        None => check_in(Scratch::new("a-second-folder-to-build-in")?.path(), root, release, first),
    }
}

fn check_in(folder: &Path, root: &Path, release: &Release, first: &Made) -> Result<()> {
    let copy = copy(root, &release.commit, folder)?;
    let binary = super::build::build(&copy, release)?;
    let second = make(&copy, &binary, release, &folder.join("out"))?;
    compare(first, &second)
}

/// The files of the commit, each with its time.
fn copy(root: &Path, commit: &str, folder: &Path) -> Result<PathBuf> {
    let archive = folder.join("sources.tar");
    let copy = folder.join("sources");
    std::fs::create_dir_all(&copy)?;
    step::run(Command::new("git").args(["archive", "--output"]).arg(&archive).arg(commit).current_dir(root))?;
    step::run(
        Command::new("tar").arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(&copy),
    )?;
    Ok(copy)
}

fn compare(first: &Made, second: &Made) -> Result<()> {
    let names = |made: &Made| {
        made.files.iter().map(|file| file.file_name().map(ToOwned::to_owned)).collect::<Vec<_>>()
    };
    ensure!(names(first) == names(second), "other files were made: {:?}, {:?}", names(first), names(second));
    let read =
        |path: &Path| std::fs::read(path).with_context(|| format!("{} could not be read", path.display()));
    let mut differing = Vec::new();
    for (one, other) in first.files.iter().zip(&second.files) {
        if read(one)? != read(other)? {
            differing.push(one.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    ensure!(differing.is_empty(), "not the same when built elsewhere: {}", differing.join(", "));
    println!("   the same, byte for byte");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_is_a_difference() {
        let scratch = Scratch::new("compare").unwrap();
        let made = |folder: &str, bytes: &[u8]| {
            let path = scratch.path().join(folder).join("a.deb");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
            Made { files: vec![path] }
        };
        compare(&made("one", b"abc"), &made("two", b"abc")).unwrap();
        let told = compare(&made("one", b"abc"), &made("two", b"abd")).unwrap_err().to_string();
        assert!(told.contains("a.deb"), "{told}");
        assert!(compare(&made("one", b"abc"), &Made { files: Vec::new() }).is_err());
    }
}
