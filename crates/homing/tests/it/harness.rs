//! The samples for those who write a harness, run as they stand in `examples/harness`.

use std::path::{Path, PathBuf};
use std::process::Command;

#[expect(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../../../../examples/harness/harness.rs"]
mod sample;

/// What each of them says, however it is written.
const SAYS: &str = "submitted sample, and free to do something else
event task.queued
event task.started
event task.completed
result: failed, exit code 3, printed \"working\\n\"
left in the inbox: 0
";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/harness")
}

/// Runs a sample against the home's daemon, which is there before it is asked.
#[track_caller]
fn check(mut sample: Command) {
    let home = super::home();
    let _ = home.daemon_pid();
    let done = sample.env("HOMING_HOME", home.path()).output().expect("the sample runs");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(said, SAYS);
}

/// A Node that runs TypeScript as it is: the system's, or the one that `cargo xtask test` or `cargo xtask agents` installs.
pub(crate) fn node() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
    let runs = |node: &PathBuf| {
        let probe = "const [a, b] = process.versions.node.split('.').map(Number); process.exit(a > 22 || (a == 22 && b >= 18) ? 0 : 1)";
        Command::new(node).args(["-e", probe]).status().is_ok_and(|status| status.success())
    };
    let installed =
        ["verifiers/mcp-node", "agents"].map(|place| target.join(place).join("node_modules/node/bin/node"));
    std::iter::once(PathBuf::from("node")).chain(installed).find(runs)
}

#[test]
fn the_python_sample_hears_of_the_end_once() {
    let mut python = Command::new("python3");
    python.arg(examples().join("harness.py"));
    check(python);
}

#[test]
fn the_typescript_sample_hears_of_the_end_once() {
    let Some(node) = node() else {
        println!("skipped: it needs Node 22.18 or later; `cargo xtask test` installs one");
        return;
    };
    let mut typescript = Command::new(node);
    typescript.arg("--no-warnings").arg(examples().join("harness.ts"));
    check(typescript);
}

#[tokio::test]
async fn the_rust_sample_hears_of_the_end_once() {
    let home = super::home();
    let _ = home.daemon_pid();
    let mut said = Vec::new();
    sample::run(home.path().to_owned(), &mut said).await.unwrap();
    assert_eq!(String::from_utf8(said).unwrap(), SAYS);
}
