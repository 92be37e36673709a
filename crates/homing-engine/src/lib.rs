//! Runs tasks and accounts for them: a library with an injected store, clock and home, and no globals.
//!
//! # Theory of operation
//!
//! [Admission](admission) turns a request into an accepted task, makes its folder and commits its row. The [scheduler] starts it: it hands the
//! attempt to the keeper, which forks a shim. From then on one [attendant](supervisor) per task listens to its shim and records what it says. What
//! the shim says is enough; nothing polls.
//!
//! When an engine opens a home, it [adopts](recovery::adopt) what an earlier one left: it connects to the shims that live, and [recovers](supervisor::recover) by the facts on
//! disk where none does. A periodic [pass](recovery::reconcile) is only the safety net.
//!
//! Many engines can live in one process, each with its own home. A program that embeds one calls `homing_shim::dispatch` as the first line of `main`:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use homing_engine::{Engine, ExecOutcome};
//! use homing_model::Spec;
//!
//! let engine = Engine::builder("/tmp/example-home").open().await?;
//! let spec = Spec { shell: Some("sleep 2; echo done".into()), ..Spec::default() };
//! match engine.exec(spec).background_after(Duration::from_secs(1)).await? {
//!     ExecOutcome::Completed(task) => println!("{}", task.status),
//!     ExecOutcome::Backgrounded { task, next_offset, .. } => println!("{} goes on from byte {next_offset}", task.id),
//! }
//! # Ok(()) }
//! ```

mod admission;
mod advice;
mod agent;
mod background;
mod builder;
mod clock;
pub mod config;
mod control;
mod engine;
mod entropy;
mod error;
mod external;
mod home;
mod home_watch;
mod inbox;
mod outbox;
mod query;
mod recovery;
mod retention;
mod run_blocking;
mod scheduler;
mod supervisor;
mod watch;

pub use admission::ancestry::{Ancestry, Unplaced};
pub use admission::caller_scope::CallerScope;
pub use admission::exec::{Exec, ExecOutcome};
pub use admission::submit::{Caller, IdempotencyKey, Submission};
pub use background::{Background, Reporter};
pub use builder::{Builder, OpenError};
pub use clock::{Clock, Sleep, SystemClock};
pub use config::{Config, ConfigError};
pub use control::resize::{LARGEST_SIZE, Size};
pub use engine::Engine;
pub use error::Error;
pub use home::{HomeError, prepare as prepare_home};
pub use homing_store::outbox::Claimed;
pub use inbox::reservations::ReservedWait;
pub use outbox::deliveries::DeliveryQuery;
pub use outbox::transport::{AttemptResult, BoxFuture, Transport, no_transport};
pub use query::lookup::Snapshot;
pub use query::metrics::{self, Figures};
pub use query::output::{OutputPart, OutputQuery};
pub use query::wait::WaitMode;
pub use run_blocking::run_blocking;

// What the surfaces say to the engine, and get from it, in types of the layers below.
pub use homing_shim::output::{FIRST_SIZE, SizeMark, Stream};
pub use homing_shim::wire::MAX_PIECE as MAX_INPUT_PIECE;
pub use homing_store::Work as LedgerWork;
pub use homing_store::sqlite::RESERVE as EMERGENCY_SPACE_BYTES;
pub use homing_store::sqlite::disk::filesystem::network as network_filesystem;
pub use homing_store::store::{EventFilter, Filter as TaskFilter};
pub use supervisor::keeper::report_start_failure;
