//! Programs that checks and tests call: found, installed where that is possible, or told about.
//!
//! Tests that need a program which is not there skip themselves; nothing here fails a run.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::step;

/// A program, the Debian package that has it, and what is not tested without it.
struct Tool {
    program: &'static str,
    package: &'static str,
    without: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool { program: "strace", package: "strace", without: "crashes and failures at chosen system calls" },
    Tool { program: "unshare", package: "util-linux", without: "callers in other namespaces, full disks" },
    Tool {
        program: "setpriv",
        package: "util-linux",
        without: "callers under no_new_privs and of other users",
    },
    Tool { program: "script", package: "util-linux", without: "the command line on a terminal" },
    Tool { program: "mkfs.ext4", package: "e2fsprogs", without: "power cuts" },
    Tool { program: "tmux", package: "tmux", without: "attaching in real terminals, agents woken in a pane" },
    Tool { program: "vim", package: "vim", without: "attaching to an editor" },
    Tool { program: "top", package: "procps", without: "attaching to `top`" },
    Tool { program: "zsh", package: "zsh", without: "completions in zsh" },
    Tool { program: "fish", package: "fish", without: "completions in fish" },
    Tool {
        program: "python3",
        package: "python3",
        without: "callers under a seccomp filter, odd programs as tasks",
    },
    Tool {
        program: "systemd-analyze",
        package: "systemd",
        without: "the service, under a real service manager",
    },
    Tool { program: "curl", package: "curl", without: "the samples of the book that call the API" },
    Tool { program: "dbus-daemon", package: "dbus-daemon", without: "notifications on a real desktop" },
    Tool { program: "Xvfb", package: "xvfb", without: "notifications on a real desktop" },
    Tool { program: "dunst", package: "dunst", without: "notifications on a real desktop" },
    Tool { program: "notify-send", package: "libnotify-bin", without: "notifications on a real desktop" },
    Tool {
        program: "npm",
        package: "npm",
        without: "webhooks by the published verifier for Node, MCP by its conformance suite, the page in a browser",
    },
    Tool { program: "chromium", package: "chromium", without: "the page in a browser" },
];

/// Makes sure of everything that can be made sure of.
pub(crate) fn provide() {
    rust_components();
    let missing = || TOOLS.iter().filter(|tool| !is_there(tool.program)).collect::<Vec<_>>();
    let lacking = missing();
    if !lacking.is_empty() && is_there("apt-get") && is_root() {
        let mut packages: Vec<_> = lacking.iter().map(|tool| tool.package).collect();
        packages.dedup();
        println!("   installing {}", packages.join(" "));
        install(&packages);
    }
    for tool in missing() {
        println!("   {} is missing (package {}); skipped: {}", tool.program, tool.package, tool.without);
    }
}

/// rustfmt and clippy, which a minimal toolchain lacks.
fn rust_components() {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !succeeds(Command::new("cargo").args([subcommand, "--version"])) && is_there("rustup") {
            println!("   installing {component}");
            succeeds(Command::new("rustup").args(["component", "add", component]));
        }
    }
}

/// The list of packages may never have been fetched, or be out of date: then it is fetched first.
fn install(packages: &[&str]) {
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["-qq", "-y"]).args(arguments);
        step::status(command.stdin(Stdio::null())).is_ok_and(|status| status.success())
    };
    let wanted = [&["install", "--no-install-recommends"], packages].concat();
    if !apt_get(&wanted) && apt_get(&["update"]) {
        apt_get(&wanted);
    }
}

/// Whether a program is in the PATH.
pub(crate) fn is_there(program: &str) -> bool {
    let Some(path) = std::env::vars_os().find_map(|(name, value)| (name == "PATH").then_some(value)) else {
        return false;
    };
    std::env::split_paths(&path).any(|folder| is_file(&folder.join(program)))
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file())
}

/// Whether we are root.
pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
