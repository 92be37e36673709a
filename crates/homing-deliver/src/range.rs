//! A range of addresses: `10.0.0.0/8`, `fd00::/8`.

use std::net::IpAddr;
use std::str::FromStr;

/// All addresses whose first bits are these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    bits: u128,
    /// Of 128; an IPv4 range counts its bits from the same end.
    length: u32,
    v4: bool,
}

impl Range {
    /// An IPv4 range.
    pub(crate) const fn v4(octets: [u8; 4], length: u32) -> Self {
        assert!(length <= 32);
        Self { bits: (u32::from_be_bytes(octets) as u128) << 96, length, v4: true }
    }

    /// An IPv6 range.
    pub(crate) const fn v6(segments: [u16; 8], length: u32) -> Self {
        assert!(length <= 128);
        let mut bits = 0;
        let mut index = 0;
        while index < 8 {
            bits = bits << 16 | segments[index] as u128;
            index += 1;
        }
        Self { bits, length, v4: false }
    }

    /// Whether it is in there. An IPv4 address is in no IPv6 range.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        self.v4 == address.is_ipv4() && self.same_start(left_aligned(address))
    }

    fn same_start(self, bits: u128) -> bool {
        // A shift by all 128 bits has no result: a range of length 0 holds everything.
        (self.bits ^ bits).checked_shr(128 - self.length).unwrap_or(0) == 0
    }
}

fn left_aligned(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Not a range.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A bare address is the range of itself alone.
impl FromStr for Range {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| Malformed)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            Some(text) => text.parse().ok().filter(|length| *length <= most).ok_or(Malformed)?,
            None => most,
        };
        let range = Self { bits: left_aligned(address), length, v4: address.is_ipv4() };
        // `10.1.2.3/8` is a slip more often than a wish for all of 10.0.0.0/8.
        let beyond = range.bits.checked_shl(length).unwrap_or(0);
        if beyond == 0 { Ok(range) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_holds_its_first_and_last_address_and_no_neighbour() {
        let range: Range = "172.16.0.0/12".parse().unwrap();
        for (text, inside) in [
            ("172.15.255.255", false),
            ("172.16.0.0", true),
            ("172.31.255.255", true),
            ("172.32.0.0", false),
            ("::ac10:0", false),
        ] {
            assert_eq!(range.contains(text.parse().unwrap()), inside, "{text}");
        }
        assert!("0.0.0.0/0".parse::<Range>().unwrap().contains("9.9.9.9".parse().unwrap()));
        assert!("::/0".parse::<Range>().unwrap().contains("ff02::1".parse().unwrap()));
        assert!("::1".parse::<Range>().unwrap().contains("::1".parse().unwrap()));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in
            ["", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.1.2.3/8", "::1/64", "host/8", "10.0/8"]
        {
            assert_eq!(text.parse::<Range>(), Err(Malformed), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_range_holds_what_shares_its_start(bits: u32, length in 0u32..=32, other: u32) {
            let start = bits.checked_shl(32 - length).unwrap_or(0);
            let range = Range::v4(start.to_be_bytes(), length);
            let inside = (start ^ other).checked_shr(32 - length).unwrap_or(0) == 0;
            prop_assert_eq!(range.contains(IpAddr::from(other.to_be_bytes())), inside);
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Range>();
        }
    }
}
