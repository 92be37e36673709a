//! MCP over stdin and stdout, for the agent that started this process.

use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::stdio_pipes;

use crate::handler::Handler;

/// Why serving ended before its client did.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client said something that no client of MCP begins with.
    #[error("the client did not begin as MCP does: {0}")]
    Beginning(#[source] Box<ServerInitializeError>),
    /// The server itself broke off.
    #[error("serving broke off: {0}")]
    BrokeOff(String),
}

/// Serves until the client closes its end. What it still waits for then is given a moment to be answered.
///
/// # Errors
/// If the client does not speak MCP.
pub async fn serve(handler: Handler) -> Result<(), ServeError> {
    let running = match Box::pin(handler.serve(stdio_pipes())).await {
        Ok(running) => running,
        // It went away without a word, as a probe does.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::Beginning(Box::new(error))),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::BrokeOff(error.to_string())),
        Ok(_) => Ok(()),
    }
}
