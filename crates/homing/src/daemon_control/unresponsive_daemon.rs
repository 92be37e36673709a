//! A daemon that is there and says nothing: stopped by a signal, stuck, or starved. Nobody waits for it without being told.

use std::path::Path;
use std::time::Duration;

use homing_api::{Code, Problem};
use homing_client::Client;
use homing_model::environment::DEFAULT_OWNER;
use tokio::time::{sleep, timeout};

/// How long whoever waits is told nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the daemon has to say that it is there.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// What to say of one that does not answer: who it is, and how to be rid of it.
pub(crate) async fn problem(home: &Path) -> Problem {
    let pid = timeout(HEARTBEAT, Client::new(home, DEFAULT_OWNER).listener_pid()).await.ok().flatten();
    let whose = pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
    let mut problem = Problem::new(
        Code::DaemonUnreachable,
        format!("the daemon of {}{whose} does not answer", home.display()),
    );
    if let Some(pid) = pid {
        problem.advice = format!(
            "If it stays so, `kill -9 {pid}` ends it: tasks run on, and another daemon takes them over."
        );
    }
    problem
}

/// Ends once there is something to say of a daemon that does not answer; never, where it does.
pub(crate) async fn noticed(home: &Path) -> Problem {
    sleep(PATIENCE).await;
    match timeout(HEARTBEAT, Client::new(home, DEFAULT_OWNER).nameless().healthy()).await {
        Err(_) => problem(home).await,
        // It answers, or is gone, which whoever waits finds out.
        Ok(_) => std::future::pending().await,
    }
}
