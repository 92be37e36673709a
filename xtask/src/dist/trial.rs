//! The package, tried: installed into an empty root, used, replaced while a task runs, removed while one does, which leaves nothing, and installed again.
//!
//! `dpkg` itself does it, with a root and a list of packages of its own, so that those of this machine are not touched. It wants to give files to root: without
//! being root that takes `fakeroot`, and without that the files are only unpacked and used. Whatever fails, what was started is ended.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::program;
use super::scratch::Scratch;
use crate::{step, tools};

/// What a task ends with that waited.
const CODE: i32 = 7;

/// Tries it.
pub(crate) fn of(package: &Path) -> Result<()> {
    let scratch = Scratch::new("trial")?;
    let trial = Trial { root: scratch.path().join("root"), home: scratch.path().join("home") };
    std::fs::create_dir_all(&trial.home)?;
    let dpkg = Dpkg::of(&trial.root)?;
    let tried = trial.try_out(dpkg.as_ref(), package);
    if tried.is_err() {
        trial.end();
    }
    tried
}

struct Trial {
    /// In the place of `/`.
    root: PathBuf,
    /// For homing, and as HOME.
    home: PathBuf,
}

impl Trial {
    fn try_out(&self, dpkg: Option<&Dpkg>, package: &Path) -> Result<()> {
        let install = || match dpkg {
            Some(dpkg) => dpkg.run(&["--install"], package.as_os_str()),
            None => step::run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&self.root)),
        };
        install()?;
        if let Some(dpkg) = dpkg {
            dpkg.run(&["--verify"], "homing".as_ref())?;
        }
        self.completions()?;
        let (code, said) = self.homing(&["run", "--follow", "-c", "echo hello; exit 3"])?;
        ensure!(code == Some(3) && said == "hello\n", "`run --follow` ended with {code:?} and said {said:?}");
        println!("   installed: a task ran, and its output and exit code came home");

        let id = self.waiting_task()?;
        install()?;
        self.must(&["daemon", "restart"])?;
        self.let_go(&id)?;
        println!("   replaced, and the daemon restarted: the task that ran meanwhile ended as it should");

        let id = self.waiting_task()?;
        self.must(&["daemon", "stop"])?;
        if let Some(dpkg) = dpkg {
            dpkg.run(&["--purge"], "homing".as_ref())?;
            let left = dpkg.left()?;
            ensure!(left.is_empty(), "removed, and still there: {left:?}");
            println!("   removed: nothing is left");
            std::fs::write(self.gate(), "")?;
            install()?;
            self.let_go(&id)?;
            println!("   installed again: the task that ran meanwhile ended as it should");
        }
        self.let_go(&id)?;
        self.must(&["daemon", "stop"])
    }

    /// Submits a task that waits for the gate, and waits until it does; its id.
    fn waiting_task(&self) -> Result<String> {
        let (gate, started) = (self.gate(), self.home.join("started"));
        for path in [&gate, &started] {
            if path.exists() {
                std::fs::remove_file(path)?;
            }
        }
        let until = |path: &Path| format!("until [ -e {} ]; do sleep 0.1; done", path.display());
        let waits = format!("touch {}; {}; exit {CODE}", started.display(), until(&gate));
        let (code, id) = self.homing(&["run", "-c", &waits])?;
        ensure!(code == Some(0), "a task could not be submitted");
        step::run(Command::new("timeout").args(["60", "sh", "-c", &until(&started)]))
            .context("the task did not start")?;
        Ok(id.trim().to_owned())
    }

    /// Opens the gate, and sees the task end as it should.
    fn let_go(&self, id: &str) -> Result<()> {
        std::fs::write(self.gate(), "")?;
        let (code, _) = self.homing(&["wait", id])?;
        ensure!(
            code == Some(CODE),
            "a task that ran while the package was replaced or away ended with {code:?}"
        );
        Ok(())
    }

    fn must(&self, words: &[&str]) -> Result<()> {
        let (code, _) = self.homing(words)?;
        ensure!(code == Some(0), "`homing {}` ended with {code:?}", words.join(" "));
        Ok(())
    }

    /// What a shell is given names the program where it is, and is a script that it can read.
    fn completions(&self) -> Result<()> {
        let files = [
            ("bash", "usr/share/bash-completion/completions/homing"),
            ("zsh", "usr/share/zsh/vendor-completions/_homing"),
            ("fish", "usr/share/fish/vendor_completions.d/homing.fish"),
        ];
        for (shell, file) in files {
            let text = std::fs::read_to_string(self.root.join(file))
                .with_context(|| format!("{file} is missing"))?;
            ensure!(text.contains("/usr/bin/homing"), "{file} does not name the program");
            if tools::is_there(shell) {
                step::run(Command::new(shell).arg("-n").arg(self.root.join(file)))?;
            }
        }
        Ok(())
    }

    fn gate(&self) -> PathBuf {
        self.home.join("gate")
    }

    /// The installed program, in an environment of its own.
    fn homing(&self, words: &[&str]) -> Result<(Option<i32>, String)> {
        let mut command = Command::new(self.root.join("usr/bin/homing"));
        command.args(words).env_clear().current_dir(&self.home);
        command
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.home)
            .env("HOMING_HOME", self.home.join("state"));
        program::answers(&mut command)
    }

    /// Lets the task go and the daemon too. That something failed is already known.
    fn end(&self) {
        let _ = std::fs::write(self.gate(), "");
        let _ = self.homing(&["wait", "@last"]);
        let _ = self.homing(&["daemon", "stop"]);
    }
}

/// dpkg for one root.
struct Dpkg {
    root: PathBuf,
    command: Vec<String>,
}

impl Dpkg {
    /// None where it cannot work.
    fn of(root: &Path) -> Result<Option<Dpkg>> {
        let admin = root.join("var/lib/dpkg");
        for folder in ["info", "updates", "triggers"] {
            std::fs::create_dir_all(admin.join(folder))?;
        }
        for file in ["status", "available"] {
            std::fs::write(admin.join(file), "")?;
        }
        let mut command: Vec<String> = Vec::new();
        if !tools::is_root() {
            if !tools::is_there("fakeroot") {
                println!(
                    "   neither root nor fakeroot: unpacked and used, but not installed, replaced and removed by dpkg"
                );
                return Ok(None);
            }
            command.push("fakeroot".to_owned());
        }
        command.extend(["dpkg".to_owned(), format!("--root={}", root.display())]);
        // What it depends on is on this machine, and in the root is nothing.
        command.extend(["--force-depends", "--force-not-root"].map(str::to_owned));
        Ok(Some(Dpkg { root: root.to_owned(), command }))
    }

    fn run(&self, words: &[&str], what: &std::ffi::OsStr) -> Result<()> {
        let (first, rest) = self.command.split_first().context("invariant: dpkg has a name")?;
        let mut dpkg = Command::new(first);
        // It looks for programs that scripts would need, in folders that a user may not have in the PATH.
        dpkg.args(rest)
            .args(words)
            .arg(what)
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        let output = dpkg.output().with_context(|| format!("{first} could not be started"))?;
        let said = [output.stdout.as_slice(), &output.stderr].concat();
        ensure!(output.status.success(), "dpkg {words:?}: {}", String::from_utf8_lossy(&said).trim_end());
        // A file that is not as it was packed is told by `--verify` in a line, and by nothing else.
        ensure!(
            words != ["--verify"] || said.is_empty(),
            "not as packed: {}",
            String::from_utf8_lossy(&said)
        );
        Ok(())
    }

    /// What is in the root besides dpkg's own files.
    fn left(&self) -> Result<Vec<PathBuf>> {
        let own = self.root.join("var/lib/dpkg");
        let mut left = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                if path == own {
                    continue;
                }
                if !own.starts_with(&path) {
                    left.push(path.clone());
                }
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        Ok(left)
    }
}
