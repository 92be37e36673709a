//! What an agent waits for: the first list of tools, a run through the bridge, a hook with nothing to say.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use homing_model::notify::When;
use homing_model::{Notify, Spec};
use homing_testkit::Home;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::report::{Report, median, ms};
use crate::{Bench, client};

const STARTS: usize = 60;
const RUNS: usize = 200;

pub(crate) fn measure(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    eprintln!("agents: {STARTS} starts of `homing mcp` and of a hook, {RUNS} runs each way");
    let home = bench.home();
    let (mut plain, mut listed, mut hooked) = (Vec::new(), Vec::new(), Vec::new());
    // By turns, so that a machine that is slow for a while is slow for all.
    for _ in 0..STARTS {
        plain.push(started(Command::new("true"))?);
        let began = Instant::now();
        let mut bridge = Bridge::start(&home)?;
        bridge.hello()?;
        let tools = bridge.call(2, "tools/list", &json!({}))?;
        listed.push(ms(began.elapsed()));
        ensure!(tools["tools"].as_array().is_some_and(|tools| tools.len() >= 8), "the tools: {tools}");
        bridge.leave()?;
        hooked.push(hook(&home)?);
    }
    let (base, p50) = (median(&mut plain), median(&mut listed));
    let baseline = format!("`true` {base:.2} ms");
    report.ratio(
        "`homing mcp`, start to `tools/list` answered, p50",
        &format!("{p50:.2} ms"),
        &baseline,
        p50 / base,
        "at most 20 ms",
        p50 <= 20.0,
    );
    let p50 = median(&mut hooked);
    report.ratio(
        "`homing hook claude stop` with nothing to say, p50",
        &format!("{p50:.2} ms"),
        &baseline,
        p50 / base,
        "at most 10 ms",
        p50 <= 10.0,
    );
    through(&home, runtime, report)
}

/// A `true`, submitted and waited for, through the bridge and at the API, by turns.
fn through(home: &Home, runtime: &Runtime, report: &mut Report) -> Result<()> {
    let client = client(home);
    let mut bridge = Bridge::start(home)?;
    bridge.hello()?;
    let (mut bridged, mut direct) = (Vec::new(), Vec::new());
    for number in 0..RUNS as u64 {
        let began = Instant::now();
        let asked = json!({ "name": "run", "arguments": { "command": "true" } });
        let ran = bridge.call(10 + number, "tools/call", &asked)?;
        bridged.push(ms(began.elapsed()));
        ensure!(ran["structuredContent"]["ended"] == true, "the run: {ran}");
        let notify = Some(Notify { on: When::Never, ..Notify::usual() });
        let spec = Spec { shell: Some("true".into()), notify, ..Spec::default() };
        let began = Instant::now();
        runtime.block_on(async {
            let task = client.submit(&spec, None).await?.task;
            client.wait(&[task.id], homing_client::Mode::All, None).await?;
            anyhow::Ok(())
        })?;
        direct.push(ms(began.elapsed()));
    }
    bridge.leave()?;
    let (ours, base) = (median(&mut bridged), median(&mut direct));
    report.ratio(
        "`run` through `homing mcp` on stdio, to its end, p50",
        &format!("{ours:.2} ms"),
        &format!("at the HTTP API {base:.2} ms"),
        ours / base,
        "at most 2 ms more",
        ours - base <= 2.0,
    );
    Ok(())
}

fn started(mut command: Command) -> Result<f64> {
    let began = Instant::now();
    ensure!(command.status()?.success(), "{command:?}");
    Ok(ms(began.elapsed()))
}

fn hook(home: &Home) -> Result<f64> {
    let mut command = home.command();
    command.args(["hook", "claude", "stop"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let said =
        json!({ "session_id": "bench", "hook_event_name": "Stop", "stop_hook_active": false, "cwd": "/" });
    let began = Instant::now();
    let mut child = command.spawn()?;
    child.stdin.take().context("an input")?.write_all(said.to_string().as_bytes())?;
    let done = child.wait_with_output()?;
    let took = ms(began.elapsed());
    ensure!(done.status.success() && done.stdout.is_empty(), "the hook: {done:?}");
    Ok(took)
}

/// `homing mcp`, and a client of it that speaks one line at a time.
struct Bridge {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Bridge {
    fn start(home: &Home) -> Result<Self> {
        let mut command = home.command();
        let mut child = command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("an input")?;
        let output = BufReader::new(child.stdout.take().context("an output")?);
        Ok(Self { child, input, output })
    }

    fn hello(&mut self) -> Result<()> {
        let client = json!({ "name": "bench", "version": "1" });
        let parameters = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        self.call(1, "initialize", &parameters)?;
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
    }

    fn say(&mut self, message: &Value) -> Result<()> {
        Ok(self.input.write_all(format!("{message}\n").as_bytes())?)
    }

    /// Asks, and reads until the answer; whatever else is said is no concern of ours.
    fn call(&mut self, id: u64, method: &str, parameters: &Value) -> Result<Value> {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }))?;
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "`homing mcp` went away");
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] == id {
                ensure!(message["error"].is_null(), "{message}");
                return Ok(message["result"].take());
            }
        }
    }

    fn leave(mut self) -> Result<()> {
        drop(self.input);
        self.child.wait()?;
        Ok(())
    }
}
