//! An engine inside another program: run in the foreground, let go after a second, hear of the end all the same.
//!
//! `cargo run -p homing-engine --example embed`

use std::io::Write;
use std::time::Duration;

use homing_engine::{Engine, ExecOutcome, WaitMode};
use homing_model::Spec;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    homing_shim::dispatch(); // first line: this program may be called again as keeper and shim
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let home = std::env::temp_dir().join(format!("homing-embed-{}", std::process::id()));
    let engine = Engine::builder(&home).open().await?;
    let spec = Spec { shell: Some("echo started; sleep 2; echo done".into()), ..Spec::default() };
    let print = |bytes: &[u8]| std::io::stdout().write_all(bytes).unwrap_or_default();
    let task = match engine.exec(spec).on_output(print).background_after(Duration::from_secs(1)).await? {
        ExecOutcome::Completed(task) => task,
        ExecOutcome::Backgrounded { task, output_so_far, next_offset } => {
            let running = engine.snapshot().running().len();
            let seen = output_so_far.len();
            writeln!(
                std::io::stdout(),
                "[{running} in the background; {seen} bytes so far, more from {next_offset}]"
            )?;
            engine.wait(&[task.id], WaitMode::All, None).await?.items.remove(0)
        }
    };
    writeln!(
        std::io::stdout(),
        "[{} after {} ms, {} bytes]",
        task.status,
        task.duration_ms.unwrap_or(0),
        task.output.bytes
    )?;
    drop(engine);
    Ok(std::fs::remove_dir_all(home)?)
}
