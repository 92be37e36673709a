//! Names of segments.

/// The file with the first bytes.
pub(super) const HEAD: &str = "output.log";

/// The name of the segment that begins at an offset.
pub(super) fn log_name(base: u64) -> String {
    if base == 0 { HEAD.to_owned() } else { format!("output.{base:016}.log") }
}

/// The name of its index.
pub(super) fn index_name(base: u64) -> String {
    if base == 0 { "output.idx".to_owned() } else { format!("output.{base:016}.idx") }
}

/// The offset at which the segment of that name begins; none if it is no segment.
pub(super) fn base_of(name: &[u8]) -> Option<u64> {
    if name == HEAD.as_bytes() {
        return Some(0);
    }
    let digits = name.strip_prefix(b"output.")?.strip_suffix(b".log")?;
    let all_digits = digits.len() >= 16 && digits.iter().all(u8::is_ascii_digit);
    if all_digits { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for base in [0, 1, 4096, u64::MAX] {
            assert_eq!(base_of(log_name(base).as_bytes()), Some(base));
        }
        for name in ["output.idx", "output.12.log", "output.log.gz", "env", "output.0000000000000001.idx"] {
            assert_eq!(base_of(name.as_bytes()), None, "{name}");
        }
    }
}
