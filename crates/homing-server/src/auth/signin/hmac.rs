//! HMAC (RFC 2104) over SHA-256: who does not have the key can neither make nor change what it seals.

use homing_model::digest::sha256;

const BLOCK: usize = 64;

fn digest(data: &[u8]) -> [u8; 32] {
    let text = sha256(data);
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().as_chunks::<2>().0) {
        let digit = |letter: u8| (letter as char).to_digit(16).unwrap_or_default();
        *byte = u8::try_from(digit(pair[0]) * 16 + digit(pair[1])).unwrap_or_default();
    }
    bytes
}

/// The seal of a message under a key, in hexadecimal.
pub(super) fn hmac(key: &[u8], message: &[u8]) -> String {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner: Vec<u8> = block.iter().map(|byte| byte ^ 0x36).chain(message.iter().copied()).collect();
    let outer: Vec<u8> = block.iter().map(|byte| byte ^ 0x5c).chain(digest(&inner)).collect();
    sha256(&outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_examples() {
        // RFC 4231, cases 1, 2 and 6.
        for (key, message, seal) in [
            (
                &[0x0b; 20][..],
                &b"Hi There"[..],
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hmac(key, message), seal);
        }
    }
}
