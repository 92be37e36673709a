//! The token of a home: who has it, is the user. Keeps P11.
//!
//! 32 random bytes in hexadecimal, in the file `token`, which nobody else can read. A file that others could read, or that is no plain file
//! of ours, is not used: whoever left it there may know it. No reader ever sees half of one, and no crash loses both.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use homing_api::{Code, Problem};
use homing_model::digest::hex;
use homing_sys::atomic_file;
use parking_lot::RwLock;
use rustix::fs::OFlags;
use subtle::ConstantTimeEq;

/// The file's name in the home.
pub const NAME: &str = "token";

/// Bytes of a token, and characters of its text.
const BYTES: usize = 32;
const LENGTH: usize = 2 * BYTES;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else may know it.
    #[error("{} {why}, and somebody else may know what it holds", path.display())]
    Unsafe {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The system said no.
    #[error("{} cannot be read or made: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Unsafe { .. } => Self {
                advice: "`homing token rotate` makes another, which only you can read.".to_owned(),
                ..Self::new(Code::Unauthorized, error.to_string())
            },
            Error::Io { ref source, .. } => {
                let full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
                Self::new(if full { Code::StorageFull } else { Code::StorageFailed }, error.to_string())
            }
        }
    }
}

/// The token of a home as a file; none if there is none yet.
///
/// # Errors
/// If somebody else may know it, or it cannot be read.
pub fn read(home: &Path) -> Result<Option<String>, Error> {
    let path = home.join(NAME);
    let hostile = |why| Error::Unsafe { path: path.clone(), why };
    let failed = |source| Error::Io { path: path.clone(), source };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let opened =
        OpenOptions::new().read(true).custom_flags(i32::from_ne_bytes(flags.to_ne_bytes())).open(&path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(hostile("is a link"));
        }
        Err(error) => return Err(failed(error)),
    };
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(hostile("is no plain file"));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(hostile("belongs to another user"));
    }
    if found.mode() & 0o077 != 0 {
        return Err(hostile("is open to other users"));
    }
    let mut text = String::new();
    file.take(2 * LENGTH as u64).read_to_string(&mut text).map_err(failed)?;
    let text = text.trim_end();
    if text.len() != LENGTH || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(hostile("holds no token"));
    }
    Ok(Some(text.to_owned()))
}

/// The token of a home, made if there is none.
///
/// # Errors
/// If somebody else may know it, or it cannot be read or made.
pub fn read_or_make(home: &Path) -> Result<String, Error> {
    if let Some(token) = read(home)? {
        return Ok(token);
    }
    let path = home.join(NAME);
    let failed = |source| Error::Io { path: path.clone(), source };
    match atomic_file::create(&path, line(&random().map_err(failed)?).as_bytes(), 0o600) {
        // Another process was first, and all read the winner's.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    read(home)?.ok_or_else(|| Error::Io { path, source: io::ErrorKind::NotFound.into() })
}

/// Makes another token. The one before is worth nothing to whoever reads the file from now on.
///
/// # Errors
/// If it cannot be made; then the one before is still there.
pub fn replace(home: &Path) -> Result<String, Error> {
    let path = home.join(NAME);
    let failed = |source| Error::Io { path: path.clone(), source };
    let token = random().map_err(failed)?;
    atomic_file::replace(&path, line(&token).as_bytes(), 0o600).map_err(failed)?;
    Ok(token)
}

fn random() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex(&bytes))
}

fn line(token: &str) -> String {
    format!("{token}\n")
}

/// The token in force, in memory: it is never shown.
pub(crate) struct Token(RwLock<String>);

impl Token {
    pub(crate) fn new(token: String) -> Self {
        Self(RwLock::new(token))
    }

    /// Puts another one in force.
    pub(crate) fn set(&self, token: String) {
        *self.0.write() = token;
    }

    /// Lends it to what seals something with it.
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&str) -> T) -> T {
        use_it(&self.0.read())
    }

    /// Whether this is it. How long that takes does not depend on how much of it is right.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        let token = self.0.read();
        !token.is_empty() && token.as_bytes().ct_eq(given).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(path: &Path) -> Vec<String> {
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn p11_a_token_is_made_once_for_its_owner_alone_and_replaced_whole() {
        let home = tempfile::tempdir().unwrap();
        assert!(read(home.path()).unwrap().is_none());
        let first = read_or_make(home.path()).unwrap();
        assert_eq!(first.len(), 64);
        assert_eq!(read_or_make(home.path()).unwrap(), first);
        let second = replace(home.path()).unwrap();
        assert_ne!(second, first);
        assert_eq!(read(home.path()).unwrap(), Some(second));
        assert_eq!(fs::metadata(home.path().join(NAME)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(names(home.path()), [NAME], "no draft is left");
    }

    #[test]
    fn p11_a_token_that_others_may_know_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(NAME);
        let refused = || match read_or_make(home.path()) {
            Err(Error::Unsafe { why, .. }) => why,
            other => panic!("{other:?}"),
        };
        read_or_make(home.path()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(refused(), "is open to other users");
        replace(home.path()).unwrap();
        assert!(read_or_make(home.path()).is_ok());
        fs::write(&path, "0123").unwrap();
        assert_eq!(refused(), "holds no token");
        fs::rename(&path, home.path().join("other")).unwrap();
        symlink(home.path().join("other"), &path).unwrap();
        assert_eq!(refused(), "is a link");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(refused(), "is no plain file");
    }

    #[test]
    fn of_several_makers_at_once_one_wins_and_all_know_it() {
        let home = tempfile::tempdir().unwrap();
        let made: Vec<_> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| read_or_make(home.path()).unwrap())).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(made.iter().all(|token| *token == made[0]));
        assert_eq!(names(home.path()), [NAME]);
    }

    #[test]
    fn p11_only_the_whole_token_is_it_and_it_is_never_shown() {
        let token = Token::new("abcd".into());
        assert!(token.is(b"abcd"));
        for wrong in [&b"abc"[..], b"abcde", b"abcx", b"ABCD", b""] {
            assert!(!token.is(wrong), "{wrong:?}");
        }
        token.set("efgh".into());
        assert!(token.is(b"efgh") && !token.is(b"abcd"));
        assert!(!Token::new(String::new()).is(b""));
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
