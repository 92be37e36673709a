//! The value of the cookie: when it was given, something random, and a seal over both under the home's token.

use std::time::Duration;

use hmac_sha256::HMAC;
use homing_model::Timestamp;
use homing_model::digest::hex;
use subtle::ConstantTimeEq;

use crate::auth::token::Token;

/// How long a browser stays signed in at most.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// A clock that was set back a little does not end what it has just given.
const SLACK: i64 = 60_000;

/// Makes and judges cookies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seal<'a>(pub(crate) &'a Token);

impl Seal<'_> {
    /// A cookie of now; nothing if the system has no randomness to give.
    pub(crate) fn cookie(self, now: Timestamp) -> Option<String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let head = format!("1.{}.{}", now.as_millis(), hex(&bytes));
        let seal = self.over(&head);
        Some(format!("{head}.{seal}"))
    }

    /// Whether this cookie is ours, of the token in force, and not too old.
    pub(crate) fn holds(self, cookie: &str, now: Timestamp) -> bool {
        let Some((head, seal)) = cookie.rsplit_once('.') else { return false };
        if !bool::from(self.over(head).as_bytes().ct_eq(seal.as_bytes())) {
            return false;
        }
        let given = head.split('.').nth(1).and_then(|text| text.parse::<i64>().ok());
        let lifetime = i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
        given.is_some_and(|given| (-SLACK..lifetime).contains(&(now.as_millis() - given)))
    }

    fn over(self, head: &str) -> String {
        self.0.with(|token| hex(&HMAC::mac(format!("homing page\n{head}"), token)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p11_a_cookie_is_good_for_its_time_and_its_token_and_cannot_be_changed() {
        let token = Token::new("secret".into());
        let seal = Seal(&token);
        let at = |seconds: i64| Timestamp::from_millis(1_000_000 + seconds * 1000);
        let cookie = seal.cookie(at(0)).unwrap();
        assert!(!cookie.contains("secret"));
        let month = 30 * 24 * 3600;
        for (second, good) in [(0, true), (month - 1, true), (month, false), (-60, true), (-61, false)] {
            assert_eq!(seal.holds(&cookie, at(second)), good, "{second}");
        }
        for place in 0..cookie.len() {
            let mut bytes = cookie.clone().into_bytes();
            bytes[place] = if bytes[place] == b'0' { b'1' } else { b'0' };
            assert!(!seal.holds(&String::from_utf8(bytes).unwrap(), at(0)), "{place}");
        }
        for wrong in ["", ".", "1.1000000.x.", &cookie[1..], &format!("{cookie}0")] {
            assert!(!seal.holds(wrong, at(0)), "{wrong}");
        }
        token.set("another".into());
        assert!(!seal.holds(&cookie, at(0)), "another token ends it");
        assert_ne!(seal.cookie(at(0)), seal.cookie(at(0)));
    }
}
