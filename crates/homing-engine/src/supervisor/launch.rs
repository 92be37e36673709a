//! From a stored task to the message that a shim runs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use homing_model::mask::UNNAMED;
use homing_model::units::millis;
use homing_model::{Kind, OnExit, OsText, Secret, Spec, Stdin};
use homing_shim::tree::HOOK;
use homing_shim::{folder, wire};
use homing_store::{NewTask, Record};
use homing_sys::{memory, plain};
use minicbor::bytes::ByteVec;
use rustix::fs::{Mode, OFlags};

use crate::config::Config;
use crate::run_blocking;

/// Values that a launch needs and that the store does not hold.
pub(crate) type Values = BTreeMap<String, OsText>;

/// Writes the environment beside the attempt, for a start by another daemon.
pub(crate) fn write_environment<'a>(
    attempt: &OwnedFd,
    values: impl Iterator<Item = (&'a String, &'a OsText)> + Clone,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(attempt, folder::ENVIRONMENT, flags, Mode::RUSR | Mode::WUSR)?;
    // As long as it becomes: one that grows leaves copies behind.
    let length = values.clone().map(|(name, value)| name.len() + value.as_bytes().len() + 2).sum();
    let mut bytes = Vec::with_capacity(length);
    for (name, value) in values {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    let written = std::fs::File::from(file).write_all(&bytes);
    memory::wipe(&mut bytes);
    written
}

/// Reads it back.
pub(crate) fn read_environment(attempt: impl AsFd) -> io::Result<Values> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(attempt, folder::ENVIRONMENT, flags, Mode::empty())?;
    let mut bytes = Vec::new();
    std::fs::File::from(file).read_to_end(&mut bytes)?;
    let entries = bytes.split(|byte| *byte == 0).filter_map(|entry| {
        let at = entry.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (entry.get(..at)?, entry.get(at + 1..)?);
        Some((String::from_utf8(name.to_vec()).ok()?, OsText::from(value.to_vec())))
    });
    let entries = entries.collect();
    memory::wipe(&mut bytes);
    Ok(entries)
}

/// No variable may be longer, so no secret is.
const LONGEST_SECRET: u64 = 128 * 1024;

/// Reads a secret from its file, without the line feed that editors leave at the end. By a thread of its own: a file may lie where nobody answers.
pub(crate) async fn read_secret(path: &OsText) -> io::Result<OsText> {
    let path = PathBuf::from(path.as_os_str());
    let mut bytes = run_blocking(move || plain::small(&path, LONGEST_SECRET)).await??;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    if bytes.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it contains a NUL byte"));
    }
    Ok(bytes.into())
}

/// Program and arguments: as given, or the shell line's.
pub(crate) fn argv(spec: &Spec) -> Vec<OsText> {
    match &spec.shell {
        None => spec.argv.clone(),
        Some(line) => {
            let bash = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
            let shell = bash.into_iter().find(|path| Path::new(path).exists()).unwrap_or("/bin/sh");
            vec![shell.into(), "-c".into(), line.clone()]
        }
    }
}

/// What surrounds every launch of one engine.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) config: &'a Config,
    pub(crate) home: &'a Path,
    pub(crate) output: &'a Path,
    pub(crate) fallback_cwd: &'a OsText,
    pub(crate) cgroups: Option<&'a Path>,
    pub(crate) revive: bool,
}

fn bytes(path: &Path) -> ByteVec {
    path.as_os_str().as_encoded_bytes().to_vec().into()
}

/// What to run, with its secrets where the ledger has markers.
pub(crate) fn restored<'a>(record: &'a Record, values: &Values) -> Result<Cow<'a, Spec>, String> {
    if !record.masks.is_spliced() {
        return Ok(Cow::Borrowed(&record.spec));
    }
    let restored = record.masks.restore(&record.spec, values);
    restored.map(Cow::Owned).map_err(|name| format!("secret unavailable: {name}"))
}

/// How a start that failed may call what it could not use: by what the ledger has, and not by what the command was to get.
fn shown(record: &Record) -> Option<wire::Shown> {
    let lossy = |text: &OsText| text.lossy().into_owned();
    let spec = &record.spec;
    record.masks.is_spliced().then(|| wire::Shown {
        program: argv(spec).first().map(lossy).unwrap_or_default(),
        cwd: spec.cwd.as_ref().map(lossy).unwrap_or_default(),
        input: if let Stdin::File(path) = &spec.stdin { lossy(path) } else { String::new() },
    })
}

/// The message. `spec` is the record's, restored.
pub(crate) fn message(
    record: &Record,
    spec: &Spec,
    nonce: u64,
    values: &Values,
    around: &Surroundings<'_>,
) -> wire::Launch {
    let own = [
        ("HOMING_TASK_ID", record.id.as_str().as_bytes().to_vec()),
        ("HOMING_ATTEMPT", record.attempt.to_string().into_bytes()),
        ("HOMING_OWNER", record.owner.clone().into_bytes()),
        ("HOMING_OUTPUT", around.output.as_os_str().as_encoded_bytes().to_vec()),
        ("HOMING_HOME", around.home.as_os_str().as_encoded_bytes().to_vec()),
    ];
    let given = values.iter().filter(|(name, _)| !name.starts_with(UNNAMED));
    let given = given.map(|(name, value)| (name.as_str(), Cow::Borrowed(value.as_bytes())));
    // A hook's own are those of the task that it is told of; they were given. By this it is found, should its shim be killed.
    let of_hook = (HOOK, record.id.as_str().as_bytes().to_vec());
    let own = own.into_iter().filter(|(name, _)| record.kind != Kind::Hook || *name == "HOMING_HOME");
    let own = own.chain((record.kind == Kind::Hook).then_some(of_hook));
    let own = own.map(|(name, value)| (name, Cow::Owned(value)));
    let env = given.chain(own).map(|(name, value)| ByteVec::from([name.as_bytes(), b"=", &*value].concat()));
    wire::Launch {
        task: record.id.to_string(),
        attempt: record.attempt,
        nonce,
        argv: argv(spec).into_iter().map(|text| text.into_bytes().into()).collect(),
        env: env.collect(),
        cwd: spec.cwd.as_ref().unwrap_or(around.fallback_cwd).clone().into_bytes().into(),
        stdin: match &spec.stdin {
            Stdin::None => wire::Stdin::None,
            Stdin::Pipe => wire::Stdin::Pipe,
            Stdin::File(path) => wire::Stdin::File(path.clone().into_bytes().into()),
        },
        pty: spec.pty,
        pty_size: spec.pty_size.map(|size| (size.cols, size.rows)),
        timeout_ms: spec.timeout_ms,
        grace_ms: spec.grace_ms.unwrap_or_else(|| millis(around.config.stop.grace.0)),
        kill_on_exit: spec.on_exit == OnExit::Kill,
        max_output: spec.max_output_bytes.unwrap_or(around.config.output.max.0),
        umask: spec.umask,
        rlimits: spec
            .rlimits
            .iter()
            .map(|limit| wire::Rlimit { resource: limit.resource, soft: limit.soft, hard: limit.hard })
            .collect(),
        nice: spec.nice,
        cgroup: around.cgroups.map(bytes),
        revive: around.revive.then(|| bytes(around.home)),
        shown: shown(record),
    }
}

/// What of a spec may be written to disk: no environment values, no secret values. Beside it, the names of what is missing.
pub(crate) fn storable(spec: &Spec) -> (Spec, Vec<String>) {
    let mut stored = spec.clone();
    stored.env = None;
    // What may be kept of it the caller adds.
    stored.env_set.clear();
    let volatile = |secret: &Secret| matches!(secret, Secret::Value(_));
    let missing =
        spec.secrets.iter().filter(|(_, secret)| volatile(secret)).map(|(name, _)| name.clone()).collect();
    stored.secrets.retain(|_, secret| !volatile(secret));
    (stored, missing)
}

/// Whether a variable of a task is a secret.
pub(crate) fn is_secret(row: &NewTask, name: &str) -> bool {
    row.spec.secrets.contains_key(name) || row.volatile_secrets.iter().any(|secret| secret == name)
}

/// What a later start needs: the environment from its file, the secrets that this process kept, and those from files, read again.
/// A value that only the memory of an earlier daemon held is gone.
pub(crate) async fn recover_values(
    record: &Record,
    folder: &OwnedFd,
    kept: Values,
) -> Result<Values, String> {
    let gone = record.volatile_secrets.iter().filter(|name| !kept.contains_key(*name));
    let gone: Vec<_> = gone.map(String::as_str).collect();
    if !gone.is_empty() {
        return Err(format!("secret unavailable: {}", gone.join(", ")));
    }
    let mut values = read_environment(folder).map_err(|error| format!("environment unavailable: {error}"))?;
    values.extend(file_secrets(record, &kept).await?);
    values.extend(kept);
    restored(record, &values)?;
    Ok(values)
}

/// Reads the secrets that are files and were not kept.
async fn file_secrets(record: &Record, kept: &Values) -> Result<Values, String> {
    let mut values = Values::new();
    for (name, secret) in &record.spec.secrets {
        if let Secret::File(path) = secret
            && !kept.contains_key(name)
        {
            let value = read_secret(path)
                .await
                .map_err(|error| format!("secret unavailable: {name}: {}: {error}", path.lossy()))?;
            values.insert(name.clone(), value);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let attempt = folder::open(dir.path()).unwrap();
        let values = Values::from([("A".into(), "1=2\n".into()), ("EMPTY".into(), OsText::default())]);
        write_environment(&attempt, values.iter()).unwrap();
        assert_eq!(read_environment(&attempt).unwrap(), values);
    }

    #[test]
    fn what_is_stored_holds_no_secret_value() {
        let secrets = BTreeMap::from([
            ("TOKEN".into(), Secret::Value("hunter2".into())),
            ("KEY".into(), Secret::File("/run/key".into())),
        ]);
        let spec =
            Spec { env: Some(BTreeMap::from([("A".into(), "canary".into())])), secrets, ..Spec::default() };
        let (stored, missing) = storable(&spec);
        let json = serde_json::to_string(&stored).unwrap();
        assert!(!json.contains("hunter2") && !json.contains("canary") && json.contains("/run/key"), "{json}");
        assert_eq!(missing, ["TOKEN"]);
    }
}
