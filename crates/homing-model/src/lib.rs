//! The words of homing, and nothing that touches the world.
//!
//! Ids, states, outcomes, the task and event objects that every surface shows, the total transition table, and the
//! catalogue of problems with their advice. Nothing here reads a clock, a file, the environment or a random source:
//! such things come in as parameters, so that every rule in this crate can be tested exhaustively.

pub mod agent;
pub mod answer;
pub mod binding;
pub mod counts;
pub mod delivery;
pub mod digest;
pub mod environment;
pub mod event;
pub mod foreign;
pub mod id;
pub mod inbox;
pub mod mask;
pub mod meter;
pub mod nesting;
pub mod notice;
pub mod notify;
pub mod obvious;
pub mod operator;
pub mod outcome;
pub mod retention;
pub mod retry_after;
pub mod route;
pub mod sanitize;
pub mod schedule;
pub mod secret;
pub mod session;
pub mod shell;
pub mod signal;
pub mod slip;
pub mod spec;
pub mod splice;
pub mod status;
pub mod task;
pub mod terminal_size;
pub mod text;
pub mod time;
pub mod transition;
pub mod turn;
pub mod units;
pub mod unseen;
pub mod unsure;
pub mod utf8;
pub mod validate;
pub mod wake;
pub mod watch;

pub use agent::{AgentInfo, SubAgent};
pub use answer::{Answer, AnswerState};
pub use delivery::{Delivery, DeliveryState, Tried};
pub use event::{Event, EventKind};
pub use id::{Attempt, DeliveryId, NoticeId, Reference, TaskId};
pub use inbox::NoticeInfo;
pub use mask::Masks;
pub use notice::Notice;
pub use notify::{Notify, Target};
pub use outcome::{Ending, Outcome, StartError, Survivor, Verdict};
pub use route::{NoRoute, Route};
pub use session::{Agent, Pane, Session};
pub use spec::{OnDuplicate, OnExit, Rlimit, Secret, Spec, Stdin};
pub use status::Status;
pub use task::{InputWait, Kind, Progress, Task};
pub use terminal_size::TerminalSize;
pub use text::OsText;
pub use time::Timestamp;
pub use transition::{Rejected, Transition};
