//! The terminal of a command that stays with a task: keys, signals, stdin, screens.

pub(crate) mod alternate_screen;
pub(crate) mod foreground;
mod foreground_loop;
pub(crate) mod interactive;
pub(crate) mod interrupts;
pub(crate) mod keyboard;
pub(crate) mod keys;
pub(crate) mod nonblocking_stdio;
pub(crate) mod screen;
pub(crate) mod session_wait;
pub(crate) mod stdin_pump;
pub(crate) mod stdout_closed;
mod task_output;
pub(crate) mod terminal_size;
