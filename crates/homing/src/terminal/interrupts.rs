//! Ctrl-C of a command that stays with a task.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use homing_api::{Code, Problem};
use tokio::signal::unix::SignalKind;
use tokio::time::timeout;

use crate::cli::failure::Failure;
use crate::terminal::keyboard::Caught;

/// The exit code of a process that left because of Ctrl-C: 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;
/// How long a user who wants to leave waits for a daemon that does not answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// What Ctrl-C means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// It goes to the task; a second one stops the task; a third one leaves. Where the keys are the task's, only a
    /// signal from elsewhere counts as one.
    Forward,
    /// This process leaves; the task goes on.
    Leave,
}

/// Ctrl-C, and how often it came.
#[derive(Debug)]
pub(crate) struct Interrupts {
    signal: Caught,
    pub(super) pressed: u32,
}

impl Interrupts {
    /// Catches Ctrl-C from now on, unless it is ignored, as in the background of a shell without job control.
    pub(crate) fn catch() -> Result<Self, Failure> {
        match Caught::new(SignalKind::interrupt()) {
            Ok(signal) => Ok(Self { signal, pressed: 0 }),
            Err(error) => {
                Err(Problem::new(Code::SystemLimit, format!("Ctrl-C cannot be caught: {error}")).into())
            }
        }
    }

    /// Waits for the next one. Cancelling it loses none.
    pub(crate) async fn next(&mut self) {
        self.signal.recv().await;
        self.pressed += 1;
    }

    /// Submits. Where Ctrl-C means to leave now and no answer comes soon, that is an error; any other Ctrl-C is
    /// counted, for the task to get it once it is submitted.
    pub(crate) async fn heard_beside<T>(
        &mut self,
        on_interrupt: OnInterrupt,
        submit: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let enough = if on_interrupt == OnInterrupt::Leave { 1 } else { 2 };
        let mut submit = pin!(submit);
        while self.pressed < enough {
            tokio::select! {
                biased;
                submitted = &mut submit => return submitted,
                () = self.next() => {}
            }
        }
        timeout(ANSWER_TIMEOUT, submit).await.unwrap_or_else(|_| {
            let text = "the daemon does not answer: whether the task was submitted is not known";
            let mut problem = Problem::new(Code::DaemonUnreachable, text);
            problem.advice = "`homing list` shows it if it was; `homing doctor` says more.".to_owned();
            Err(problem.into())
        })
    }
}
