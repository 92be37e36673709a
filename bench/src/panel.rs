//! What the panel costs while a hundred tasks print, and how soon it shows what happens while fifty do.
//!
//! It runs in a pane of tmux. What is on the screen is asked of tmux again and again, so each latency holds one such question more than it should.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use homing_api::StopRequest;
use homing_client::Client;
use homing_model::Spec;
use homing_testkit::Home;
use tokio::runtime::Runtime;

use crate::report::{Report, median};
use crate::{Bench, client};

const WATCHED: Duration = Duration::from_secs(20);
const TRIES: usize = 10;

/// Of a second: Linux shows times in hundredths on every machine, whatever the kernel counts in.
const TICKS: f64 = 100.0;

/// Prints for ever, twice a second.
const PRINTER: &str = "i=0; while :; do i=$((i+1)); echo line $i of what it prints; sleep 0.5; done";

pub(crate) fn measure(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    if !Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success()) {
        eprintln!("panel: left out, there is no tmux");
        return Ok(());
    }
    eprintln!("panel: processor and latency, about {} s", 2 * WATCHED.as_secs() + 20);
    for (size, width, height) in [("80x24", "80", "24"), ("200x60", "200", "60")] {
        let home = bench.home();
        let tasks = print(&home, runtime, 100)?;
        let pane = Pane::open(&home, width, height)?;
        pane.until("100 running")?;
        std::thread::sleep(Duration::from_secs(2));
        let before = processor(pane.pid)?;
        std::thread::sleep(WATCHED);
        let share = 100.0 * (processor(pane.pid)? - before) / WATCHED.as_secs_f64();
        let what = format!("panel, {size}, 100 tasks that print, processor");
        report.figure(&what, &format!("{share:.2} %"), "at most 2 %", share <= 2.0);
        drop(pane);
        end(&home, runtime, &tasks)?;
    }
    latencies(bench, runtime, report)
}

fn latencies(bench: &Bench, runtime: &Runtime, report: &mut Report) -> Result<()> {
    let home = bench.home();
    let mut tasks = print(&home, runtime, 50)?;
    let pane = Pane::open(&home, "160", "50")?;
    pane.until("50 running")?;
    let (mut starts, mut outputs, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..TRIES {
        let (say, leave) =
            (home.scratch().join(format!("say{number}")), home.scratch().join(format!("leave{number}")));
        for fifo in [&say, &leave] {
            ensure!(Command::new("mkfifo").arg(fifo).status()?.success(), "mkfifo");
        }
        let line = format!("read x < {}; echo said-{number}; read x < {}", say.display(), leave.display());
        let name = format!("probe-{number}");
        let spec = Spec { name: Some(name.clone()), ..shell(&line) };
        let begun = Instant::now();
        tasks.push(runtime.block_on(client(&home).submit(&spec, None))?.task.id.to_string());
        starts.push(pane.until_line(begun, &[&name, "running"])?);
        // Waits for the reader.
        std::fs::write(&say, "\n")?;
        let begun = Instant::now();
        outputs.push(pane.until_line(begun, &[&format!("said-{number}")])?);
        std::fs::write(&leave, "\n")?;
        let begun = Instant::now();
        ends.push(pane.until_line(begun, &[&name, "succeeded"])?);
    }
    drop(pane);
    end(&home, runtime, &tasks)?;
    for (what, mut times) in [("start", starts), ("output", outputs), ("end", ends)] {
        let worst = times.iter().copied().fold(0.0, f64::max);
        let figure = format!("{:.0} ms, at worst {worst:.0} ms", median(&mut times));
        let what = format!("panel, a task's {what} is shown, 50 tasks print");
        report.figure(&what, &figure, "within 100 ms", worst <= 100.0);
    }
    Ok(())
}

fn shell(line: &str) -> Spec {
    Spec { argv: ["sh", "-c", line].map(Into::into).into(), ..Spec::default() }
}

fn print(home: &Home, runtime: &Runtime, count: usize) -> Result<Vec<String>> {
    let client = client(home);
    (0..count)
        .map(|_| Ok(runtime.block_on(client.submit(&shell(PRINTER), None))?.task.id.to_string()))
        .collect()
}

fn end(home: &Home, runtime: &Runtime, tasks: &[String]) -> Result<()> {
    let client: Client = client(home);
    let request = StopRequest { grace_ms: Some(0), wait: true, ..StopRequest::default() };
    for task in tasks {
        runtime.block_on(client.stop(task, &request))?;
    }
    Ok(())
}

/// Seconds that a process has used.
fn processor(pid: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = text.rsplit_once(')').context("a name")?.1.split_ascii_whitespace().collect();
    let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(ticks as f64 / TICKS)
}

/// A panel in a pane of a tmux of its own.
struct Pane {
    socket: PathBuf,
    pid: u32,
}

impl Pane {
    fn open(home: &Home, width: &str, height: &str) -> Result<Self> {
        let mut pane = Self { socket: home.scratch().join("tmux"), pid: 0 };
        let line = format!(
            "HOMING_HOME='{}' LC_ALL=C.UTF-8 exec '{}' ui",
            home.path().display(),
            home.program().display()
        );
        let words = ["new-session", "-d", "-P", "-F", "#{pane_pid}", "-x", width, "-y", height, &line];
        pane.pid = pane.call(&words)?.trim().parse().context("a pid")?;
        Ok(pane)
    }

    fn call(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(words).env_remove("TMUX");
        let output = command.output()?;
        ensure!(output.status.success(), "tmux: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn until(&self, text: &str) -> Result<()> {
        self.until_line(Instant::now(), &[text]).map(drop)
    }

    /// Milliseconds until a line has all of these in it.
    fn until_line(&self, begun: Instant, parts: &[&str]) -> Result<f64> {
        while begun.elapsed() < Duration::from_secs(20) {
            let screen = self.call(&["capture-pane", "-p"])?;
            let took = begun.elapsed();
            if screen.lines().any(|line| parts.iter().all(|part| line.contains(part))) {
                return Ok(took.as_secs_f64() * 1000.0);
            }
        }
        bail!("{parts:?} did not appear:\n{}", self.call(&["capture-pane", "-p"])?)
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let _ = self.call(&["kill-server"]);
    }
}
