//! `/v1/inbox`: what waits for an owner.
//!
//! Who takes or acknowledges acts for the owner that the address names, who has come back by that; who looks may be anybody.

use std::time::Duration;

use homing_api::{AckRequest, TakeRequest};
use homing_model::NoticeId;
use homing_model::nesting::TaskAccess;
use homing_model::reservation::Confirmer;

use crate::app::to_the_end;
use crate::http::answer::{Answer, json};
use crate::http::call::Call;
use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};

/// No answer is held back longer; whoever wants to wait on asks again.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// Ids in one request; each costs a look into the ledger. No answer has more entries.
const MAX_IDS: usize = 1_000;

/// The largest body: so many names of tasks, were each of their bytes escaped.
pub(crate) const LIMIT: usize = 2 << 20;

/// For the list of owners.
pub(crate) const OWNERS: &[Parameter] =
    &[Parameter::new("cursor", Kind::Text, "Where the last page, of 1,000 owners, ended.")];

/// For a look.
pub(crate) const QUERY: &[Parameter] = &[
    Parameter::new("wait_ms", Kind::ANY_NUMBER, "If there is nothing, wait this long for something."),
    Parameter::new(
        "reserve",
        Kind::Flag,
        "`true`: the caller will take what comes and hand it to the owner, an agent's session, which is not woken meanwhile.",
    ),
    Parameter::new("limit", Kind::Number { least: 1, most: 1_000 }, "At most so many; 100 if absent."),
];

/// `GET /v1/inbox`.
pub(crate) async fn owners(call: Call) -> Answer {
    call.scope.may_look_around(call.name)?;
    json(&call.app.engine.inbox_owners(call.query.text("cursor").map(str::to_owned)).await?)
}

/// `GET /v1/inbox/{owner}`.
pub(crate) async fn peek(call: Call) -> Answer {
    call.scope.may_use_inbox(call.name, owner(&call)?)?;
    let wait = call.query.millis("wait_ms").unwrap_or_default().min(LONGEST_WAIT);
    let limit = call.query.number("limit").and_then(|limit| u32::try_from(limit).ok());
    let owner = owner(&call)?;
    let answer = match call.query.flag("reserve") {
        Some(true) => call.app.engine.await_inbox(owner, limit, wait).await?,
        Some(false) | None => call.app.engine.inbox(owner, limit, wait).await?,
    };
    json(&answer)
}

/// `POST /v1/inbox/{owner}/take`.
pub(crate) async fn take(call: Call) -> Answer {
    let mut request =
        if call.body.trim_ascii().is_empty() { TakeRequest::default() } else { call.json::<TakeRequest>()? };
    if request.max.is_some_and(|max| !(1..=1_000).contains(&max)) {
        return Err(Refusal::invalid("`max` must be between 1 and 1000"));
    }
    let longest = u64::try_from(LONGEST_WAIT.as_millis()).unwrap_or(u64::MAX);
    request.wait_ms = request.wait_ms.map(|wait| wait.min(longest));
    bounded(&request.ids)?;
    let (owner, engine) = (owner(&call)?.to_owned(), call.app.engine.clone());
    call.scope.may_use_inbox(call.name, &owner)?;
    if !request.ids.is_empty() {
        return json(&to_the_end(async move { engine.take(&owner, request).await }).await?);
    }
    engine.confirm(Confirmer::Owner(owner.clone())).await;
    json(&engine.take(&owner, request).await?)
}

/// `POST /v1/inbox/{owner}/ack`.
pub(crate) async fn acknowledge(call: Call) -> Answer {
    let mut request = call.json::<AckRequest>()?;
    bounded(&request.ids)?;
    let owner = owner(&call)?.to_owned();
    let engine = call.app.engine.clone();
    if let Err(refusal) = call.scope.may_use_inbox(call.name, &owner) {
        // Whose inbox it is does not matter for what the caller started itself.
        for id in &mut request.ids {
            if id.parse::<NoticeId>().is_ok() {
                return Err(refusal.into());
            }
            // To the owner of the inbox the same words may mean another task.
            *id = call.certain(id, TaskAccess::Dispose).await?.to_string();
        }
    } else {
        engine.confirm(Confirmer::Owner(owner.clone())).await;
    }
    json(&to_the_end(async move { engine.acknowledge(&owner, &request.ids).await }).await?)
}

fn bounded<T>(ids: &[T]) -> Result<(), Refusal> {
    if ids.len() > MAX_IDS {
        let count = ids.len();
        return Err(Refusal::invalid(format!(
            "`ids` has {count} ids: send at most {MAX_IDS} in one request"
        )));
    }
    Ok(())
}

/// Whose inbox the address names.
fn owner(call: &Call) -> Result<&str, Refusal> {
    call.reference.as_deref().ok_or_else(|| Refusal::invalid("this address names no owner"))
}
