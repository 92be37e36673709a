//! Lines without options, which are most of those that agents and scripts type: read as they are. To put a grammar together takes longer than
//! anything else before the daemon is asked, and such a line has nothing that it could say about it. The tests hold the two together.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The words of `homing run -- ARGV…` or `homing run ARGV…`, if there is nothing else on the line.
pub(crate) fn argv<'a>(arguments: &'a [OsString], command: &str) -> Option<&'a [OsString]> {
    let [_, name, words @ ..] = arguments else { return None };
    if name != command {
        return None;
    }
    let argv = match words {
        [first, argv @ ..] if first == "--" => argv,
        [first, ..] if is_word(first) => words,
        _ => return None,
    };
    (!argv.is_empty()).then_some(argv)
}

/// Whether it cannot be an option.
fn is_word(word: &OsString) -> bool {
    !word.as_bytes().starts_with(b"-")
}
