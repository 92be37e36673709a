//! The page for a browser: plain files, served from the binary. Keeps P11.
//!
//! The files are what they are in this folder: no build step, nothing from elsewhere. They hold no secret and no data, and are served to whoever the gate lets in;
//! what they show they ask the API for, like any other client. Each has an etag of its bytes, so that a browser asks again and is told that
//! nothing changed. What every answer on the listener says to a browser is [`fence`].

mod assets;
mod fence;
pub(crate) mod refused;

pub(crate) use assets::mount;
pub use assets::paths;
pub(crate) use fence::fence;
