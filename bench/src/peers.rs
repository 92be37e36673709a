//! The programs that homing is measured beside, where they are installed: task-spooler and pueue.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use homing_testkit::Home;

/// What can take a command and wait for it.
pub(crate) trait Peer {
    /// Its name in the table.
    fn name(&self) -> &'static str;

    /// The program that submits, up to the command.
    fn submit(&self) -> Command;

    /// The program that returns when the last one has ended.
    fn wait(&self) -> Command;
}

/// homing itself, by its command line.
pub(crate) struct Homing<'a>(pub(crate) &'a Home);

impl Peer for Homing<'_> {
    fn name(&self) -> &'static str {
        "`homing run`"
    }

    fn submit(&self) -> Command {
        let mut command = self.0.command();
        command.args(["run", "--"]);
        command
    }

    fn wait(&self) -> Command {
        let mut command = self.0.command();
        command.args(["wait", "@last"]);
        command
    }
}

/// task-spooler's server, ended on drop. It keeps nothing on disk.
pub(crate) struct Spooler {
    folder: PathBuf,
}

impl Spooler {
    /// A server with eight slots, or nothing where it is not installed.
    pub(crate) fn start(home: &Home) -> Result<Option<Self>> {
        if !is_installed("tsp") {
            return Ok(None);
        }
        let spooler = Self { folder: folder(home, "spooler")? };
        ensure!(spooler.command(&["-S", "8"]).status()?.success(), "tsp cannot be set up");
        Ok(Some(spooler))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = quiet("tsp");
        command.env("TS_SOCKET", self.folder.join("socket")).env("TS_MAXFINISHED", "10");
        command.env("TMPDIR", &self.folder).args(arguments);
        command
    }
}

impl Peer for Spooler {
    fn name(&self) -> &'static str {
        "`tsp`"
    }

    fn submit(&self) -> Command {
        self.command(&[])
    }

    fn wait(&self) -> Command {
        self.command(&["-w"])
    }
}

impl Drop for Spooler {
    fn drop(&mut self) {
        let _ = self.command(&["-K"]).status();
    }
}

/// pueue's daemon, ended on drop.
pub(crate) struct Pueue {
    config: PathBuf,
    daemon: Child,
}

impl Pueue {
    /// A daemon with eight slots, or nothing where it is not installed.
    pub(crate) fn start(home: &Home) -> Result<Option<Self>> {
        if !is_installed("pueue") || !is_installed("pueued") {
            return Ok(None);
        }
        let folder = folder(home, "pueue")?;
        let config = folder.join("pueue.yml");
        let place = folder.display();
        std::fs::write(
            &config,
            format!(
                "client: {{}}\ndaemon: {{}}\nshared:\n  pueue_directory: {place}\n  runtime_directory: {place}\n  \
                 use_unix_socket: true\n  unix_socket_path: {place}/socket\n"
            ),
        )?;
        let daemon = quiet("pueued").arg("-c").arg(&config).env_remove("RUST_BACKTRACE").spawn()?;
        let pueue = Self { config, daemon };
        let until = Instant::now() + Duration::from_secs(10);
        while !pueue.command(&["parallel", "8"]).status()?.success() {
            ensure!(Instant::now() < until, "pueued does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(pueue))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = quiet("pueue");
        command.arg("-c").arg(&self.config).args(arguments);
        command
    }
}

impl Peer for Pueue {
    fn name(&self) -> &'static str {
        "`pueue add`"
    }

    fn submit(&self) -> Command {
        self.command(&["add", "--"])
    }

    fn wait(&self) -> Command {
        self.command(&["wait"])
    }
}

impl Drop for Pueue {
    fn drop(&mut self) {
        let _ = self.command(&["shutdown"]).status();
        let _ = self.daemon.wait();
    }
}

/// Submits `true` so often, one process after the other, and waits for the last; in tasks a second.
pub(crate) fn rate(peer: &dyn Peer, tasks: u32) -> Result<f64> {
    let began = Instant::now();
    for _ in 0..tasks {
        submit(peer)?;
    }
    wait(peer)?;
    Ok(f64::from(tasks) / began.elapsed().as_secs_f64())
}

/// Waits for the last one that was submitted.
pub(crate) fn wait(peer: &dyn Peer) -> Result<()> {
    ensure!(peer.wait().stdout(Stdio::null()).status()?.success(), "{} cannot wait", peer.name());
    Ok(())
}

/// Submits one `true`.
pub(crate) fn submit(peer: &dyn Peer) -> Result<()> {
    let status = peer.submit().arg("true").stdout(Stdio::null()).status()?;
    ensure!(status.success(), "{} cannot submit", peer.name());
    Ok(())
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn is_installed(program: &str) -> bool {
    quiet(program).arg("-V").status().is_ok()
}

fn folder(home: &Home, name: &str) -> Result<PathBuf> {
    let folder = home.scratch().join(name);
    std::fs::create_dir(&folder).with_context(|| format!("a folder for {name}"))?;
    Ok(folder)
}
