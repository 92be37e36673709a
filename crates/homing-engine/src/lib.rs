//! Runs tasks and accounts for them: a library with an injected store, clock and home, and no globals.
//!
//! # Theory of operation
//!
//! A submit is checked, given a folder, recorded durably in the ledger, and handed to the keeper, which forks a shim for it. From then on one
//! [attendant](attend) per task listens to its shim and records what it says. What the shim says is enough; nothing polls.
//!
//! When an engine opens a home, it [adopts](adopt) what an earlier one left: it connects to the shims that live, and [judges](judge) by the facts on
//! disk where none does. A periodic [pass](reconcile) is only the safety net.
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

mod adopt;
mod advice;
mod agent;
mod ancestry;
mod aside;
mod attend;
mod builder;
mod clock;
pub mod config;
mod deliveries;
mod ending;
mod ends;
mod engine;
mod entropy;
mod error;
mod exec;
mod external;
mod growth;
mod guard;
mod home;
mod hook;
mod inbox;
mod input;
mod insist;
mod judge;
mod keeper;
mod launch;
mod live;
pub mod metrics;
mod misconfigured;
mod nesting;
mod orphans;
mod output;
mod pause;
mod progress;
mod query;
mod question;
mod reconcile;
mod report;
mod rerun;
mod resize;
mod retention;
mod routes;
mod session;
mod shutdown;
mod stop;
mod submit;
mod takers;
mod thaw;
mod view;
mod wait;
mod watch;

pub use ancestry::{Ancestry, Unplaced};
pub use aside::aside;
pub use builder::{Builder, OpenError};
pub use clock::{Clock, Sleep, SystemClock};
pub use config::{Config, ConfigError};
pub use deliveries::DeliveryQuery;
pub use engine::Engine;
pub use error::Error;
pub use exec::{Exec, ExecOutcome};
pub use home::{HomeError, prepare as prepare_home};
pub use hook::Handler;
pub use keeper::report_start_failure;
pub use metrics::Figures;
pub use nesting::Standing;
pub use output::{OutputPart, OutputQuery};
pub use query::Snapshot;
pub use question::Question;
pub use resize::{LARGEST_SIZE, Size};
pub use routes::{InboxOnly, Routes};
pub use submit::{Caller, IdempotencyKey, Submission};
pub use wait::WaitMode;
