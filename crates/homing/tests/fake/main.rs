//! The command line against a scripted daemon: what it asks, what it prints where, and what it returns.

mod exec;
mod hook;
mod pipes;
mod plain;
mod wait;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use homing_client::fake::{Fake, Reply, Request, sample_task};

/// What a run of the program gave.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// The program with a home and little else around it.
fn homing(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    command
        .args(words)
        .env_clear()
        .env("HOMING_HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null());
    command
}

/// Runs the program to its end, with `input` on its stdin.
async fn run_with(home: &Path, words: &[&str], input: &[u8]) -> Ran {
    let mut command = homing(home, words);
    let input = input.to_vec();
    tokio::task::spawn_blocking(move || {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let _ = child.stdin.take().expect("stdin is piped").write_all(&input);
        let output = child.wait_with_output().expect("the program ends");
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    })
    .await
    .expect("the program is waited for")
}

async fn run(home: &Path, words: &[&str]) -> Ran {
    run_with(home, words, b"").await
}

/// Answers for one task that printed `output` and is now `status`, with this exit code.
fn one_task(
    status: &'static str,
    code: Option<i32>,
    output: &'static [u8],
) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| {
        let mut task = sample_task(status);
        if let Some(code) = code {
            task["outcome"]["exit_code"] = code.into();
        }
        let ended = !task["outcome"].is_null();
        if request.is("POST", "/v1/tasks/") {
            return Reply::json(200, serde_json::json!({ "written": request.body.len() }).to_string());
        }
        if request.is("POST", "/v1/tasks") {
            return Reply::json(201, sample_task("starting").to_string());
        }
        if request.target.contains("/output/index") {
            let span = |offset, stream| serde_json::json!({ "offset": offset, "stream": stream, "at": "2026-01-01T00:00:00.000Z" });
            return Reply::json(
                200,
                serde_json::json!({ "spans": [span(0, "stdout"), span(4, "stderr")] }).to_string(),
            );
        }
        if request.target.contains("/output") {
            let from = parameter(request, "offset")
                .unwrap_or_else(|| output.len().saturating_sub(1))
                .min(output.len());
            let reply = Reply::bytes(200, &output[from..])
                .header("Homing-Offset", from)
                .header("Homing-End", output.len());
            return if ended { reply.header("Homing-Complete", "true") } else { reply };
        }
        if request.is("GET", "/v1/wait") {
            let body = serde_json::json!({ "done": ended, "items": [task], "first": null });
            return Reply::json(if ended { 200 } else { 202 }, body.to_string());
        }
        Reply::json(200, task.to_string())
    }
}

fn parameter(request: &Request, name: &str) -> Option<usize> {
    let (_, query) = request.target.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}
