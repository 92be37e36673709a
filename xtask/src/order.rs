//! `cargo xtask order`: what a short command executes, for the linker to put together (crates/homing/first.ld).
//!
//! Every command is a process of its own, and each piece of its code is mapped when it is first executed, with 64 kB around it. In the
//! order in which the compiler leaves it the code of `homing run` lies in some fifty such pieces. Nothing but speed hangs on the list: what is in it and
//! not in the program is passed over, and what is not in it stays where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::dist::scratch::Scratch;
use crate::{step, tools};

/// Of functions of one name, which only their hash tells apart, all come along: if they are no more bytes than this.
const MOST: u64 = 30_000;

/// Builds homing with its names, runs a command of it under callgrind, and writes the list.
pub(crate) fn run(_: &[String]) -> Result<ExitCode> {
    ensure!(tools::is_there("valgrind"), "valgrind is missing; it says what is executed");
    let target = step::target()?.join("order");
    let mut build = step::cargo(&["build", "--release", "--package", "homing", "--target-dir"]);
    step::timed("release build, with names", || {
        step::run(build.arg(&target).env("CARGO_PROFILE_RELEASE_STRIP", "none"))
    })?;
    let program = target.join("release/homing");
    let scratch = Scratch::new("order")?;
    let called = scratch.path().join("calls");
    step::timed("a command under callgrind", || call(&program, scratch.path(), &called))?;
    let called = std::fs::read_to_string(&called).context("what callgrind wrote")?;
    let patterns = patterns(executed(&called), &sizes(&program)?);
    ensure!(
        patterns.contains("main") && patterns.len() > 50,
        "too few functions have names; is it stripped?"
    );
    std::fs::write(step::root().join("crates/homing/first.ld"), script(&patterns))?;
    Ok(ExitCode::SUCCESS)
}

/// Calls it, with a daemon that is there already, in a home of its own and nobody's session. Whatever fails, what was started is ended.
fn call(program: &Path, scratch: &Path, called: &Path) -> Result<()> {
    let alone = |command: &mut Command, words: &[&str]| {
        command.args(words).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", scratch);
        step::run(command.env("HOMING_HOME", scratch.join("state")))
    };
    let homing = |words: &[&str]| alone(&mut Command::new(program), words);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind", "--demangle=no"]);
    valgrind.arg(format!("--callgrind-out-file={}", called.display())).arg(program);
    let result = homing(&["run", "--", "true"]).and_then(|()| alone(&mut valgrind, &["run", "--", "true"]));
    let (ended, stopped) = (homing(&["wait", "@last"]), homing(&["daemon", "stop"]));
    result.and(ended).and(stopped)
}

/// The names of a profile: of those who call, and of those who are called.
fn executed(profile: &str) -> impl Iterator<Item = &str> {
    profile.lines().filter_map(|line| {
        let (number, name) = line.strip_prefix('c').unwrap_or(line).strip_prefix("fn=(")?.split_once(") ")?;
        number.parse::<u32>().ok().map(|_| name.split('\'').next().unwrap_or(name))
    })
}

/// How long each function is.
fn sizes(program: &Path) -> Result<BTreeMap<String, u64>> {
    let listed = Command::new("nm").arg("--print-size").arg(program).output().context("nm")?;
    ensure!(listed.status.success(), "nm ended with {}", listed.status);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let size = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let size = u64::from_str_radix(words.next()?, 16).ok()?;
        words.next().filter(|kind| kind.eq_ignore_ascii_case("t"))?;
        Some((words.next()?.to_owned(), size))
    };
    Ok(listed.lines().filter_map(size).collect())
}

/// The functions of the program that were executed, each without what changes from one compiler, or one release, to the next.
fn patterns<'a>(executed: impl Iterator<Item = &'a str>, sizes: &BTreeMap<String, u64>) -> BTreeSet<String> {
    let mut together = BTreeMap::<String, u64>::new();
    for (name, size) in sizes {
        *together.entry(pattern(name)).or_default() += size;
    }
    let ours = executed.filter(|name| sizes.contains_key(*name)).map(pattern);
    ours.filter(|name| together.get(name).is_some_and(|size| *size <= MOST)).collect()
}

/// A name of the older kind ends with a hash, one of the newer kind has one in the name of each crate, and either may be marked by the optimiser.
fn pattern(name: &str) -> String {
    let name = name.split(".llvm.").next().unwrap_or(name);
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some((path, end)) = name.rsplit_once("17h")
        && end.strip_suffix('E').is_some_and(is_hash)
    {
        return format!("{path}17h*");
    }
    if !name.starts_with("_R") {
        return name.to_owned();
    }
    let mut crates = name.split("Cs");
    let mut text = crates.next().unwrap_or_default().to_owned();
    for piece in crates {
        let hashed =
            piece.split_once('_').filter(|(hash, _)| hash.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        text += &hashed.map_or_else(|| format!("Cs{piece}"), |(_, rest)| format!("Cs*_{rest}"));
    }
    text + "*"
}

fn script(patterns: &BTreeSet<String>) -> String {
    let mut text = "/* What a short command executes, put together. Written by `cargo xtask order`; build.rs says what it is for. */\n\
                    SECTIONS {\n  .text.first : {\n"
        .to_owned();
    for pattern in patterns {
        // The compiler may have put it with what is hardly ever executed (`.text.unlikely`).
        text += &format!("    *(.text*.{pattern})\n");
    }
    text + "  }\n}\nINSERT BEFORE .text;\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_without_its_hashes() {
        assert_eq!(pattern("main"), "main");
        assert_eq!(pattern("_ZN6homing3cli3run17h6c83e8e778b72ecfE"), "_ZN6homing3cli3run17h*");
        assert_eq!(pattern("_ZN6homing3cli3run17h6c83e8e778b72ecfE.llvm.123"), "_ZN6homing3cli3run17h*");
        assert_eq!(
            pattern("_RNvNtCsjrHSEGnQ3l9_3std2io5flushCsgEmfK2I1SDS_4core"),
            "_RNvNtCs*_3std2io5flushCs*_4core*"
        );
    }

    #[test]
    fn what_would_bring_too_much_along_stays_where_it_is() {
        let sizes = [
            ("_ZN1a17h0000000000000001E", 10),
            ("_ZN1b17h0000000000000001E", 10),
            ("_ZN1b17h0000000000000002E", MOST),
        ];
        let sizes = sizes.into_iter().map(|(name, size)| (name.to_owned(), size)).collect();
        let profile =
            "fn=(1) _ZN1a17h0000000000000001E\ncfn=(2) _ZN1b17h0000000000000001E'2\ncfn=(2)\nfn=(3) malloc\n";
        assert_eq!(executed(profile).count(), 3);
        let found = patterns(executed(profile), &sizes);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["_ZN1a17h*"]);
    }
}
