//! The loopback listener and its token, as the daemon has them.

use homing_api::{ListenerInfo, ListenerRequest, PageAnswer, RotateAnswer};

use crate::transport::call::Call;
use crate::transport::client::Client;
use crate::transport::error::Error;
use crate::transport::query::Target;

impl Client {
    /// How the listener is.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn listener(&self) -> Result<ListenerInfo, Error> {
        self.persist(&Call::get(Target::new("/v1/listener"))).await?.json()
    }

    /// Turns the listener on: at this port, at any if it is 0, at the one it has or had if none is named. It stays on until it is turned off,
    /// through restarts of the daemon. May be repeated.
    ///
    /// # Errors
    /// If the port cannot be had, this caller may not, or nobody answered.
    pub async fn turn_listener_on(&self, port: Option<u16>) -> Result<ListenerInfo, Error> {
        self.send(&Call::post(Target::new("/v1/listener")).json(&ListenerRequest { port })?).await?.json()
    }

    /// Turns the listener off; its connections are cut.
    ///
    /// # Errors
    /// If this caller may not, or nobody answered.
    pub async fn turn_listener_off(&self) -> Result<ListenerInfo, Error> {
        self.send(&Call::delete(Target::new("/v1/listener"))).await?.json()
    }

    /// Turns the listener on and has an address made that signs a browser in, once and within a minute.
    ///
    /// # Errors
    /// If the listener cannot be opened, this caller may not, or nobody answered.
    pub async fn page(&self) -> Result<PageAnswer, Error> {
        self.send(&Call::post(Target::new("/v1/page"))).await?.json()
    }

    /// Has another token made; whoever came in by the old one is cut.
    ///
    /// # Errors
    /// If it cannot be made, this caller may not, or nobody answered.
    pub async fn rotate_token(&self) -> Result<RotateAnswer, Error> {
        self.send(&Call::post(Target::new("/v1/token/rotate"))).await?.json()
    }
}
