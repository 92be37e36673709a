//! A harness in Rust, with the typed client: submit a task, go on, hear of its end once, also when the daemon was restarted.
//!
//! ```text
//! homing daemon start
//! cargo run -p homing-client --example harness
//! ```
//!
//! A harness that wants no daemon embeds the engine instead: `examples/embed.rs`.

use std::io::Write;
use std::path::PathBuf;

use homing_api::TakeRequest;
use homing_client::{Client, EventQuery};
use homing_model::notice::Body;
use homing_model::{EventKind, Spec};

/// Whose tasks they are. A harness uses one owner per conversation.
const OWNER: &str = "harness-rust";

#[expect(clippy::disallowed_methods, reason = "the program's own environment, read once")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = std::env::var_os("HOMING_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".local/state/homing"))).ok_or("no home")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(home, &mut std::io::stdout()))
}

/// Submits, watches, takes the result and acknowledges it; says so on `out`.
pub(crate) async fn run(home: PathBuf, out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::new(home, OWNER);
    let spec = Spec {
        shell: Some("echo working; exit 3".into()),
        name: Some("sample".to_owned()),
        owner: Some(OWNER.to_owned()),
        ..Spec::default()
    };
    // The key makes repeating safe: the same key and body is the same task.
    let key = format!("sample-{}", std::process::id());
    let task = client.submit(&spec, Some(&key)).await?.task;
    writeln!(out, "submitted {}, and free to do something else", task.name.unwrap_or_default())?;

    let mut events =
        client.follow_events(EventQuery { owner: Some(OWNER.to_owned()), ..EventQuery::default() });
    loop {
        let Some(event) = events.next().await?.event()? else { continue };
        if event.task_id.as_ref() == Some(&task.id) {
            writeln!(out, "event {}", event.kind)?;
            if event.kind == EventKind::TaskCompleted {
                break;
            }
        }
    }

    // What is taken is under a lease: a harness that dies before it acknowledges finds it again.
    let wish = TakeRequest { wait_ms: Some(20_000), ..TakeRequest::default() };
    for notice in client.take(OWNER, &wish).await?.items {
        if let Body::Completed(end) = &notice.body {
            let code = end.outcome.as_ref().and_then(|outcome| outcome.exit_code);
            let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
            writeln!(out, "result: {}, exit code {code}, printed {:?}", end.status, end.output_tail)?;
        }
        client.acknowledge(OWNER, vec![notice.id.to_string()]).await?;
    }
    writeln!(out, "left in the inbox: {}", client.inbox(OWNER, None).await?.items.len())?;
    Ok(())
}
