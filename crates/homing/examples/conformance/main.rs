//! The server that the MCP conformance suite is run against: homing's own handler, with the suite's fixture tools beside its tools.
//!
//! `conformance HOME` serves on a port of its own and prints the address; it ends when its input does. The suite can show no token, so it is not
//! the daemon's listener that is asked; the handler and how HTTP is served are the same, and every task is a real one in the ledger of HOME.

mod asking;
mod content;
mod fixtures;
mod prompts;
mod rounds;

use std::error::Error;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use fixtures::Fixtures;
use homing_client::Client;
use homing_mcp::{Bridge, Handler, Owner};
use homing_model::{OsText, Spec};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn Error>> {
    let home = std::env::args_os().nth(1).map(PathBuf::from).ok_or("usage: conformance HOME")?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(home))
}

async fn serve(home: PathBuf) -> Result<(), Box<dyn Error>> {
    let client = Client::new(&home, "conformance");
    let base = Spec { cwd: Some(OsText::from("/")), ..Spec::default() };
    let owner = Owner::Named("conformance".to_owned());
    let handler = Handler::of_bridge(Bridge { client: client.clone(), owner, outer: None, base });
    let fixtures = Fixtures::new(handler, client);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(fixtures.clone()), sessions, homing_mcp::config());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let mut over = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let service = TowerToHyperService::new(service.clone());
                // It ends with its client.
                drop(tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service)));
            }
            _ = &mut over => return Ok(()),
        }
    }
}
