//! Memory that is done with: what the C library keeps of it, and what stands in it.

use std::hint::black_box;

use crate::sys;

/// Gives memory that is no longer used back to the kernel. Takes milliseconds where there is much of it.
pub fn release() {
    sys::trim_memory();
}

/// Overwrites bytes that may hold a secret, as fast as memory is written.
pub fn overwrite(bytes: &mut [u8]) {
    bytes.fill(0);
    // Without a reader the compiler would leave the writing out.
    black_box(bytes);
}

/// The same for all that a vector has room for; it is empty then.
pub fn wipe(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.capacity(), 0);
    overwrite(bytes);
    bytes.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wiped_is_empty_and_keeps_its_room() {
        let mut bytes = b"hunter2".to_vec();
        let room = bytes.capacity();
        wipe(&mut bytes);
        assert!(bytes.is_empty() && bytes.capacity() == room);
    }
}
