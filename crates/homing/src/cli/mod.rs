//! The command line: its grammar, what it completes, how it fails and what it returns.

pub(crate) mod command_aliases;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod entry;
pub(crate) mod exit_code;
pub(crate) mod failure;
pub(crate) mod grammar;
#[cfg(test)]
pub(crate) mod man;
#[cfg(test)]
pub(crate) mod reference;
pub(crate) mod shell_words;
pub(crate) mod unread_stdin;
pub(crate) mod usage;
pub(crate) mod usage_wording;
