//! Staying with a task as the session of an agent: its end is reserved for as long as this process stays (P6). A hook that waits in the
//! background would deliver it too, and this process prints it again.
//!
//! An owner that is no session has no such hook, and reserves nothing.

use std::future::{Future, pending};
use std::pin::{Pin, pin};

use homing_agents::registry::is_session;
use homing_client::Client;
use homing_model::reservation::Reserve;
use homing_model::{Spec, TaskId};

fn reserves(spec: &Spec) -> bool {
    spec.owner.as_deref().is_some_and(is_session)
}

/// The same task, whose end is reserved from the submit on.
pub(crate) fn announced(spec: Spec) -> Spec {
    let reserve = reserves(&spec).then_some(Reserve::Wait);
    Spec { reserve, ..spec }
}

/// Does `work`, which delivers the task's end or not, and keeps that reserved meanwhile.
pub(crate) async fn meanwhile<T>(
    client: &Client,
    spec: &Spec,
    task: &TaskId,
    mut work: Pin<Box<dyn Future<Output = T> + '_>>,
) -> T {
    if !reserves(spec) {
        return work.await;
    }
    let mut holding = pin!(hold(client, task));
    tokio::select! {
        biased;
        done = &mut work => done,
        () = &mut holding => work.await,
    }
}

/// Holds the end until it is dropped. Where that cannot be, another reader may be first, and that is all.
async fn hold(client: &Client, task: &TaskId) {
    let _ = client.hold_end(task).await;
    pending::<()>().await;
}
