//! How the executable is linked. Every command is a process of its own, and half of what a short one takes is its start.
//!
//! - At a fixed address: a position-independent one of this size has some 24,000 places to correct in 100 pages at every start.
//!   What it costs is said in SECURITY.md; `HOMING_PIE=1` at build time links a position-independent one.
//! - With what a short command executes in one place (first.ld, which `cargo xtask order` writes), so that 18 pieces of its code are mapped and not 51.
//! - With the unwinder of the compiler's static library instead of `libgcc_s.so`, which would have to be found, mapped and set up.
//!
//! All are for Linux with glibc, whose dynamic linker does this work at run time. A machine whose compiler has no such library, or
//! another target, gets the usual executable.

#![expect(clippy::disallowed_methods, reason = "a build script is told everything by its environment")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HOMING_PIE");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") || is("PROFILE", "debug") {
        return;
    }
    if env::var_os("HOMING_PIE").is_none() {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-changed=first.ld");
    if let Some(list) = first().filter(|_| !has_chosen_linker() && takes_lists()) {
        println!("cargo::rustc-link-arg-bins=-T{list}");
    }
    if env::var("HOST") == env::var("TARGET")
        && has_static_unwinder()
        && let Some(folder) = redirect_unwinder()
    {
        println!("cargo::rustc-link-search=native={}", folder.display());
    }
}

/// The list of what comes first, if it is there and can be named.
fn first() -> Option<String> {
    let list = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join("first.ld");
    list.into_os_string().into_string().ok().filter(|list| Path::new(list).is_file())
}

/// Whether a flag says who links, or how: it may be somebody who knows no such lists.
fn has_chosen_linker() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_about_linking = |flag: &str| {
        let option =
            ["-C", "-Z", "--codegen="].iter().find_map(|kind| flag.strip_prefix(kind)).unwrap_or(flag);
        option.starts_with("link")
    };
    flags.split('\x1f').any(is_about_linking)
}

/// Whether the linker that the compiler calls is one of the two that take lists and go on with their own order behind them.
fn takes_lists() -> bool {
    let answer = linking_compiler().arg("-Wl,--version").output();
    answer.is_ok_and(|answer| {
        let text = String::from_utf8_lossy(&answer.stdout);
        text.lines().next().is_some_and(|name| name.starts_with("GNU ld ") || name.contains("LLD"))
    })
}

fn linking_compiler() -> Command {
    Command::new(env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into()))
}

/// Whether the compiler that links has `libgcc_eh.a`: it answers with a path if so, and with the bare name if not.
fn has_static_unwinder() -> bool {
    let answer = linking_compiler().arg("-print-file-name=libgcc_eh.a").output();
    answer.is_ok_and(|answer| Path::new(String::from_utf8_lossy(&answer.stdout).trim()).is_absolute())
}

/// A linker script by the name that the standard library asks for, found before the compiler's own, which is such a script too.
fn redirect_unwinder() -> Option<PathBuf> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    fs::write(folder.join("libgcc_s.so"), "GROUP ( -lgcc_eh -lgcc )\n").ok()?;
    Some(folder)
}
