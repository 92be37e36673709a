//! The cookies that were given for codes, across daemons. Keeps P11.
//!
//! A cookie can be forged from the token, which a sandboxed program may be able to read. One that
//! was given for a code cannot: the code is made for unconfined callers alone. So the digest of
//! each cookie that was given is kept, in memory and in one small file of the home that is replaced
//! whole. Who reads the file learns no cookie from it. Without the file, or with one that makes no
//! sense, confined browsers sign in again.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use homing_model::digest::sha256;

/// The file's name in the home.
const NAME: &str = "browsers";

/// So many cookies are remembered; the oldest is forgotten.
const MAX_COOKIES: usize = 256;

/// The digests, the newest first.
#[derive(Debug, Default)]
pub(crate) struct GivenCookies {
    digests: Mutex<VecDeque<String>>,
    /// The home, if it is kept there.
    home: Option<PathBuf>,
}

impl GivenCookies {
    /// Those that daemons of this home gave.
    pub(crate) fn of_home(home: &Path) -> Self {
        let text = fs::read_to_string(home.join(NAME)).unwrap_or_default();
        let digests = text.lines().take(MAX_COOKIES).map(str::to_owned).collect();
        Self { digests: Mutex::new(digests), home: Some(home.to_owned()) }
    }

    /// A code was spent, and this cookie given for it.
    pub(crate) fn add(&self, cookie: &str) {
        self.change(|digests| {
            digests.truncate(MAX_COOKIES - 1);
            digests.push_front(sha256(cookie.as_bytes()));
        });
    }

    /// Whether this cookie was given for a code.
    pub(crate) fn contains(&self, cookie: &str) -> bool {
        let digest = sha256(cookie.as_bytes());
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest)
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        self.change(VecDeque::clear);
    }

    fn change(&self, change: impl FnOnce(&mut VecDeque<String>)) {
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut digests);
        if let Some(home) = &self.home
            && let Err(error) = write(home, &digests)
        {
            tracing::warn!(%error, "the browsers that are signed in could not be written down; after a restart a confined one signs in again");
        }
    }
}

fn write(home: &Path, digests: &VecDeque<String>) -> io::Result<()> {
    let fresh = home.join(format!("{NAME}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    let text: String = digests.iter().flat_map(|digest| [digest.as_str(), "\n"]).collect();
    file.write_all(text.as_bytes())?;
    fs::rename(fresh, home.join(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p11_given_cookies_outlive_the_daemon_as_digests() {
        let home = tempfile::tempdir().unwrap();
        let given = GivenCookies::of_home(home.path());
        given.add("1.2.sealed");
        let kept = fs::read_to_string(home.path().join(NAME)).unwrap();
        assert!(!kept.contains("sealed"), "{kept}");
        let later = GivenCookies::of_home(home.path());
        assert!(later.contains("1.2.sealed") && !later.contains("1.2.forged"));
        assert!(!later.contains(kept.trim()), "a digest is no cookie");
        later.clear();
        assert!(!GivenCookies::of_home(home.path()).contains("1.2.sealed"));
        fs::write(home.path().join(NAME), [0xff, b'\n']).unwrap();
        assert!(!GivenCookies::of_home(home.path()).contains("1.2.sealed"));
    }

    #[test]
    fn only_the_newest_cookies_are_remembered() {
        let given = GivenCookies::default();
        let cookies: Vec<_> = (0..=MAX_COOKIES).map(|number| number.to_string()).collect();
        cookies.iter().for_each(|cookie| given.add(cookie));
        assert!(!given.contains(&cookies[0]) && cookies[1..].iter().all(|cookie| given.contains(cookie)));
    }
}
