//! Programs that are nothing without a terminal, and were given none.
//!
//! A task has no keyboard unless it is given one. A shell or an interpreter without arguments then reads an empty input and ends at once,
//! with success and not a word; an editor complains in its own. Whoever typed it is told what was missing. It is a guess by the name of the
//! program, so that nothing is refused.

use std::path::Path;

use homing_model::{OsText, Spec, Stdin, shell};

/// These wait for what is typed when they are called without arguments.
const ALONE: &[&str] = &[
    "bash", "bc", "dash", "fish", "ghci", "gdb", "ipython", "ipython3", "irb", "julia", "lua", "mysql",
    "node", "php", "psql", "python", "python2", "python3", "R", "scala", "sh", "sqlite3", "zsh",
];

/// These take the whole screen, whatever they are called with.
const ALWAYS: &[&str] = &[
    "emacs", "htop", "less", "man", "micro", "more", "nano", "nvim", "screen", "tmux", "top", "vi", "vim",
    "view", "watch",
];

/// What to tell whoever runs this without a terminal; `verb` is the command that it was typed with.
pub(crate) fn hint(verb: &str, spec: &Spec) -> Option<String> {
    if spec.pty || spec.stdin != Stdin::None {
        return None;
    }
    let words: Vec<&OsText> = spec.argv.iter().collect();
    let (program, rest) = words.split_first()?;
    let name = Path::new(program.as_os_str()).file_name()?.to_str()?;
    let waits = ALWAYS.contains(&name) || (rest.is_empty() && ALONE.contains(&name));
    let line: Vec<_> = words.iter().map(|word| shell::quote(&word.lossy()).into_owned()).collect();
    waits.then(|| {
        format!(
            "homing: {name} gets no keyboard and no terminal like this\n  next: `homing {verb} --pty -- {}` gives it one",
            line.join(" ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[&str]) -> Option<String> {
        hint(
            "exec",
            &Spec { argv: words.iter().map(|word| OsText::from(*word)).collect(), ..Spec::default() },
        )
    }

    #[test]
    fn a_program_that_waits_for_what_is_typed_is_told_of_the_terminal() {
        assert!(told(&["python3"]).unwrap().ends_with("`homing exec --pty -- python3` gives it one"));
        assert!(told(&["/usr/bin/vim", "a b"]).unwrap().contains("--pty -- /usr/bin/vim 'a b'"));
    }

    #[test]
    fn what_has_something_to_do_is_left_alone() {
        for words in [&["python3", "x.py"][..], &["bash", "-c", "true"], &["make"], &["less-or-more"]] {
            assert_eq!(told(words), None, "{words:?}");
        }
        let spec = Spec { argv: vec!["python3".into()], stdin: Stdin::Pipe, ..Spec::default() };
        assert_eq!(hint("run", &spec), None, "it is written to");
        assert_eq!(hint("run", &Spec { stdin: Stdin::None, pty: true, ..spec }), None);
    }
}
