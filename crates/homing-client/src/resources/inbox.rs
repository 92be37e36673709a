//! What waits for an owner.

use homing_api::{AckAnswer, AckRequest, InboxAnswer, InboxOwner, Page, TakeRequest};
use std::time::Duration;

use crate::transport::call::Call;
use crate::transport::client::Client;
use crate::transport::error::Error;
use crate::transport::query::Target;

impl Client {
    /// All owners with something in the inbox, by name.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn inbox_owners(&self) -> Result<Vec<InboxOwner>, Error> {
        let (mut owners, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let target = Target::new("/v1/inbox").maybe("cursor", cursor.as_deref());
            let page: Page<InboxOwner> = self.persist(&Call::get(target)).await?.json()?;
            owners.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(owners);
            }
        }
    }

    /// Looks into an inbox, which changes nothing; with `wait`, as soon as something is there.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn inbox(&self, owner: &str, wait: Option<Duration>) -> Result<InboxAnswer, Error> {
        self.inbox_up_to(owner, None, wait).await
    }

    /// The same, with at most so many entries, and no more than 1,000; 100 if absent.
    ///
    /// # Errors
    /// If nobody answered.
    pub async fn inbox_up_to(
        &self,
        owner: &str,
        limit: Option<u32>,
        wait: Option<Duration>,
    ) -> Result<InboxAnswer, Error> {
        let target = Target::inbox(owner, "")
            .maybe("wait_ms", wait.map(|wait| wait.as_millis()))
            .maybe("limit", limit);
        self.persist(&Call::get(target)).await?.json()
    }

    /// Takes from an inbox under a lease. Repeated through a restart of the daemon: what a lost answer took is back when its lease ends.
    ///
    /// # Errors
    /// If it was refused, or nobody answered.
    pub async fn take(&self, owner: &str, request: &TakeRequest) -> Result<InboxAnswer, Error> {
        self.persist(&Call::post(Target::inbox(owner, "/take")).json(request)?).await?.json()
    }

    /// Acknowledges, by the ids of notices or of tasks. Twice is once, so it is repeated through a restart of the daemon.
    ///
    /// # Errors
    /// If an id is none, or nobody answered.
    pub async fn acknowledge(&self, owner: &str, ids: Vec<String>) -> Result<AckAnswer, Error> {
        self.persist(&Call::post(Target::inbox(owner, "/ack")).json(&AckRequest { ids })?).await?.json()
    }
}
