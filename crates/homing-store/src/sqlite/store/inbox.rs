//! Inboxes of owners, reservations, and the sessions that read them.

use homing_model::NoticeInfo;
use homing_model::reservation::{Access, ConfirmedBy, Confirmer};
use homing_model::{AgentName, Notice, NoticeId, TaskId, Timestamp};

use super::SqliteStore;
use crate::outbox::{Available, Waiting};
use crate::reservation::{Handed, Take, Waiter};
use crate::session::{Bind, Binding, SessionClaim};
use crate::sqlite::notices::inbox;
use crate::sqlite::notices::publish;
use crate::sqlite::notices::reservations;
use crate::sqlite::sessions::bindings;
use crate::sqlite::tasks::find;
use crate::sqlite::threads::writer::Durability::{Full, Relaxed};
use crate::store::Inbox;
use crate::store::Op;

impl Inbox for SqliteStore {
    fn waiting(&self, after: String, limit: u32) -> Op<Vec<Waiting>> {
        self.reader.run(move |conn| inbox::waiting(conn, &after, limit))
    }

    fn peek(&self, owner: String, limit: u32, access: Access, now: Timestamp) -> Op<Available> {
        self.reader.run(move |conn| inbox::peek(conn, &owner, limit, access, now))
    }

    fn take(&self, owner: String, take: Take, now: Timestamp) -> Op<Vec<Notice>> {
        // What a power cut undoes is available again, as after any taker's death.
        self.writer.run(Relaxed, move |conn| inbox::take(conn, &owner, &take, now))
    }

    fn acknowledge(&self, owner: String, ids: Vec<NoticeId>, tasks: Vec<TaskId>) -> Op<Vec<NoticeId>> {
        self.writer.run_essential(Full, move |conn| inbox::acknowledge(conn, &owner, &ids, &tasks))
    }

    fn reserve(&self, waiter: Waiter, now: Timestamp) -> Op<()> {
        // What a power cut undoes, it undoes with the call.
        self.writer.run(Relaxed, move |conn| reservations::reserve(conn, &waiter, now))
    }

    fn release(&self, waiter: Waiter, delivered: Option<(Vec<TaskId>, Handed)>, now: Timestamp) -> Op<()> {
        self.writer.run(Relaxed, move |conn| reservations::release(conn, &waiter, delivered.as_ref(), now))
    }

    fn unconfirmed(&self, now: Timestamp) -> Op<Vec<(Confirmer, Timestamp)>> {
        self.reader.run(move |conn| reservations::unconfirmed(conn, now))
    }

    fn confirm(&self, confirmer: Confirmer, by: ConfirmedBy, now: Timestamp) -> Op<()> {
        self.writer.run_essential(Relaxed, move |conn| reservations::confirm(conn, &confirmer, by, now))
    }

    fn find_notices(&self, start: String, owner: String) -> Op<Vec<NoticeId>> {
        self.reader.run(move |conn| find::notices(conn, &start, &owner))
    }

    fn notices(&self, task: TaskId, limit: u32, now: Timestamp) -> Op<Vec<NoticeInfo>> {
        self.reader.run(move |conn| publish::of_task(conn, &task, limit, now))
    }

    fn bind(&self, bind: Bind) -> Op<()> {
        // What a power cut undoes, the end of the process undoes as well.
        self.writer.run(Relaxed, move |conn| bindings::bind(conn, &bind))
    }

    fn unbind(&self, binding: Binding, now: Timestamp) -> Op<bool> {
        self.writer.run(Relaxed, move |conn| bindings::unbind(conn, &binding, now))
    }

    fn claim_session(&self, claim: SessionClaim) -> Op<Option<String>> {
        self.writer.run(Relaxed, move |conn| bindings::claim(conn, &claim))
    }

    fn binding(&self, agent: AgentName, session: String) -> Op<Option<Binding>> {
        self.reader.run(move |conn| bindings::of_session(conn, &agent, &session))
    }

    fn bindings(&self, pids: Vec<u32>) -> Op<Vec<Binding>> {
        self.reader.run(move |conn| bindings::of_processes(conn, &pids))
    }
}
