//! The owner's inbox: looked at, waited for, taken under a lease, acknowledged. Keeps P5 and P6.
//!
//! The transaction that ends a task writes its entry; an acknowledgement or a confirmed delivery
//! removes it. A taker that dies, or a daemon that dies while a request waits, changes nothing: the
//! lease ends by the clock, and the client repeats its request.

use std::time::Duration;

use homing_api::{AckAnswer, InboxAnswer, InboxOwner, Page, TakeRequest};
use homing_model::reservation::{Access, ConfirmedBy};
use homing_model::{Notice, NoticeId};
use homing_store::Take;

use crate::engine::Engine;
use crate::error::{Error, only};

/// Entries given at once, where the caller does not say.
const MOST: u32 = 100;
/// Owners given at once.
const OWNERS: u32 = 1_000;
/// How long a taker may think, where it does not say.
const LEASE_MS: u64 = 60_000;
/// No lease is longer: what is taken must come back one day.
const LONGEST_LEASE_MS: u64 = 24 * 3_600 * 1_000;

impl Engine {
    /// A page of the owners with something in the inbox, by name; the cursor is the last one of the page
    /// before.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn inbox_owners(&self, cursor: Option<String>) -> Result<Page<InboxOwner>, Error> {
        let mut waiting = self.inner.store.waiting(cursor.unwrap_or_default(), OWNERS + 1).await?;
        let more = waiting.len() > OWNERS as usize;
        waiting.truncate(OWNERS as usize);
        let next_cursor = waiting.last().filter(|_| more).map(|one| one.owner.clone());
        let items = waiting.into_iter().map(|one| InboxOwner { owner: one.owner, open: one.open }).collect();
        Ok(Page { items, next_cursor })
    }

    /// What waits for an owner, oldest first; with `wait`, as soon as there is something.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn inbox(&self, owner: &str, limit: Option<u32>, wait: Duration) -> Result<InboxAnswer, Error> {
        self.once_there(owner, limit.unwrap_or(MOST), wait, Access::Look, None).await
    }

    /// What a caller may take and hand to the owner, which is not woken meanwhile. What a waiter holds is not among it.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn await_inbox(
        &self,
        owner: &str,
        limit: Option<u32>,
        wait: Duration,
    ) -> Result<InboxAnswer, Error> {
        self.once_there(owner, limit.unwrap_or(MOST), wait, Access::Take, None).await
    }

    /// The same, for this taker alone until its lease ends; without waiting if no time is given. With `ids` or `confirm`, they are delivered.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn take(&self, owner: &str, request: TakeRequest) -> Result<InboxAnswer, Error> {
        let lease = request.lease_ms.unwrap_or(LEASE_MS).min(LONGEST_LEASE_MS);
        if !request.ids.is_empty() {
            let by = request.confirm.unwrap_or(ConfirmedBy::Call);
            let items = self.deliver(owner, request.ids, by, lease).await?;
            return Ok(InboxAnswer { items, more: false });
        }
        let limit = request.max.unwrap_or(MOST);
        let wait = Duration::from_millis(request.wait_ms.unwrap_or(0));
        let mut taken = self.once_there(owner, limit, wait, Access::Take, Some(lease)).await?;
        if let Some(by) = request.confirm {
            let ids = taken.items.iter().map(|notice| notice.id.clone()).collect();
            taken.items = self.deliver(owner, ids, by, lease).await?;
        }
        Ok(taken)
    }

    /// These notices were delivered to the owner. Answers with those that are there.
    async fn deliver(
        &self,
        owner: &str,
        ids: Vec<NoticeId>,
        by: ConfirmedBy,
        lease_ms: u64,
    ) -> Result<Vec<Notice>, Error> {
        let handed = self.handed(owner, by, None, lease_ms).await?;
        let take = Take::Delivered { ids, handed: handed.clone() };
        let given = self.inner.store.take(owner.to_owned(), take, self.inner.now()).await?;
        if !given.is_empty() {
            self.expect_confirmation(owner, &handed);
        }
        Ok(given)
    }

    /// Removes entries for good: by the notice's id or a unique start of it, or all of a task's.
    ///
    /// # Errors
    /// If an id is none, or the ledger cannot be written.
    pub async fn acknowledge(&self, owner: &str, ids: &[String]) -> Result<AckAnswer, Error> {
        let (mut notices, mut tasks) = (Vec::new(), Vec::new());
        for id in ids {
            if let Ok(notice) = id.parse::<NoticeId>() {
                // One that was acknowledged before is known, and twice is once; one that never was is a mistake.
                notices.push(self.notice_like(id, notice.to_string(), owner).await?);
                continue;
            }
            // A task may be called like the start of a notice; who means that can always write more of it.
            match (self.resolve(id, owner).await, NoticeId::start(id)) {
                (Err(Error::Unknown(_)), Some(start)) => {
                    notices.push(self.notice_like(id, start, owner).await?);
                }
                (Err(Error::Unknown(_)), None) if NoticeId::has_prefix(id) => {
                    return Err(Error::UnknownNotice(id.clone()));
                }
                (task, _) => {
                    let task = task?;
                    self.certain(id, &task).await?;
                    tasks.push(task);
                }
            }
        }
        let acknowledged = self.inner.store.acknowledge(owner.to_owned(), notices, tasks).await?;
        Ok(AckAnswer { acknowledged })
    }

    /// The only notice whose id begins so.
    async fn notice_like(&self, text: &str, start: String, owner: &str) -> Result<NoticeId, Error> {
        let unknown = || Error::UnknownNotice(text.to_owned());
        let found = self.inner.store.find_notices(start, owner.to_owned()).await?;
        only(found, text, "notices")?.ok_or_else(unknown)
    }

    /// Whether a caller waits to take what comes into an owner's inbox, so that the owner need not be woken.
    #[must_use]
    pub fn is_awaited(&self, owner: &str) -> bool {
        self.inner.inbox_waiters.any(owner)
    }

    /// Looks until there is something or the time is up, and takes it under a lease if one is given. Commits and the ends of leases wake it, no clock
    /// of its own does. A wait writes nothing.
    async fn once_there(
        &self,
        owner: &str,
        limit: u32,
        wait: Duration,
        access: Access,
        lease_ms: Option<u64>,
    ) -> Result<InboxAnswer, Error> {
        let end = tokio::time::Instant::now() + wait;
        let mut news = self.newest_event();
        // Before the first look: the owner counts as awaited for as long as this may take something.
        let _waiting = (access == Access::Take).then(|| self.inner.inbox_waiters.enter(owner));
        loop {
            // Marked as seen before the look: a commit after it wakes this again.
            news.mark_unchanged();
            let now = self.inner.now();
            let (store, whose) = (&self.inner.store, owner.to_owned());
            let first = if lease_ms.is_some() { 1 } else { limit };
            let mut there = store.peek(whose, first, access, now).await?;
            if let (Some(lease_ms), false) = (lease_ms, there.notices.is_empty()) {
                let until = now.after_millis(lease_ms);
                there.notices = store.take(owner.to_owned(), Take::Oldest { limit, until }, now).await?;
                // What was taken is not there for now.
                there.more = !store.peek(owner.to_owned(), 1, Access::Take, now).await?.notices.is_empty();
                if there.notices.is_empty() && tokio::time::Instant::now() < end {
                    // Another taker was first: look for the end of its lease.
                    continue;
                }
            }
            if !there.notices.is_empty() || tokio::time::Instant::now() >= end {
                return Ok(InboxAnswer { items: there.notices, more: there.more });
            }
            let lease = there.free_at.map(|at| {
                Duration::from_millis(u64::try_from(at.as_millis() - now.as_millis()).unwrap_or(0))
            });
            let wake = lease
                .map_or(end, |lease| end.min(tokio::time::Instant::now() + lease + Duration::from_millis(1)));
            tokio::select! {
                () = tokio::time::sleep_until(wake) => {}
                changed = news.changed() => changed.map_err(|_| Error::Closed)?,
            }
        }
    }
}
