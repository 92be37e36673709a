//! One request as a handler sees it: read, bounded, and with its parameters checked.

use axum::http::HeaderMap;
use bytes::Bytes;
use homing_api::Code;
use homing_engine::{Caller, CallerScope};
use homing_model::TaskId;
use homing_model::environment::DEFAULT_OWNER;
use homing_model::nesting::TaskAccess;
use homing_sys::process::ProcessId;
use hyper::upgrade::OnUpgrade;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::http::body;
use crate::http::query::Query;
use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};
use crate::http::upgrade::Handover;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// On the Unix socket: a process of the same user.
    Local {
        /// Which; none that means anything here if it is in another pid namespace.
        process: Option<ProcessId>,
    },
    /// A program with the token or a browser, on the loopback listener.
    Network,
}

/// Who calls.
pub(crate) const OWNER: Parameter = Parameter::new(
    "Homing-Owner",
    Kind::Text,
    "Who calls: whose task a submit is, and whose `@last`; `user` if absent.",
);

/// Where a stream was left.
pub(crate) const LAST_EVENT_ID: Parameter = Parameter::new(
    "Last-Event-ID",
    Kind::ANY_NUMBER,
    "The id of the last event seen: the stream goes on after it.",
);

/// One request.
pub(crate) struct Call {
    pub(crate) app: App,
    pub(crate) peer: Peer,
    /// What the caller did, by the name of the command, for messages.
    pub(crate) name: &'static str,
    /// What the tasks that the caller's process runs in let it do.
    pub(crate) scope: CallerScope,
    /// What the path names (`{ref}`, `{owner}`, `{id}`), decoded.
    pub(crate) reference: Option<String>,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    /// Empty for a route that takes none.
    pub(crate) body: Bytes,
    /// What the connection becomes, if the request asks for it to become something else.
    pub(crate) upgrade: Option<OnUpgrade>,
    /// Takes what is to be done with it then.
    pub(crate) handover: Option<Handover>,
}

impl Call {
    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let Some(value) = self.headers.get(name) else { return Ok(None) };
        match std::str::from_utf8(value.as_bytes()) {
            Ok("") => Ok(None),
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Refusal::invalid(format!("the header `{name}` is not UTF-8"))),
        }
    }

    /// Who calls, as far as the engine wants to know.
    pub(crate) fn caller(&self) -> Result<Caller, Refusal> {
        let owner = self.header(OWNER.name)?.map(str::to_owned);
        let local = matches!(self.peer, Peer::Local { .. });
        Ok(Caller { owner, scope: self.scope.clone(), local })
    }

    /// Whose tasks `@last` means.
    pub(crate) fn owner(&self) -> Result<&str, Refusal> {
        Ok(self.header(OWNER.name)?.unwrap_or(DEFAULT_OWNER))
    }

    /// The task that the path names, if the caller may do this with it. What changes it needs more than a letter.
    pub(crate) async fn task(&self, access: TaskAccess) -> Result<TaskId, Refusal> {
        match access {
            TaskAccess::Read => self.resolve(self.named()?, access).await,
            TaskAccess::Control | TaskAccess::Dispose => self.certain(self.named()?, access).await,
        }
    }

    /// The same as [`Self::resolve`], where the text is enough of an id to do something by.
    pub(crate) async fn certain(&self, reference: &str, access: TaskAccess) -> Result<TaskId, Refusal> {
        let id = self.resolve(reference, access).await?;
        self.app.engine.certain(reference, &id).await?;
        Ok(id)
    }

    /// What the path names.
    pub(crate) fn named(&self) -> Result<&str, Refusal> {
        self.reference.as_deref().ok_or_else(|| Refusal::new(Code::Internal, "this address names no task"))
    }

    /// The task that a text names, if the caller may do this with it. A whole id needs no look: whatever is asked of it says if there is
    /// none.
    pub(crate) async fn resolve(&self, reference: &str, access: TaskAccess) -> Result<TaskId, Refusal> {
        let id = match reference.parse() {
            Ok(id) => id,
            Err(_) => self.app.engine.resolve(reference, self.owner()?).await?,
        };
        self.permit(access, &id).await?;
        Ok(id)
    }

    /// What the path names, where that is an external task of this owner; inside a task, one that the caller may steer.
    pub(crate) async fn own_external(&self, owner: &str) -> Result<String, Refusal> {
        let reference = self.named()?;
        if self.scope.limited_to().is_some() {
            let id = self.app.engine.external_task(reference, owner).await?;
            self.permit(TaskAccess::Control, &id).await?;
        }
        Ok(reference.to_owned())
    }

    /// Whether the caller may do this with a task.
    pub(crate) async fn permit(&self, access: TaskAccess, task: &TaskId) -> Result<(), Refusal> {
        Ok(self.app.engine.permit(&self.scope, self.owner()?, access, self.name, task).await?)
    }

    /// Whether the caller may change what concerns everybody.
    pub(crate) fn may_configure(&self) -> Result<(), Refusal> {
        Ok(self.scope.may_configure(self.name)?)
    }

    /// The body as a JSON object.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        body::json(&self.body)
    }

    /// Where a stream was left: `Last-Event-ID`, if it is there.
    pub(crate) fn last_event_id(&self) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.header(LAST_EVENT_ID.name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            Refusal::invalid(format!("`Last-Event-ID` is `{text}`, which is not a cursor of ours"))
        })
    }
}
