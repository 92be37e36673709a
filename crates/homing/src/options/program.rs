//! Whether a single argument is a program, or a shell line that someone forgot to mark as one.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use homing_api::{Code, Problem};
use homing_model::shell::quote;
use homing_model::{OsText, Spec, Stdin, sanitize};
use homing_sys::plain;
use rustix::fs::{Access, access};

/// Characters that mean something to a shell and seldom occur in a program's name.
const SHELL: &[u8] = b" \t\n;|&<>$`()*?'\"\\{}~!#";

/// A longer line is not repeated in what is said of it.
const MAX_SHOWN_BYTES: usize = 1_000;

/// What the kernel reads of a script's first line.
const LONGEST_FIRST_LINE: u64 = 256;

/// Refuses one argument that looks like a shell line and is no program, and spells out what was probably meant.
pub(crate) fn refuse_shell_line(
    verb: &str,
    argv: &[impl AsRef<OsStr>],
    cwd: &Path,
    path: Option<&OsStr>,
) -> Result<(), Problem> {
    let [only] = argv else { return Ok(()) };
    let word = only.as_ref();
    if !looks_like_shell(word) || find(word, cwd, path).is_some() {
        return Ok(());
    }
    if word.len() > MAX_SHOWN_BYTES {
        return Err(Problem::new(
            Code::LooksLikeShell,
            format!("the argument of {} bytes is no program, but it looks like a shell line", word.len()),
        ));
    }
    let line = sanitize::line(&word.to_string_lossy());
    let mut problem = Problem::new(
        Code::LooksLikeShell,
        format!("{} is no program, but it looks like a shell line", quote(&line)),
    );
    problem.advice = format!("homing {verb} -c {}", quote(&line));
    Err(problem)
}

fn looks_like_shell(word: &OsStr) -> bool {
    word.as_bytes().iter().any(|byte| SHELL.contains(byte))
}

/// The files that may be executed for a word, in the order in which they are tried.
fn candidates(word: &OsStr, cwd: &Path, path: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    let named = word.as_bytes().contains(&b'/').then(|| cwd.join(word));
    let path = path.filter(|_| named.is_none()).unwrap_or_default();
    let found: Vec<_> = std::env::split_paths(path).map(|folder| cwd.join(folder).join(word)).collect();
    let found = if path.is_empty() { Vec::new() } else { found };
    named.into_iter().chain(found)
}

/// The file that would be executed, if there is one.
fn find(word: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    candidates(word, cwd, path).find(|file| file.is_file())
}

/// What would keep a task from starting if it were started now. Only the start itself decides: by then it may be otherwise.
pub(crate) fn why_not(spec: &Spec) -> Option<String> {
    let cwd = spec.cwd.as_ref().map(|cwd| Path::new(cwd.as_os_str()))?;
    match std::fs::metadata(cwd) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Some(format!("{} is not a folder", cwd.display())),
        Err(error) => return Some(format!("the folder {} {}", cwd.display(), reason(&error))),
    }
    if let Stdin::File(file) = &spec.stdin
        && let Err(error) = std::fs::metadata(file.as_os_str())
    {
        return Some(format!("the input {} {}", file.lossy(), reason(&error)));
    }
    let word = spec.argv.first()?.as_os_str();
    let path = spec.env.as_ref().and_then(|env| env.get("PATH")).map(OsText::as_os_str);
    let named = word.as_bytes().contains(&b'/');
    if !named && path.is_none() {
        return None;
    }
    let files: Vec<_> = candidates(word, cwd, path).filter(|file| file.is_file()).collect();
    match files.first() {
        Some(_) if files.iter().any(|file| access(file, Access::EXEC_OK).is_ok()) => {
            let mut tried = files.iter().filter(|file| access(*file, Access::EXEC_OK).is_ok());
            let first = tried.next().and_then(|file| without_interpreter(file, cwd));
            first.filter(|_| tried.all(|file| without_interpreter(file, cwd).is_some()))
        }
        Some(file) => Some(format!("{} is not executable; `chmod +x` makes it so", file.display())),
        None if !named => Some(not_in_path(word, cwd)),
        None if cwd.join(word).is_dir() => Some(format!("{} is a folder", word.display())),
        None => Some(format!("{} is not there", word.display())),
    }
}

fn not_in_path(word: &OsStr, cwd: &Path) -> String {
    let shown = word.display();
    let hint = if cwd.join(word).is_file() {
        format!("; the one in this folder is `./{shown}`")
    } else if word.as_bytes().contains(&b'=') {
        format!("; `--env {shown}` sets a variable")
    } else {
        String::new()
    };
    format!("`{shown}` is not in PATH{hint}")
}

/// Why a script cannot be executed whose first line names a program that is not there.
fn without_interpreter(file: &Path, cwd: &Path) -> Option<String> {
    let mut first = Vec::new();
    plain::open(file).ok()?.take(LONGEST_FIRST_LINE).read_to_end(&mut first).ok()?;
    let line = first.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
    let named = line.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    let interpreter = Path::new(OsStr::from_bytes(named));
    if named.is_empty() || cwd.join(interpreter).exists() {
        return None;
    }
    let shown = sanitize::line(&interpreter.to_string_lossy());
    let ends = if named.ends_with(b"\r") { "; its lines end as on Windows" } else { "" };
    Some(format!("the interpreter of {}, `{}`, is not there{ends}", file.display(), shown.trim_end()))
}

fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        "is not there".to_owned()
    } else {
        format!("cannot be used: {error}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("odd name"), "").unwrap();
        let path = folder.path().as_os_str().to_owned();
        refuse_shell_line("run", words, folder.path(), Some(&path)).err().map(|problem| problem.advice)
    }

    #[test]
    fn a_shell_line_is_refused_with_the_form_that_works() {
        assert_eq!(
            refused(&["cargo test && echo ok"]).as_deref(),
            Some("homing run -c 'cargo test && echo ok'")
        );
        assert_eq!(refused(&["echo it's"]).as_deref(), Some(r"homing run -c 'echo it'\''s'"));
        let long = refused(&[&"echo x; ".repeat(1_000)]).unwrap();
        assert!(long.starts_with("Use `homing run -c 'LINE'`"), "{long}");
        for line in ["a|b", "a;b", "a>b", "echo $HOME", "ls *.rs", "./run me"] {
            assert!(refused(&[line]).is_some(), "{line}");
        }
    }

    #[test]
    fn programs_and_several_arguments_are_left_alone() {
        for words in
            [&["true"][..], &["echo", "a b"], &["odd name"], &["./odd name"], &["no-such-program"], &["a=b"]]
        {
            assert_eq!(refused(words), None, "{words:?}");
        }
    }

    #[test]
    fn what_keeps_a_program_from_starting_is_said_with_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        };
        write("plain", "echo", 0o600);
        write("good", "#!/bin/sh -e\n", 0o700);
        write("bad", "#! /no/such/shell x\n", 0o700);
        write("dos", "#!/bin/sh\r\necho\r\n", 0o700);
        write("binary", "\x7fELF", 0o700);
        let why = |word: &str| {
            why_not(&Spec {
                argv: vec![word.into()],
                cwd: Some(folder.path().as_os_str().to_owned().into()),
                env: Some([("PATH".to_owned(), "/usr/bin:/bin".into())].into()),
                ..Spec::default()
            })
        };
        for word in ["./good", "./binary", "sh"] {
            assert_eq!(why(word), None, "{word}");
        }
        for (word, said) in [
            ("./plain", "`chmod +x`"),
            ("good", "the one in this folder is `./good`"),
            ("FOO=1", "`--env FOO=1`"),
            ("./bad", "`/no/such/shell`, is not there"),
            ("./dos", "its lines end as on Windows"),
            ("./none", "is not there"),
        ] {
            let why = why(word).unwrap_or_default();
            assert!(why.contains(said), "{word}: {why}");
        }
    }
}
