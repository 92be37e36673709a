//! Programs of the system that are called while packing, and the variables that they go by.

use std::process::{Command, Stdio};

use anyhow::{Result, bail, ensure};

use crate::{step, tools};

/// A program and the Debian package that has it.
const NEEDED: [(&str, &str); 8] = [
    ("dpkg-deb", "dpkg"),
    ("dpkg-shlibdeps", "dpkg-dev"),
    ("strip", "binutils"),
    ("tar", "tar"),
    ("gzip", "gzip"),
    ("md5sum", "coreutils"),
    ("sha256sum", "coreutils"),
    ("git", "git"),
];

/// Fails before anything is built if something will be missing.
pub(crate) fn all_there() -> Result<()> {
    let missing = NEEDED.iter().filter(|(program, _)| !tools::is_there(program));
    let packages: Vec<_> = missing.map(|(_, package)| *package).collect();
    ensure!(packages.is_empty(), "programs are missing: `apt-get install {}`", packages.join(" "));
    Ok(())
}

/// What a program prints, without the end of the last line; its errors are ours.
pub(crate) fn says(command: &mut Command) -> Result<String> {
    let (status, said) = answers(command)?;
    ensure!(status == Some(0), "{} ended with {status:?}: {}", step::shown(command), said.trim_end());
    Ok(said.trim_end().to_owned())
}

/// How a program ends, and what it printed.
pub(crate) fn answers(command: &mut Command) -> Result<(Option<i32>, String)> {
    match command.stdin(Stdio::null()).stderr(Stdio::inherit()).output() {
        Ok(output) => Ok((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())),
        Err(error) => bail!("{} could not be started: {error}", step::shown(command)),
    }
}

/// A variable of the environment, if it is set and is text.
pub(crate) fn variable(name: &str) -> Option<String> {
    let value = std::env::vars_os().find_map(|(found, value)| (found == name).then_some(value))?;
    value.into_string().ok().filter(|value| !value.is_empty())
}
