//! What every request may use: the engine, and the switch that ends the daemon.

use std::future::Future;
use std::sync::Arc;

use homing_api::Code;
use homing_engine::Engine;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::http::refusal::Refusal;
use crate::http::traffic::Traffic;
use crate::memory::Bodies;
use crate::net::listener::Listener;
use crate::reload::Reloader;
use crate::routes::attach::Stages;
use crate::settings::Settings;

/// Shared by all requests; cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) engine: Engine,
    /// Rung when a caller asks for the daemon's end.
    pub(crate) asked: Arc<Notify>,
    pub(crate) shutdown: CancellationToken,
    /// The listener on TCP.
    pub(crate) listener: Listener,
    /// Where the engine's configuration comes from, if it is from a file.
    pub(crate) settings: Option<Arc<Settings>>,
    /// What puts a changed configuration in force, if it is from a file.
    pub(crate) reloader: Option<Arc<Reloader>>,
    /// How much is asked.
    pub(crate) traffic: Arc<Traffic>,
    /// Told of large bodies.
    pub(crate) bodies: Bodies,
    /// Terminals that somebody is attached to.
    pub(crate) stages: Stages,
}

/// Runs `work` to its end even if the caller goes away in the middle, which drops everything that merely waits: a stop
/// dropped between its record and its message would be sent only when the task is adopted anew.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, homing_engine::Error>> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::spawn(work).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(Refusal::new(Code::Internal, format!("the request was not carried out: {error}"))),
    }
}
