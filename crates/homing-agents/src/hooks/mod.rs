//! The hooks that agents call at the turns of their own life.

mod event;
mod input;

pub use event::{Event, context};
pub use input::{Input, parse};

/// What an agent's hooks are like.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hooks {
    /// The variable in which the agent gives a hook its own process id.
    pub process: Option<&'static str>,
    /// What the agent reports as the answer of a turn that had none. It drops the prompt of such a turn, and with it what its hooks have
    /// added. It reports the answer of the whole turn at each of its ends.
    pub no_answer: Option<&'static str>,
    /// homing's plugin in the agent wakes the session itself: a waiter only reports that there is something.
    pub plugin_wakes: bool,
}
