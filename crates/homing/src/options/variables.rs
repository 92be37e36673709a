//! Names with values, as typed: variables, secrets and labels.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_agents::environment as rules;
use homing_model::{OsText, Secret};

use crate::cli::completion;
use crate::cli::failure::Failure;
use crate::options::environment::Surroundings;

// The variables of a task, as typed. Not a doc comment: the parser would take it for what every command that has these options does.
#[derive(Debug, Default, Args)]
pub(crate) struct Variables {
    /// Set a variable; may be repeated
    #[arg(long, value_name = "K=V")]
    env: Vec<OsString>,
    /// Pass this variable on even though it is kept from tasks (agent sessions)
    #[arg(long, value_name = "NAME")]
    env_from: Vec<String>,
    /// A variable that is never written to disk; @FILE is read at every start
    #[arg(long, value_name = "K=V|K=@FILE", add = ArgValueCompleter::new(completion::secret))]
    secret: Vec<OsString>,
}

impl Variables {
    /// The caller's variables without those that are kept from tasks, then those passed on by name, then those set outright.
    pub(crate) fn environment(
        &self,
        surroundings: &Surroundings,
    ) -> Result<BTreeMap<String, OsText>, Failure> {
        let mut env = rules::capture(surroundings.all());
        env.extend(self.set(surroundings)?);
        Ok(env)
    }

    /// Those passed on by name, and those set outright: what is set for this task alone, and kept with it.
    pub(crate) fn set(&self, surroundings: &Surroundings) -> Result<BTreeMap<String, OsText>, Failure> {
        let mut env = BTreeMap::new();
        for name in &self.env_from {
            let value = surroundings.exact(name).ok_or_else(|| {
                Failure::usage(
                    format!("{name} is not set here"),
                    format!("Set it, or give it with `--env {name}=VALUE`."),
                )
            })?;
            env.insert(name.clone(), value);
        }
        for pair in &self.env {
            let (name, value) = split(pair).ok_or_else(|| {
                Failure::usage(
                    "`--env` takes a name and a value",
                    "Write `--env NAME=VALUE`; `--env-from NAME` passes a variable of yours on.",
                )
            })?;
            env.insert(name, value.into());
        }
        Ok(env)
    }

    /// Secrets by name. Values are never repeated in a message.
    pub(crate) fn secrets(&self) -> Result<BTreeMap<String, Secret>, Failure> {
        let refuse = || {
            let advice = "Write `--secret NAME=VALUE` or `--secret NAME=@FILE`.";
            Failure::usage("`--secret` takes a name and a value", advice)
        };
        self.secret
            .iter()
            .map(|pair| {
                let (name, value) = split(pair).ok_or_else(refuse)?;
                Ok(match value.strip_prefix(b"@") {
                    Some(file) => (name, Secret::File(absolute(file))),
                    None => (name, Secret::Value(value.into())),
                })
            })
            .collect()
    }
}

/// Labels by name.
pub(crate) fn labels(pairs: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let refuse = |pair| Failure::usage(format!("`{pair}` is no label"), "Write `--label NAME=VALUE`.");
    pairs
        .iter()
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            Some(_) | None => Err(refuse(pair)),
        })
        .collect()
}

/// A file as this process would find it: names are relative to where the command was typed, not to `--cwd`.
pub(crate) fn absolute(file: &[u8]) -> OsText {
    let file = Path::new(OsStr::from_bytes(file));
    // Fails only for an empty name or without a working directory; what is left as it is the daemon refuses by name.
    let path = std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file));
    OsText::from(path.into_os_string())
}

fn split(pair: &OsString) -> Option<(String, Vec<u8>)> {
    let bytes = pair.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    Some((String::from_utf8(bytes[..at].to_vec()).ok()?, bytes[at + 1..].to_vec()))
}
