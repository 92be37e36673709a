//! Which boot of the machine this is.

/// The kernel's id of this boot, or an empty text where there is none.
#[must_use]
pub fn id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
