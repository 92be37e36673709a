//! The cookies that were given for codes, across daemons. Keeps P11.
//!
//! A browser may be confined by its package, or by itself: Chromium sends requests from a process
//! with `no_new_privs`. The process that spent a code may therefore call with the cookie that it got,
//! however confined it is, and no other confined process may: one that reads the cookie from the
//! disk is not that process. So the home keeps a digest of each such cookie and the process that it
//! was given to, in one small file that is replaced whole. No cookie can be learned from it. Without
//! the file, after a reboot, or in a new process, a confined browser signs in again.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::{fs, io};

use homing_model::digest::sha256;
use homing_sys::atomic_file;
use homing_sys::process::ProcessId;
use parking_lot::Mutex;

/// The file's name in the home.
const NAME: &str = "browsers";

/// So many cookies are remembered; the oldest is forgotten.
const MAX_COOKIES: usize = 256;

/// A cookie's digest, and the process that it was given to.
type Given = (String, ProcessId);

/// The given cookies, the newest first.
#[derive(Debug, Default)]
pub(crate) struct GivenCookies {
    given: Mutex<VecDeque<Given>>,
    /// The home, if it is kept there, and the boot that the processes belong to.
    kept: Option<(PathBuf, String)>,
}

impl GivenCookies {
    /// Those that daemons of this home gave since the machine was started.
    pub(crate) fn of_home(home: &Path, boot_id: &str) -> Self {
        let text = fs::read_to_string(home.join(NAME)).unwrap_or_default();
        let mut lines = text.lines();
        let given = match lines.next() {
            Some(boot) if boot == boot_id => lines.filter_map(parse).take(MAX_COOKIES).collect(),
            _ => VecDeque::new(),
        };
        Self { given: Mutex::new(given), kept: Some((home.to_owned(), boot_id.to_owned())) }
    }

    /// A code was spent by this process, and this cookie given to it.
    pub(crate) fn add(&self, cookie: &str, process: ProcessId) {
        self.change(|given| {
            given.truncate(MAX_COOKIES - 1);
            given.push_front((sha256(cookie.as_bytes()), process));
        });
    }

    /// The process that this cookie was given to for a code.
    pub(crate) fn receiver(&self, cookie: &str) -> Option<ProcessId> {
        let digest = sha256(cookie.as_bytes());
        let given = self.given.lock();
        given.iter().find(|(known, _)| *known == digest).map(|(_, process)| *process)
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        self.change(VecDeque::clear);
    }

    fn change(&self, change: impl FnOnce(&mut VecDeque<Given>)) {
        let mut given = self.given.lock();
        change(&mut given);
        if let Some((home, boot_id)) = &self.kept
            && let Err(error) = write(home, boot_id, &given)
        {
            tracing::warn!(%error, "the browsers that are signed in could not be written down; after a restart a confined one signs in again");
        }
    }
}

fn parse(line: &str) -> Option<Given> {
    let mut words = line.split(' ');
    let digest = words.next()?.to_owned();
    Some((digest, ProcessId { pid: words.next()?.parse().ok()?, start: words.next()?.parse().ok()? }))
}

fn write(home: &Path, boot_id: &str, given: &VecDeque<Given>) -> io::Result<()> {
    let mut text = format!("{boot_id}\n");
    for (digest, ProcessId { pid, start }) in given {
        text.push_str(&format!("{digest} {pid} {start}\n"));
    }
    atomic_file::replace(&home.join(NAME), text.as_bytes(), 0o600)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROWSER: ProcessId = ProcessId { pid: 7, start: 70 };

    #[test]
    fn p11_given_cookies_outlive_the_daemon_as_digests() {
        let home = tempfile::tempdir().unwrap();
        let of_home = |boot| GivenCookies::of_home(home.path(), boot);
        let given = of_home("this");
        given.add("1.2.sealed", BROWSER);
        let kept = fs::read_to_string(home.path().join(NAME)).unwrap();
        assert!(!kept.contains("sealed"), "{kept}");
        let later = of_home("this");
        assert_eq!(later.receiver("1.2.sealed"), Some(BROWSER));
        assert_eq!(later.receiver("1.2.forged"), None);
        let digest = kept.lines().nth(1).unwrap().split(' ').next().unwrap();
        assert_eq!(later.receiver(digest), None, "a digest is no cookie");
        assert_eq!(of_home("next").receiver("1.2.sealed"), None, "its process is gone");
        later.clear();
        assert_eq!(of_home("this").receiver("1.2.sealed"), None);
        fs::write(home.path().join(NAME), [0xff, b'\n']).unwrap();
        assert_eq!(of_home("this").receiver("1.2.sealed"), None);
    }

    #[test]
    fn only_the_newest_cookies_are_remembered() {
        let given = GivenCookies::default();
        let cookies: Vec<_> = (0..=MAX_COOKIES).map(|number| number.to_string()).collect();
        cookies.iter().for_each(|cookie| given.add(cookie, BROWSER));
        let known = |cookie: &String| given.receiver(cookie).is_some();
        assert!(!known(&cookies[0]) && cookies[1..].iter().all(known));
    }
}
