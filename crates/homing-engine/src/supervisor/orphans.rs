//! Ends what killed shims left, many at a time: looking for the processes of one task means looking at all of the machine's.
//!
//! Whoever asks while a look is under way is part of the next one. Keeps P2 and P8.

use std::sync::Arc;

use homing_model::Survivor;
use homing_shim::tree::{self, Main, Orphaned};
use homing_store::Record;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::engine::Inner;
use crate::run_blocking;

struct Request {
    orphaned: Orphaned,
    answer: oneshot::Sender<Vec<Survivor>>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Request>,
    at_work: bool,
}

/// Those who wait for a look.
#[derive(Default)]
pub(crate) struct Orphans(Mutex<State>);

impl Orphans {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// All that wait now; none when there is nothing left to do.
    fn take(&self) -> Option<Vec<Request>> {
        let mut state = self.lock();
        let requests = std::mem::take(&mut state.waiting);
        state.at_work = !requests.is_empty();
        state.at_work.then_some(requests)
    }
}

/// Ends what is left of an attempt whose shim was killed; answers whom the kernel could not end.
pub(crate) async fn end(inner: &Arc<Inner>, record: &Record) -> Vec<Survivor> {
    let (answer, answered) = oneshot::channel();
    // Whoever asks may know it from before its start; a ledger that cannot be read now names nobody.
    let known = inner.record(&record.id).await.ok().filter(|known| known.attempt == record.attempt);
    let main = known.and_then(|known| known.pid.zip(known.started_at));
    let main = main.map(|(pid, at)| Main { pid, executed_at: at.as_millis() });
    let orphaned = Orphaned { task: record.id.to_string(), attempt: record.attempt, main };
    let idle = {
        let mut state = inner.orphans.lock();
        state.waiting.push(Request { orphaned, answer });
        !std::mem::replace(&mut state.at_work, true)
    };
    if idle {
        let inner = Arc::clone(inner);
        // On shutdown it finishes its look: what it kills is nobody's any more.
        tokio::spawn(async move {
            let _ = run_blocking(move || work(&inner)).await;
        });
    }
    answered.await.unwrap_or_default()
}

fn work(inner: &Inner) {
    while let Some(requests) = inner.orphans.take() {
        let (orphaned, answers): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|request| (request.orphaned, request.answer)).unzip();
        let left = tree::end_orphans(&orphaned, inner.cgroups.as_deref());
        for (answer, processes) in answers.into_iter().zip(left) {
            let survivors = processes.into_iter().map(|it| Survivor { pid: it.pid, name: it.name });
            let _ = answer.send(survivors.collect());
        }
    }
}
