//! One page, sample by sample, on a machine of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use homing_testkit::{Home, left_out};

use super::fence::{Fence, Treatment};
use super::{Writing, block, compare, fence, read, root, writing};

/// The longest that a sample may take, on a machine that has much else to do.
const PATIENCE: &str = "180";

/// Whether there is something to do about it.
pub(super) fn is_run(page: &str, fence: &Fence) -> bool {
    !matches!(fence.treatment(page), Treatment::Unrun(_) | Treatment::Shown)
}

/// Runs the samples of a page, in order; panics at the first one that does not do what the page says.
#[track_caller]
pub(super) fn check(page: &str) {
    let machine = Machine::new();
    let shown = read(page);
    let (mut told, mut differs) = (shown.clone(), writing() == Some(Writing::All));
    for fence in fence::all(&shown) {
        let place = format!("{page}:{}", fence.line);
        match fence.treatment(page) {
            Treatment::Script(needs) if machine.has(needs, &place) => {
                let (code, output) = machine.run(&format!("set -e -o pipefail\nexec 2>&1\n{}", fence.text));
                assert_eq!(
                    code,
                    Some(0),
                    "{place}: this sample failed:\n{}\nIt printed:\n{output}",
                    fence.text
                );
            }
            Treatment::Session(needs) if machine.has(needs, &place) => {
                let (text, fits) = session(&machine, &fence, &place);
                told = told.replacen(&fence.text, &text, 1);
                differs |= !fits;
            }
            Treatment::File(name) => machine.write(name, &fence.text),
            Treatment::Configuration => machine.check_configuration(&fence.text, &place),
            Treatment::Script(_) | Treatment::Session(_) | Treatment::Unrun(_) | Treatment::Shown => {}
        }
    }
    // A page is told as it went, from the first line to the last, so that an id that comes again is the same.
    if writing().is_some() && differs {
        std::fs::write(root().join(page), told).expect("a file");
    }
}

/// Runs a session; answers what should be shown, and whether the page fits it.
#[track_caller]
fn session(machine: &Machine, fence: &Fence, place: &str) -> (String, bool) {
    let steps = block::steps(&fence.text);
    let (_, output) = machine.run(&block::script(&steps));
    let printed = block::printed(&output);
    assert_eq!(printed.len(), steps.len(), "{place}: the session broke off:\n{output}");
    let mut fits = true;
    let mut texts = Vec::new();
    for (step, text) in steps.iter().zip(printed) {
        let as_shown = compare::fits(&step.shown, &text);
        fits &= as_shown;
        // Where a page leaves lines out, it goes on doing so.
        let shortened = step.shown.lines().any(|line| line == "…");
        texts.push(if as_shown && shortened { step.shown.clone() } else { text });
    }
    let (told, shown) = (block::told(&steps, &texts), &fence.text);
    assert!(
        fits || writing().is_some(),
        "{place}: the page shows\n\n{shown}\nbut this is so\n\n{told}\n`cargo xtask record` writes it down"
    );
    (told, fits)
}

/// What a reader has: homing where cargo installs it, an empty folder (in it what a checkout has, where a sample asks for it), and a shell.
struct Machine {
    home: Home,
    folder: PathBuf,
}

impl Machine {
    fn new() -> Self {
        // Where homing has its home by itself, so that the samples need not say so.
        let home = Home::named(env!("CARGO_BIN_EXE_homing"), ".local/state/homing");
        let folder = home.scratch().join("project");
        let (bin, runtime) = (home.scratch().join(".cargo/bin"), home.scratch().join("run"));
        for folder in [&folder, &bin, &runtime] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        std::os::unix::fs::symlink(home.program(), bin.join("homing")).expect("a link");
        Self { home, folder }
    }

    /// The PATH of a reader: homing, a Node that runs TypeScript where there is one, and what else this machine has.
    fn path(&self) -> std::ffi::OsString {
        let inherited = std::env::vars_os().find(|(name, _)| name == "PATH").map(|(_, path)| path);
        let node = crate::harness::node().and_then(|node| Some(node.parent()?.to_owned()));
        let ours = std::iter::once(self.home.scratch().join(".cargo/bin")).chain(node);
        let ours = ours.filter(|folder| !folder.as_os_str().is_empty());
        let inherited = inherited.unwrap_or_default();
        std::env::join_paths(ours.chain(std::env::split_paths(&inherited))).expect("a PATH")
    }

    /// Whether what a sample needs is there; says so where it is not.
    fn has(&self, needs: Option<&str>, place: &str) -> bool {
        let there = match needs {
            None => true,
            Some("node") => crate::harness::node().is_some(),
            Some(program) => std::env::split_paths(&self.path()).any(|folder| folder.join(program).is_file()),
        };
        if !there {
            left_out(&format!("{place} needs {}", needs.unwrap_or_default()));
        }
        there
    }

    /// Runs a script of bash; answers its exit code and what it printed, with the folders called as a reader would have them.
    fn run(&self, script: &str) -> (Option<i32>, String) {
        let file = self.home.scratch().join("sample.sh");
        std::fs::write(&file, script).expect("a file");
        if script.contains("examples/") && !self.folder.join("examples").exists() {
            std::os::unix::fs::symlink(root().join("examples"), self.folder.join("examples"))
                .expect("a link");
        }
        let mut bash = Command::new("timeout");
        bash.args(["--kill-after=5", PATIENCE, "bash"])
            .arg(&file)
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        bash.env_clear().env("PATH", self.path()).env("HOME", self.home.scratch());
        bash.env("XDG_RUNTIME_DIR", self.home.scratch().join("run"));
        bash.envs([
            ("LANG", "C.UTF-8"),
            ("SHELL", "/bin/bash"),
            ("USER", "you"),
            ("TERM", "xterm"),
            ("NO_COLOR", "1"),
        ]);
        // To a file: what a sample leaves running must not keep the test waiting for its end.
        let printed = self.home.scratch().join("printed");
        let output = std::fs::File::create(&printed).expect("a file");
        bash.stdout(output.try_clone().expect("a file")).stderr(output);
        let status = bash.status().expect("bash runs");
        let printed = String::from_utf8_lossy(&std::fs::read(printed).expect("a file")).into_owned();
        (status.code(), printed.replace(&self.home.scratch().display().to_string(), "/home/you"))
    }

    fn write(&self, name: &str, text: &str) {
        let path = match name.strip_prefix("~/") {
            Some(rest) => self.home.scratch().join(rest),
            None => self.folder.join(name),
        };
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// A configuration by itself, in a home that nothing else uses.
    fn check_configuration(&self, text: &str, place: &str) {
        let home = self.home.scratch().join("configured");
        std::fs::create_dir_all(&home).expect("a folder");
        std::fs::write(home.join("config.toml"), text).expect("a file");
        let checked = self.home.cli([Path::new("--home"), &home, Path::new("config"), Path::new("--check")]);
        assert_eq!(checked.code, 0, "{place}: {}{}", checked.text(), checked.stderr);
    }
}
