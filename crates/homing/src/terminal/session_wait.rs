//! Staying with a task as the session of an agent: for as long as this process does, nobody else tells the session of the end. A hook that
//! waits in the background would, and then the last word of this process says the same again (P6).
//!
//! Whoever is no session has no such hook, and asks for nothing besides.

use std::future::{Future, pending};
use std::pin::{Pin, pin};

use homing_client::Client;
use homing_model::environment::is_agent_session;
use homing_model::{Spec, TaskId};

fn asks(spec: &Spec) -> bool {
    spec.owner.as_deref().is_some_and(is_agent_session)
}

/// The same task, of which the end is asked for as soon as it is submitted.
pub(crate) fn announced(spec: Spec) -> Spec {
    let awaited_ms = asks(&spec).then_some(0);
    Spec { awaited_ms, ..spec }
}

/// Does `work`, at the end of which the task's end is told or not; meanwhile that is asked for.
pub(crate) async fn meanwhile<T>(
    client: &Client,
    spec: &Spec,
    task: &TaskId,
    mut work: Pin<Box<dyn Future<Output = T> + '_>>,
) -> T {
    if !asks(spec) {
        return work.await;
    }
    let mut asking = pin!(ask(client, task));
    tokio::select! {
        biased;
        done = &mut work => done,
        () = &mut asking => work.await,
    }
}

/// Asks until it is dropped. Where that cannot be, somebody else may be first, and that is all.
async fn ask(client: &Client, task: &TaskId) {
    let _ = client.stay_with(task).await;
    pending::<()>().await;
}
