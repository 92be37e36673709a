//! The routes over a real engine, a real socket and real processes.

mod confine;
mod control;
mod events;
mod follow;
mod output;
mod served;
mod submit;
mod surface;
mod wait;
