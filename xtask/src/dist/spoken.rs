//! What the program itself says that a package has to hold: completions, and the unit of the service.
//!
//! Both name the program by its path. A copy of it is asked, in a folder whose path no shell has to quote, and that path is replaced by the one it
//! will have.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::program;
use super::scratch::Scratch;

/// The first line of a unit that `homing daemon install` writes, which this one is not.
const MARK: &str = "# Written by `homing daemon install`";
/// The first line of ours.
const OURS: &str =
    "# From the package. What is yours belongs into a drop-in: `systemctl --user edit homing.service`.";

/// What it says, and the path by which it names itself.
#[derive(Debug)]
pub(crate) struct Spoken {
    path: String,
    bash: String,
    zsh: String,
    fish: String,
    unit: String,
}

impl Spoken {
    /// Asks it.
    pub(crate) fn by(binary: &Path) -> Result<Spoken> {
        let scratch = Scratch::new("spoken")?;
        let copy = scratch.path().join("homing");
        std::fs::copy(binary, &copy).with_context(|| format!("{} could not be copied", binary.display()))?;
        let path = copy.to_str().context("the path of a temporary folder is no text")?.to_owned();
        let ask = |words: &[&str]| {
            program::says(Command::new(&copy).args(words).env_clear().env("HOME", "/nonexistent"))
        };
        let dry_run: Value = serde_json::from_str(&ask(&["--json", "daemon", "install", "--dry-run"])?)?;
        let unit = unit(dry_run["diff"].as_str().context("`daemon install` shows no unit")?)?;
        let completions = |shell: &str| ask(&["completions", shell]);
        Ok(Spoken {
            path,
            bash: completions("bash")?,
            zsh: completions("zsh")?,
            fish: completions("fish")?,
            unit,
        })
    }

    /// The files of a program in `PREFIX/bin`, by their paths below the prefix.
    pub(crate) fn files(&self, prefix: &str, zsh_folder: &str) -> Result<Vec<(PathBuf, String)>> {
        let files = [
            ("share/bash-completion/completions/homing".to_owned(), &self.bash),
            (format!("share/zsh/{zsh_folder}/_homing"), &self.zsh),
            ("share/fish/vendor_completions.d/homing.fish".to_owned(), &self.fish),
            ("lib/systemd/user/homing.service".to_owned(), &self.unit),
        ];
        let program = format!("{prefix}/bin/homing");
        files
            .into_iter()
            .map(|(file, text)| {
                ensure!(text.contains(&self.path), "{file} does not name the program: {text}");
                Ok((file.into(), format!("{}\n", text.replace(&self.path, &program))))
            })
            .collect()
    }
}

/// A unit, from what shows it as new, line by line.
fn unit(diff: &str) -> Result<String> {
    let lines = diff.lines().map(|line| {
        let text = line.strip_prefix('+').with_context(|| format!("`{line}` is no line of a new unit"))?;
        Ok(text.strip_prefix(' ').unwrap_or(text))
    });
    let lines = lines.collect::<Result<Vec<_>>>()?;
    let (first, rest) = lines.split_first().context("the unit is empty")?;
    ensure!(first.starts_with(MARK), "the unit begins otherwise: {first}");
    Ok(format!("{OURS}\n{}", rest.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_made_of_what_is_shown_as_new_and_is_nobody_elses() {
        let diff = "+ # Written by `homing daemon install`, and replaced by it.\n+ [Unit]\n+ \n+ [Service]\n+ ExecStart=\"/tmp/x/homing\" daemon run\n";
        let text = unit(diff).unwrap();
        assert_eq!(text, format!("{OURS}\n[Unit]\n\n[Service]\nExecStart=\"/tmp/x/homing\" daemon run"));
        assert!(!text.contains(MARK));
        assert!(unit("- gone\n").is_err() && unit("+ [Unit]\n").is_err() && unit("").is_err());
    }

    #[test]
    fn the_program_is_named_where_it_will_be() {
        let script = || "run /tmp/x/homing now".to_owned();
        let spoken = Spoken {
            path: "/tmp/x/homing".to_owned(),
            bash: script(),
            zsh: script(),
            fish: script(),
            unit: script(),
        };
        for (file, text) in spoken.files("/usr", "vendor-completions").unwrap() {
            assert_eq!(text, "run /usr/bin/homing now\n", "{}", file.display());
        }
        let mute = Spoken { fish: String::new(), ..spoken };
        assert!(mute.files("/usr", "vendor-completions").is_err());
    }
}
