//! The panel as other programs see it: messages in, cells out.

mod behaviour;
mod fuzz;
mod hostile;
mod looks;
mod stage;
