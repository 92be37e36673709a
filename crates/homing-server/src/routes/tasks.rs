//! `/v1/tasks`: submit and list.

use std::collections::BTreeMap;

use axum::http::header::{HeaderValue, LOCATION};
use axum::http::{HeaderName, StatusCode};
use homing_engine::TaskFilter;
use homing_engine::{IdempotencyKey, Submission};
use homing_model::Spec;
use homing_model::reservation::Confirmer;

use crate::http::answer::{Answer, json, json_with};
use crate::http::call::{Call, OWNER};
use crate::http::refusal::Refusal;
use crate::http::route::{Kind, Parameter};
use homing_model::digest::sha256;

/// The largest submit.
pub(crate) const LIMIT: usize = 8 << 20;

/// The longest `Idempotency-Key`.
const LONGEST_KEY: usize = 255;

/// What makes a submit repeatable.
pub(crate) const IDEMPOTENCY_KEY: Parameter = Parameter::new(
    "Idempotency-Key",
    Kind::Text,
    "Same key and same body: the same task and the same answer, for 24 hours. Same key and another body is refused.",
);

/// Tasks on a page, where nobody says.
const PAGE: u32 = 100;

/// What a list can be narrowed by.
pub(crate) const LIST: &[Parameter] = &[
    Parameter::new("owner", Kind::Text, "Only tasks of this owner."),
    Parameter::new("status", Kind::Words, "Only tasks in one of these states, separated by commas."),
    Parameter::new(
        "label",
        Kind::Text,
        "Only tasks with this label, `K=V`; repeat it to ask for several at once.",
    )
    .repeated(),
    Parameter::new("limit", Kind::Number { least: 1, most: 1000 }, "At most so many; 100 if absent."),
    Parameter::new("cursor", Kind::Text, "`next_cursor` of the last page."),
];

/// What the headers of a page say.
pub(crate) const HEADERS: &[(&str, &str)] = &[(
    "Homing-As-Of",
    "The newest event when the page was read: `GET /v1/events?after=` it misses nothing.",
)];

/// `POST /v1/tasks`.
pub(crate) async fn submit(call: Call) -> Answer {
    let spec: Spec = call.json()?;
    confirm(&call, spec.owner.as_deref()).await?;
    let idempotency = idempotency_key(&call)?
        .map(|key| IdempotencyKey { key: key.to_owned(), body_hash: sha256(&call.body) });
    submitted(&call.app.engine.submit(spec, call.caller()?, idempotency).await?)
}

/// Confirms for the owner that a body names. The router has done so for the owner in the header.
pub(crate) async fn confirm(call: &Call, named: Option<&str>) -> Result<(), Refusal> {
    if let Some(owner) = named
        && call.scope.limited_to().is_none()
        && call.header(OWNER.name)? != named
    {
        call.app.engine.confirm(Confirmer::Owner(owner.to_owned())).await;
    }
    Ok(())
}

/// The key of a submit, if it has one.
pub(crate) fn idempotency_key(call: &Call) -> Result<Option<&str>, Refusal> {
    match call.header(IDEMPOTENCY_KEY.name)? {
        Some(key) if key.len() > LONGEST_KEY => {
            Err(Refusal::invalid(format!("`Idempotency-Key` is longer than {LONGEST_KEY} bytes")))
        }
        key => Ok(key),
    }
}

/// The answer of a submit.
pub(crate) fn submitted(submission: &Submission) -> Answer {
    let status = if submission.joined { StatusCode::OK } else { StatusCode::CREATED };
    let mut response = json_with(status, &submission.task)?;
    if let Ok(address) = HeaderValue::try_from(format!("/v1/tasks/{}", submission.task.id)) {
        response.headers_mut().insert(LOCATION, address);
    }
    Ok(response)
}

/// `GET /v1/tasks`.
pub(crate) async fn list(call: Call) -> Answer {
    let query = &call.query;
    let filter = TaskFilter {
        owner: query.text("owner").map(str::to_owned),
        statuses: query.words("status")?,
        labels: labels(query.all("label"))?,
        within: call.scope.limited_to().cloned(),
        limit: query.number("limit").and_then(|limit| u32::try_from(limit).ok()).unwrap_or(PAGE),
        cursor: query.text("cursor").map(str::to_owned),
    };
    let (page, as_of) = call.app.engine.list_as_of(filter).await?;
    let mut response = json(&page)?;
    response.headers_mut().insert(HeaderName::from_static("homing-as-of"), as_of.into());
    Ok(response)
}

fn labels<'a>(texts: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, String>, Refusal> {
    let mut labels = BTreeMap::new();
    for text in texts {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Refusal::invalid(format!("`label` is `{text}`, but must be K=V")));
        };
        if labels.insert(name.to_owned(), value.to_owned()).is_some_and(|earlier| earlier != value) {
            return Err(Refusal::invalid(format!(
                "`label` asks for two values of `{name}`, and no task has both"
            )));
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_pairs() {
        let read = labels(["a=b", "c=d=e", "f="].into_iter()).unwrap();
        assert_eq!(read.get("c").map(String::as_str), Some("d=e"));
        assert_eq!(read.len(), 3);
        for wrong in [vec!["a"], vec!["=b"], vec!["a=b", "a=c"]] {
            assert_eq!(labels(wrong.into_iter()).unwrap_err().problem().code, "HM0003");
        }
    }
}
