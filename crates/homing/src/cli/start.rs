//! How this process begins and ends.
//!
//! Every command is a process of its own. Of the 2.3 to 3.0 ms that a short one takes, the standard library's own beginning would be 0.1 more: it reads the
//! map of the process's memory to find the stack, so that an overflow could be told from another wrong access. Without it an overflow is a
//! plain segmentation fault, and a panic does not name the main thread. What else it does, `homing_shim::bare` does.

use crate::cli::completion;
use crate::cli::entry;
use crate::cli::grammar;

/// What the standard library returns after a panic.
#[cfg(all(not(test), target_os = "linux", target_env = "gnu"))]
const PANICKED: u8 = 101;

/// Called by the C library, which has the arguments ready for `std::env`, in place of the standard library's `main`.
#[cfg(all(not(test), target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the name by which the C library calls it, which nothing else here has")]
#[expect(clippy::disallowed_methods, reason = "the end of main: what has to be ended in order has been")]
#[unsafe(no_mangle)]
extern "C" fn main() -> std::ffi::c_int {
    homing_shim::bare::begin();
    let code = std::panic::catch_unwind(run).unwrap_or(PANICKED);
    // Not returned: this writes what the standard output still holds.
    std::process::exit(code.into())
}

/// The first thing of this process: it is keeper, daemon or waker, answers a shell that completes, or does what the line says.
pub(crate) fn run() -> u8 {
    if let Some(code) = entry::dispatch() {
        return code;
    }
    completion::answer_shell();
    grammar::run()
}
