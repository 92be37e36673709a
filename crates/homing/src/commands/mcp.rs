//! `homing mcp`: the MCP server for an agent, on stdin and stdout, or on the daemon's loopback listener.
//!
//! Nothing is asked of the daemon before the agent asks for something, so the list of tools is there at once. The process keeps nothing: when
//! the daemon is restarted, or killed, the next call is answered by the next daemon.

use clap::Args;
use homing_agents::environment;
use homing_api::{Code, Problem};
use homing_mcp::{Bridge, Handler, Owner};
use homing_model::{OsText, Spec, session};
use homing_server::token;
use homing_sys::process::stat;

use super::hook;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::options::capture;
use crate::options::variables::Variables;

#[derive(Debug, Args)]
#[command(
    after_help = "Agents start this by themselves once it is in their configuration. Tasks run with the folder and \
the environment of this process; what is kept from tasks of the command line is kept from them too.

Examples:
  claude mcp add homing -- homing mcp            Claude Code
  codex mcp add homing -- homing mcp             Codex
  homing mcp --owner ci                          every task belongs to `ci`
  homing mcp --http                              the address for a client that speaks HTTP
  homing mcp --http --off                        nobody is served over HTTP any more

A client over HTTP sends the header `Authorization: Bearer TOKEN` with what `homing token show` prints."
)]
pub(crate) struct Options {
    /// Whose tasks they are [default: HOMING_OWNER, the agent's session, or its process]
    #[arg(long, value_parser = usage_wording::owner)]
    owner: Option<String>,
    /// Have the daemon serve it over HTTP on this machine, print the address and leave; it stays so until `--off`
    #[arg(long, conflicts_with = "owner")]
    http: bool,
    /// With --http: turn it off, for every client
    #[arg(long, requires = "http")]
    off: bool,
}

/// Serves until the agent closes its end; or has the daemon serve.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    if options.off {
        context.block_on(async { Ok(context.client().turn_listener_off().await?) })?;
        context.console.note("homing: nobody is served over HTTP any more, until it is turned on again, or `[listener]` in config.toml is changed to say so");
        return Ok(exit_code::DONE);
    }
    if options.http {
        return over_http(context);
    }
    let look = |name: &str| context.surroundings.text(name).map(str::to_owned);
    let named = options.owner.clone().or_else(|| environment::named_owner(look));
    let session =
        || Owner::Session { found: environment::detect(look).map(Box::new), process: process_owner() };
    let owner = named.map_or_else(session, Owner::Named);
    let base = Spec {
        env: Some(Variables::default().environment(&context.surroundings)?),
        cwd: std::env::current_dir().ok().map(|cwd| OsText::from(cwd.into_os_string())),
        umask: Some(capture::umask()),
        rlimits: capture::rlimits(),
        nice: capture::nice(),
        pane: session::pane(look),
        ..Spec::default()
    };
    let outer = look("HOMING_TASK_ID").and_then(|_| look("HOMING_OWNER"));
    let handler = Handler::of_bridge(Bridge { client: context.client(), owner, outer, base });
    context.block_on(async {
        homing_mcp::serve(handler).await.map_err(|error| {
            let mut problem = Problem::new(Code::InvalidRequest, error.to_string());
            "This is for agents that speak MCP; `claude mcp add homing -- homing mcp` sets one up."
                .clone_into(&mut problem.advice);
            Failure::from(problem)
        })
    })?;
    Ok(exit_code::DONE)
}

/// The owner of what an agent without a known session runs: `mcp:PID.START` of the agent's process. A server that the agent starts again has
/// the same one, and another window of the agent another. Once the agent itself is gone its tasks are still to be seen by everybody, and its
/// inbox by this name.
fn process_owner() -> String {
    // The first process of a container is an agent as good as any.
    let agent = hook::program_above().or_else(|| stat(1));
    let (pid, start) = agent.map_or((1, 0), |process| (process.pid, process.start));
    format!("mcp:{pid}.{start:x}")
}

/// Turns the loopback listener on, which stays on, and says where it is.
fn over_http(context: &Context) -> Result<u8, Failure> {
    let listener = context.block_on(async { Ok(context.client().turn_listener_on(None).await?) })?;
    let Some(address) = listener.addresses.first() else {
        return Err(Problem::new(Code::ListenerFailed, "the listener has no address").into());
    };
    let (url, token) = (format!("{address}/mcp"), context.home.join(token::NAME));
    if context.json {
        context.console.json(&serde_json::json!({ "url": url, "token_path": token }))?;
    } else {
        context.console.line(&url)?;
        context
            .console
            .note("it stays on until `homing mcp --http --off`; each request needs `Authorization: Bearer TOKEN`, and `homing token show` prints the token");
    }
    Ok(exit_code::DONE)
}
