//! Whether a single argument is a program, or a shell line that someone forgot to mark as one.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use homing_model::shell::quote;
use homing_model::{Code, Problem, sanitize};

/// Characters that mean something to a shell and seldom occur in a program's name.
const SHELL: &[u8] = b" \t\n;|&<>$`()*?'\"\\{}~!#";

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

/// The file that would be executed, if there is one.
fn find(word: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    if word.as_bytes().contains(&b'/') {
        return Some(cwd.join(word)).filter(|file| file.is_file());
    }
    std::env::split_paths(path?).map(|folder| cwd.join(folder).join(word)).find(|file| file.is_file())
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
}
