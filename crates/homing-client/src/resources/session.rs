//! Sessions of agents, and what was delivered to them.

use homing_api::{InboxAnswer, TakeRequest};
use homing_model::NoticeId;
use homing_model::binding::{BindRequest, SessionInfo};
use homing_model::reservation::ConfirmedBy;
use std::time::Duration;

use crate::transport::call::Call;
use crate::transport::client::Client;
use crate::transport::error::Error;
use crate::transport::query::Target;

impl Client {
    /// Which session of an agent this process is in, by its ancestors.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn session(&self) -> Result<Option<SessionInfo>, Error> {
        self.persist(&Call::get(Target::new("/v1/session"))).await?.json()
    }

    /// What is known of the session that an owner is.
    ///
    /// # Errors
    /// If the owner is none, or nobody answered.
    pub async fn session_of(&self, owner: &str) -> Result<SessionInfo, Error> {
        self.persist(&Call::get(Target::session(owner))).await?.json()
    }

    /// Says which session an agent, whose hook this process is, is in. To be asked of an [nameless](Client::nameless) client: a session
    /// that begins anew has not yet heard what was told to it before.
    ///
    /// # Errors
    /// If it was refused, or nobody answered.
    pub async fn bind_session(&self, request: &BindRequest) -> Result<SessionInfo, Error> {
        self.send(&Call::post(Target::new("/v1/sessions")).json(request)?).await?.json()
    }

    /// Says that a session has ended in its process.
    ///
    /// # Errors
    /// If it was refused, or nobody answered.
    pub async fn unbind_session(&self, owner: &str) -> Result<(), Error> {
        self.send(&Call::delete(Target::session(owner))).await.map(drop)
    }

    /// Looks into an inbox as a hook that will wake its owner with what comes: returns when there is something, or the time is up. Not
    /// repeated: whoever waits decides whether it still should.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn await_inbox(&self, owner: &str, wait: Duration) -> Result<InboxAnswer, Error> {
        let target = Target::inbox(owner, "").with("wait_ms", wait.as_millis().to_string());
        self.send(&Call::get(target.with("reserve", "true").with("limit", "1"))).await?.json()
    }

    /// Says that a hook has printed these notices for the owner, whose turn's end confirms them; answers with those that were there. Twice is once,
    /// so it is repeated through a restart of the daemon.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn deliver(
        &self,
        owner: &str,
        ids: Vec<NoticeId>,
        lease: Duration,
    ) -> Result<InboxAnswer, Error> {
        let lease_ms = u64::try_from(lease.as_millis()).ok();
        let request =
            TakeRequest { ids, lease_ms, confirm: Some(ConfirmedBy::Turn), ..TakeRequest::default() };
        self.take(owner, &request).await
    }
}
