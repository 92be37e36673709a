//! Text, times and sizes as people write and read them.

pub mod foreign;
pub mod sanitize;
pub mod shell;
pub mod slip;
pub mod text;
pub mod time;
pub mod units;
pub mod unseen;
pub mod utf8;
pub mod words;
