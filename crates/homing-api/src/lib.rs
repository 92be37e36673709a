//! JSON bodies and the error catalogue that the server, its clients and the docs share.

pub mod attach;
mod detail;
mod inbox;
mod listener;
pub mod problem;
mod status;
mod stream;
mod tasks;

pub use detail::{AttemptInfo, TaskDetail};
pub use inbox::*;
pub use listener::*;
pub use problem::{Code, Problem};
pub use status::*;
pub use stream::*;
pub use tasks::*;
