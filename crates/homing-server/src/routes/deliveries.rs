//! `/v1/deliveries`: what went out, and sending it again.

use homing_engine::DeliveryQuery;
use homing_model::nesting::TaskAccess;

use crate::app::to_the_end;
use crate::http::answer::{Answer, json};
use crate::http::call::Call;
use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};

/// Which of them.
pub(crate) const QUERY: &[Parameter] = &[
    Parameter::new(
        "state",
        Kind::OneOf(&["pending", "delivered", "superseded", "dead"]),
        "Only in this state.",
    ),
    Parameter::new(
        "task",
        Kind::Text,
        "Only of this task: an id, a unique start of one, a name, or `@last`.",
    ),
    Parameter::new("owner", Kind::Text, "Only of this owner."),
    Parameter::new("limit", Kind::Number { least: 1, most: 1_000 }, "At most so many; 100 if absent."),
    Parameter::new("cursor", Kind::Text, "Where the last page ended."),
];

/// `GET /v1/deliveries`.
pub(crate) async fn list(call: Call) -> Answer {
    let task = match call.query.text("task") {
        Some(reference) => Some(call.resolve(reference, TaskAccess::Read).await?),
        None => {
            call.scope.may_look_around(call.name)?;
            None
        }
    };
    let state = call.query.text("state").and_then(|state| state.parse().ok());
    let query = DeliveryQuery {
        state,
        task,
        owner: call.query.text("owner").map(str::to_owned),
        limit: call.query.number("limit").and_then(|limit| u32::try_from(limit).ok()),
        cursor: call.query.text("cursor").map(str::to_owned),
    };
    json(&call.app.engine.deliveries(query).await?)
}

/// `POST /v1/deliveries/{ref}/redeliver`.
pub(crate) async fn redeliver(call: Call) -> Answer {
    call.may_configure()?;
    let which = call.reference.clone().ok_or_else(|| Refusal::invalid("this address names no delivery"))?;
    let owner = call.owner()?.to_owned();
    let engine = call.app.engine.clone();
    json(&to_the_end(async move { engine.redeliver(&which, &owner).await }).await?)
}
