//! Wears homing down: tasks with a known truth, sessions of agents, receivers and readers of every mood, and `kill -9` of whatever stands behind them, at random
//! moments. Afterwards the history is judged ([`checker`]).
//!
//! `cargo xtask soak [KILLS [SEED]]`, `--minutes N [SEED]`; `--webhooks ROUNDS [SEED]` and `--events COUNT [SEED]` do one thing only.

mod books;
mod checker;
mod external;
mod field;
mod heard;
mod interrupt;
mod load;
mod readers;
mod receivers;
mod sessions;
mod stand_ins;
mod story;
mod victim;
mod wear;

pub(crate) use wear::main;
