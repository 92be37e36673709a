//! Whether the program of an agent is there.
//!
//! What is not there is refused at submit, while somebody listens: a task that could only fail to start would be found out by whoever comes
//! back for its answer. The look is a courtesy and decides nothing else. A program may go away before its task starts, and one that cannot
//! be looked at from here may still be startable; then the start itself decides, as for any command (P2).

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::supervisor::launch::Values;

/// Where the shim looks when a task has no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Whether a program can be found and executed, wherever the task would run.
pub(super) fn is_there(program: &str, values: &Values) -> bool {
    let executable = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return executable(Path::new(program));
    }
    let path = values.get("PATH").map(|path| path.as_os_str().to_owned()).unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.is_absolute() && executable(&folder.join(program)))
}

/// Whether a task in this folder would certainly not find the program.
pub(super) fn is_missing(program: &OsStr, values: &Values, cwd: Option<&Path>) -> bool {
    let absent = |path: PathBuf| {
        let path = match cwd {
            Some(cwd) => cwd.join(path),
            // Which folder that is, is decided later.
            None if path.is_relative() => return false,
            None => path,
        };
        std::fs::metadata(path).is_err_and(|error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        })
    };
    if program.as_bytes().contains(&b'/') {
        return absent(program.into());
    }
    let path = values.get("PATH").map_or_else(|| OsStr::new(DEFAULT_PATH), |path| path.as_os_str());
    std::env::split_paths(path).all(|folder| absent(folder.join(program)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certainly_not_there_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("agent"), "").unwrap();
        let on = |path: &OsStr| Values::from([("PATH".to_owned(), path.to_owned().into())]);
        let path = on(dir.path().as_os_str());
        let missing =
            |program: &str, values: &Values, cwd: Option<&Path>| is_missing(program.as_ref(), values, cwd);
        assert!(!missing("agent", &path, None), "whether it can be executed is for the start to say");
        assert!(missing("another", &path, None));
        assert!(!missing("another", &on(OsStr::new("relative")), None), "nobody knows yet relative to what");
        assert!(!missing("agent", &on(OsStr::new(".:/nowhere")), Some(dir.path())));
        assert!(missing("agent", &on(OsStr::new("/nowhere")), Some(dir.path())));
        assert!(missing("/nowhere/agent", &path, None) && !missing("./agent", &path, None));
        assert!(!missing("./agent", &path, Some(dir.path())));
        assert!(missing("./another", &path, Some(dir.path())));
        assert!(!missing("sh", &Values::new(), None), "the shim has a path of its own");
    }
}
