//! What an agent hands to its hooks, on stdin.

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use homing_agents::Agent;
use homing_agents::hooks::{self, Input};
use tokio::time::timeout;

use crate::cli::context::Context;

/// More than any agent sends; it holds the user's prompt, or the last message of the model.
const MOST: u64 = 8 << 20;

/// Reads stdin to its end; none where there is nothing that makes sense. An agent that does not close it is not waited for.
pub(super) async fn read(agent: &dyn Agent, context: &Context, patience: Duration) -> Option<Input> {
    if io::stdin().is_terminal() {
        context.console.note(
            "homing: the agent calls this, and hands it JSON on stdin; `homing install AGENT` sets it up",
        );
        return None;
    }
    let reading = tokio::task::spawn_blocking(|| {
        let mut text = Vec::new();
        io::stdin().lock().take(MOST).read_to_end(&mut text).map(|_| text)
    });
    hooks::parse(agent, &timeout(patience, reading).await.ok()?.ok()?.ok()?)
}
