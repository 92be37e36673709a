//! A secret that signs webhooks: read, checked, and never shown.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use standardwebhooks::Webhook;

/// What every secret begins with.
const PREFIX: &str = "whsec_";

/// How many bytes a key may have (Standard Webhooks, "Signature scheme").
const LENGTH: std::ops::RangeInclusive<usize> = 24..=64;

/// A key for signing. It has no `Debug` and no `Display`, so that it cannot end up in a log.
#[derive(Clone)]
pub struct Secret(Arc<Webhook>);

/// Why a text is no secret. The text itself is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Something else altogether.
    #[error("a webhook secret begins with `whsec_`; `echo whsec_$(openssl rand -base64 32)` makes one")]
    Prefix,
    /// Damaged.
    #[error("the webhook secret is not base64 after `whsec_`; copy it again, whole")]
    Base64,
    /// Too weak, or no key.
    #[error(
        "the webhook secret has {0} bytes and must have 24 to 64; `echo whsec_$(openssl rand -base64 32)` makes one"
    )]
    Length(usize),
}

impl Secret {
    /// Reads `whsec_` and base64.
    ///
    /// # Errors
    /// If it is not that.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(Malformed::Prefix)?;
        let key = STANDARD.decode(encoded).map_err(|_| Malformed::Base64)?;
        if !LENGTH.contains(&key.len()) {
            return Err(Malformed::Length(key.len()));
        }
        Webhook::from_bytes(key).map(Arc::new).map(Self).map_err(|_| Malformed::Base64)
    }

    /// `v1,…`; `None` for a payload that is not UTF-8.
    pub(crate) fn sign(&self, id: &str, seconds: i64, payload: &[u8]) -> Option<String> {
        self.0.sign(id, seconds, payload).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_one_signs_as_the_standard_says() {
        // The example of the Standard Webhooks specification.
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_bad_one_is_refused_and_not_repeated() {
        let refused = |text: &str| Secret::parse(text).err().unwrap();
        assert_eq!(refused("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Malformed::Prefix);
        assert_eq!(refused("whsec_canary!"), Malformed::Base64);
        assert_eq!(refused("whsec_Y2FuYXJ5"), Malformed::Length(6));
        for text in ["canary", "whsec_canary!", "whsec_Y2FuYXJ5"] {
            let message = refused(text).to_string();
            assert!(!message.contains("canary") && !message.contains("Y2FuYXJ5"), "{message}");
        }
    }
}
