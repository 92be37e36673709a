//! Tasks: submit, list, look at, forget.

use homing_api::{Page, ProgressRequest, RerunRequest, TaskDetail};
use homing_model::{Spec, Status, Task};
use http::StatusCode;

use crate::transport::call::{Answer, Call};
use crate::transport::client::Client;
use crate::transport::error::Error;
use crate::transport::query::Target;

/// What became of a submit.
#[derive(Debug, Clone, PartialEq)]
pub struct Submitted {
    /// The task.
    pub task: Task,
    /// It was there before: the submit joined it.
    pub joined: bool,
}

impl Submitted {
    fn from_answer(answer: &Answer) -> Result<Self, Error> {
        Ok(Self { task: answer.json()?, joined: answer.status == StatusCode::OK })
    }
}

/// Which tasks to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListQuery {
    /// Of this owner.
    pub owner: Option<String>,
    /// In one of these states; any if empty.
    pub statuses: Vec<Status>,
    /// With all these labels, each `K=V`.
    pub labels: Vec<String>,
    /// At most so many.
    pub limit: Option<u32>,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

impl Client {
    /// Submits a task. With an idempotency key it is repeated through a restart of the daemon, and still one task.
    ///
    /// # Errors
    /// If it was refused, or nobody answered; without a key [`Error::Broken`] leaves open whether it was accepted.
    pub async fn submit(&self, spec: &Spec, idempotency_key: Option<&str>) -> Result<Submitted, Error> {
        let call = Call::post(Target::new("/v1/tasks")).json(spec)?.idempotent(idempotency_key);
        let answer =
            if idempotency_key.is_some() { self.persist(&call).await? } else { self.send(&call).await? };
        Submitted::from_answer(&answer)
    }

    /// Runs a task again, as a new one. With an idempotency key it is repeated through a restart of the daemon, and still one task.
    ///
    /// # Errors
    /// If what is kept of it does not suffice, or it was refused, or nobody answered.
    pub async fn rerun(
        &self,
        reference: &str,
        request: &RerunRequest,
        idempotency_key: Option<&str>,
    ) -> Result<Submitted, Error> {
        let call = Call::post(Target::task(reference, "/rerun")).json(request)?.idempotent(idempotency_key);
        let answer =
            if idempotency_key.is_some() { self.persist(&call).await? } else { self.send(&call).await? };
        Submitted::from_answer(&answer)
    }

    /// A page of tasks: live ones first, then ended ones, each newest first.
    ///
    /// # Errors
    /// If it was refused, or nobody answered.
    pub async fn list(&self, query: &ListQuery) -> Result<Page<Task>, Error> {
        let statuses = query.statuses.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(",");
        let mut target = Target::new("/v1/tasks")
            .maybe("owner", query.owner.as_deref())
            .maybe("status", (!statuses.is_empty()).then_some(statuses));
        for label in &query.labels {
            target = target.with("label", label);
        }
        let target = target.maybe("limit", query.limit).maybe("cursor", query.cursor.as_deref());
        self.persist(&Call::get(target)).await?.json()
    }

    /// One task, or its tombstone.
    ///
    /// # Errors
    /// If there is none, or several fit, or nobody answered.
    pub async fn task(&self, reference: &str) -> Result<Task, Error> {
        self.persist(&Call::get(Target::task(reference, ""))).await?.json()
    }

    /// One task, with its attempts, what was told of it, and where that went.
    ///
    /// # Errors
    /// If there is none, or several fit, or nobody answered.
    pub async fn detail(&self, reference: &str) -> Result<TaskDetail, Error> {
        self.persist(&Call::get(Target::task(reference, ""))).await?.json()
    }

    /// Says how far a task is. Twice is once, so it is repeated through a restart of the daemon.
    ///
    /// # Errors
    /// If the task has ended, or there is none, or nobody answered.
    pub async fn progress(&self, reference: &str, request: &ProgressRequest) -> Result<Task, Error> {
        self.persist(&Call::post(Target::task(reference, "/progress")).json(request)?).await?.json()
    }

    /// Forgets an ended task: only its outcome stays.
    ///
    /// # Errors
    /// If it is live, or there is none, or nobody answered.
    pub async fn forget(&self, reference: &str) -> Result<Task, Error> {
        self.send(&Call::delete(Target::task(reference, ""))).await?.json()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::fake::{Fake, Reply, sample_task};

    #[tokio::test]
    async fn a_submit_cut_off_is_repeated_with_the_same_key() {
        let home = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        let fake = Fake::serve(home.path(), move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::cut(),
            _ => Reply::json(201, sample_task("running").to_string()),
        });
        let client = Client::new(home.path(), "me");
        let spec = Spec { argv: vec!["true".into()], ..Spec::default() };
        let submitted = client.submit(&spec, Some("k1")).await.unwrap();
        assert!(!submitted.joined);
        let requests = fake.requests();
        assert_eq!(requests.len(), 2);
        assert!(requests.iter().all(|request| request.header("idempotency-key") == Some("k1")));
        assert_eq!(requests[0].body, br#"{"argv":["true"]}"#);
    }

    #[tokio::test]
    async fn filters_are_spelled_out_in_the_address() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |_| Reply::json(200, r#"{"items":[],"next_cursor":null}"#));
        let query = ListQuery {
            owner: Some("a b".into()),
            statuses: vec![Status::Running, Status::Lost],
            labels: vec!["k=v".into(), "x=y".into()],
            limit: Some(3),
            cursor: None,
        };
        Client::new(home.path(), "me").list(&query).await.unwrap();
        let target = "/v1/tasks?owner=a%20b&status=running%2Clost&label=k%3Dv&label=x%3Dy&limit=3";
        assert_eq!(fake.requests()[0].target, target);
    }
}
