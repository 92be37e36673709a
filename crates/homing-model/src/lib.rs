//! The domain of homing: ids, states, outcomes, notices, policies, and the total transition table.
//!
//! Everything here is pure. Clocks, files, environment and randomness come in as parameters, so that every rule can be
//! tested exhaustively.

mod callers;
mod format;
pub mod meter;
mod notices;
pub mod queue;
mod secrets;
mod tasks;
pub mod watch;

pub use callers::{nesting, unsure};
pub use format::{foreign, sanitize, shell, slip, text, time, units, unseen, utf8, words};
pub use notices::{
    binding, channel, delivery, event, inbox, notice, notify, operator, order, reservation, route, schedule,
    session, turn, wake,
};
pub use secrets::{digest, mask, obvious, secret, splice};
pub use tasks::{
    agent, answer, counts, environment, id, outcome, retention, signal, spec, status, task, terminal_size,
    transition, validate,
};

pub use agent::{AgentInfo, SubAgent};
pub use answer::{Answer, AnswerState};
pub use channel::Channel;
pub use delivery::{Delivery, DeliveryState, Tried};
pub use event::{Event, EventKind};
pub use id::{Attempt, DeliveryId, NoticeId, Reference, TaskId};
pub use inbox::NoticeInfo;
pub use mask::Masks;
pub use notice::Notice;
pub use notify::{Notify, Target};
pub use order::WakeOrder;
pub use outcome::{Ending, Outcome, StartError, Survivor, Verdict};
pub use route::{NoRoute, Route};
pub use session::{AgentName, Pane, Session};
pub use spec::{OnDuplicate, OnExit, Rlimit, Secret, Spec, Stdin};
pub use status::Status;
pub use task::{InputWait, Kind, Progress, Task};
pub use terminal_size::TerminalSize;
pub use text::OsText;
pub use time::Timestamp;
pub use transition::{Rejected, Transition};
