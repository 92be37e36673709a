//! One-time codes: made for whoever is on the Unix socket, spent by whoever opens the address within a minute.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use homing_model::digest::{hex, sha256};
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a code may be spent.
pub(crate) const VALID: Duration = Duration::from_secs(60);

/// So many are kept at once; the oldest makes room.
const MOST: usize = 32;

const BYTES: usize = 16;

/// The codes that were given and not spent. Only digests are kept: comparing those says nothing about a code.
#[derive(Default)]
pub(crate) struct Codes(Mutex<VecDeque<(String, Instant)>>);

impl Codes {
    /// A new code; nothing if the system has no randomness to give.
    pub(crate) fn issue(&self) -> Option<String> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).ok()?;
        let code = hex(&bytes);
        let mut codes = self.0.lock();
        let now = Instant::now();
        codes.retain(|(_, until)| *until > now);
        codes.truncate(MOST - 1);
        codes.push_front((sha256(code.as_bytes()), now + VALID));
        Some(code)
    }

    /// Whether this is a code that may be spent; it is, by that.
    pub(crate) fn spend(&self, code: &str) -> bool {
        let digest = sha256(code.as_bytes());
        let mut codes = self.0.lock();
        let Some(place) = codes.iter().position(|(known, _)| *known == digest) else { return false };
        codes.remove(place).is_some_and(|(_, until)| until > Instant::now())
    }

    /// None of them is worth anything any more.
    pub(crate) fn revoke(&self) {
        self.0.lock().clear();
    }
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codes(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn p11_a_code_is_spent_once_and_within_a_minute() {
        let codes = Codes::default();
        let code = codes.issue().unwrap();
        assert_eq!(code.len(), 2 * BYTES);
        assert!(!codes.spend("") && !codes.spend(&code[1..]));
        assert!(codes.spend(&code));
        assert!(!codes.spend(&code), "only once");
        let (late, good) = (codes.issue().unwrap(), codes.issue().unwrap());
        tokio::time::advance(VALID - Duration::from_millis(1)).await;
        assert!(codes.spend(&good));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!codes.spend(&late), "a minute is over");
        let revoked = codes.issue().unwrap();
        codes.revoke();
        assert!(!codes.spend(&revoked));
    }

    #[tokio::test]
    async fn no_more_than_a_few_codes_are_kept() {
        let codes = Codes::default();
        let all: Vec<_> = (0..=MOST).map(|_| codes.issue().unwrap()).collect();
        assert!(!codes.spend(&all[0]));
        assert!(all[1..].iter().all(|code| codes.spend(code)));
        assert_eq!(format!("{codes:?}"), "Codes(…)");
    }
}
