//! Wakes: what the daemon hands to `homing __homing-wake`, and where each goes. Keeps P5 and P6.
//!
//! The waker reads an [`WakeOrder`], starts the turn, and says by its exit code what came of it: 0 delivered, 75 not now, 78 given up, anything
//! else a failed attempt. How an agent is woken is the affair of [`homing_agents`].

mod desktop;
mod http;

use std::sync::Arc;

use homing_agents::registry;
pub use homing_agents::wake::Surroundings;
use homing_agents::wake::{Verdict, WakeRequest, tmux};
use homing_model::wake::Readiness;
use homing_model::{Route, WakeOrder};

pub use desktop::refusal as no_desktop;

/// An HTTP client for agents that have a server on this machine.
#[must_use]
pub fn http_client() -> Arc<dyn homing_agents::wake::HttpClient> {
    Arc::new(http::AgentClient)
}

/// Looks whether the other end can take something now. Changes nothing.
pub async fn readiness(route: &Route, runs: bool, surroundings: &Surroundings) -> Readiness {
    match route {
        Route::Session(session) => match registry::find(session.agent.as_str()) {
            Some(agent) => agent.readiness(session, runs, surroundings).await,
            None => Readiness::Closed(unknown(session.agent.as_str())),
        },
        Route::Pane(_) | Route::Desktop => Readiness::Ready,
    }
}

/// Starts a turn with what the order says, or says why not.
pub async fn wake(order: &WakeOrder, surroundings: &Surroundings) -> Verdict {
    let request = WakeRequest { notices: &order.notices, tried: &order.tried, runs: order.runs };
    match &order.route {
        None => Verdict::Failed("there is no way to anybody".to_owned()),
        Some(Route::Desktop) => desktop::show(&order.notices, surroundings),
        Some(Route::Pane(pane)) => tmux::wake(pane, request, surroundings).await,
        Some(Route::Session(session)) => match registry::find(session.agent.as_str()) {
            Some(agent) => agent.wake(session, request, surroundings).await,
            None => Verdict::Failed(unknown(session.agent.as_str())),
        },
    }
}

fn unknown(agent: &str) -> String {
    format!("this release does not know the agent `{agent}`")
}
