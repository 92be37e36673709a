//! The daemon itself: how it is, tidying up, stopping it.

use homing_api::{GcAnswer, ReloadAnswer, StatusAnswer};

use crate::transport::call::Call;
use crate::transport::client::{Client, Way};
use crate::transport::error::Error;
use crate::transport::query::Target;
use crate::transport::socket;

impl Client {
    /// How the daemon is.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn status(&self) -> Result<StatusAnswer, Error> {
        self.persist(&Call::get(Target::new("/v1/status"))).await?.json()
    }

    /// Whether it serves at all.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn healthy(&self) -> Result<(), Error> {
        self.send(&Call::get(Target::new("/healthz"))).await.map(drop)
    }

    /// The process that listens on the home's socket, whether it answers or not.
    pub async fn listener_pid(&self) -> Option<u32> {
        let Way::Socket { home, .. } = &self.inner.way else { return None };
        let pid = socket::connect(home).await.ok()?.peer_cred().ok()?.pid()?;
        // None that means anything here if it is in another pid namespace.
        u32::try_from(pid).ok().filter(|pid| *pid > 0)
    }

    /// Drops what is past its retention now.
    ///
    /// # Errors
    /// If the store failed, or nobody answered.
    pub async fn gc(&self) -> Result<GcAnswer, Error> {
        self.send(&Call::post(Target::new("/v1/gc"))).await?.json()
    }

    /// Has it read its configuration again.
    ///
    /// # Errors
    /// If the file is broken, which changes nothing, or nobody answered.
    pub async fn reload_configuration(&self) -> Result<ReloadAnswer, Error> {
        self.send(&Call::post(Target::new("/v1/config/reload"))).await?.json()
    }

    /// Asks the daemon to end, and to stay ended; tasks run on. It has not ended yet when this returns.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn stop_daemon(&self) -> Result<(), Error> {
        self.send(&Call::post(Target::new("/v1/daemon/stop"))).await.map(drop)
    }
}
