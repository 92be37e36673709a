//! Which boot of the machine this is.

use std::io;

/// The kernel's id of this boot, or an empty text where it has none.
///
/// # Errors
/// If it cannot be read now, for want of descriptors for instance: that says nothing of a boot.
pub fn id() -> io::Result<String> {
    match std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(id) => Ok(id.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}
