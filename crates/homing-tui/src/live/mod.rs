//! A panel on a terminal, fed by a daemon.
//!
//! # Theory of operation
//! One loop owns the panel and the terminal. Everything else is a worker that sends it [`News`](news::News) and keeps nothing: one reads the events and asks for
//! the tasks that changed ([`feed`]), one follows the output that is shown ([`reader`]), one per line in sight waits for the next thing that its task prints
//! ([`glimpse`]). Nobody polls: each of them holds a question that the daemon answers when there is something to tell, with a pause after the answer, so that
//! tasks that print all the time cost no more than the pauses allow. After a drawing the panel says what is in sight, and workers for what no longer is are
//! dropped.
//!
//! The daemon may die at any instant. The event stream goes on after the last event that came, or begins anew with all tasks; outputs go on from their offsets.
//! Drawing is paced by what it costs ([`pace`]), and nothing is drawn when nothing changed. The terminal is given back as it was however the loop ends, by a panic too ([`screen`]).
//! A terminal that takes nothing holds up the picture and nothing else: what is drawn goes by an [`Outlet`], and once that was taken the picture is drawn as it is then.
//! A worker that panics ends the panel, with a word about it: what it told of would stand still, and nobody could see that ([`news`]).

mod doer;
mod feed;
mod glimpse;
mod input;
mod news;
mod outlet;
mod pace;
mod reader;
mod run;
mod screen;

pub use outlet::Outlet;
pub use run::{Commands, Describe, Error, Left, Setup, run};
