//! The options of `run` and `exec`, and the spec that they make.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use clap::{Args, ValueHint};
use homing_model::{OsText, Spec, Stdin};

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::options::common_task_options::Circumstances;
use crate::options::program;
use crate::options::variables;
use crate::terminal::terminal_size;

// A task to be, as typed. Not a doc comment: the parser would take it for what every command that has these options does.
#[derive(Debug, Args)]
pub(crate) struct Submission {
    /// Run LINE in bash (or sh) instead of a program
    #[arg(short = 'c', value_name = "LINE", conflicts_with = "argv")]
    shell: Option<OsString>,
    #[command(flatten)]
    circumstances: Circumstances,
    /// Input: a file, `-` for this process's, `pipe` for `homing input`, `none` [default: none]
    #[arg(long, value_name = "FILE|-|pipe", value_hint = ValueHint::FilePath)]
    stdin: Option<OsString>,
    /// Give it a terminal, as large as this one; where there is none, of 80 columns and 24 lines
    #[arg(long)]
    pty: bool,
    /// It is an agent's session: what it runs may use that session's inbox and have it woken
    #[arg(long)]
    agent_session: bool,
    /// Program and arguments
    #[arg(trailing_var_arg = true, value_name = "ARGV", value_hint = ValueHint::AnyPath)]
    argv: Vec<OsString>,
}

impl Submission {
    /// Whether this process's stdin is to be passed on.
    pub(crate) fn pumps(&self) -> bool {
        self.stdin.as_deref().is_some_and(|stdin| stdin == "-")
    }

    /// Whether nothing was said of where the input comes from.
    pub(crate) fn says_no_stdin(&self) -> bool {
        self.stdin.is_none()
    }

    /// The spec, with all that a task takes over from its caller.
    pub(crate) fn spec(&self, verb: &str, context: &Context) -> Result<Spec, Failure> {
        if self.shell.is_none() && self.argv.is_empty() {
            let advice = format!("homing {verb} -- PROGRAM ARGUMENT…, or homing {verb} -c 'SHELL LINE'");
            return Err(Failure::usage("no command was given", advice));
        }
        let spec = Spec {
            argv: self.argv.iter().cloned().map(OsText::from).collect(),
            shell: self.shell.clone().map(OsText::from),
            stdin: self.input(),
            pty: self.pty,
            pty_size: self.pty.then(terminal_size::of_this_terminal).flatten(),
            agent_session: self.agent_session,
            ..self.circumstances.spec(context)?
        };
        if spec.pty && matches!(spec.stdin, Stdin::File(_)) {
            return Err(Failure::usage(
                "`--pty` gives it a terminal, which no file can be",
                format!("`homing {verb} --pty --stdin - … < FILE` types the file into the terminal."),
            ));
        }
        let cwd = spec.cwd.as_ref().map(OsText::as_os_str).unwrap_or_default();
        let search = spec.env.as_ref().and_then(|env| env.get("PATH")).map(OsText::as_os_str);
        program::refuse_shell_line(verb, &self.argv, Path::new(cwd), search)?;
        let owner_was_typed = self.circumstances.owner.is_some();
        spec.validate().map_err(|why| usage_wording::invalid(verb, &why, owner_was_typed))?;
        Ok(spec)
    }

    fn input(&self) -> Stdin {
        match self.stdin.as_deref().map(OsStrExt::as_bytes) {
            None | Some(b"none") => Stdin::None,
            Some(b"-" | b"pipe") => Stdin::Pipe,
            Some(file) => Stdin::File(variables::absolute(file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use homing_api::{Code, Problem};
    use homing_model::{OnDuplicate, OnExit, Secret};

    use super::*;
    use crate::options::environment::Surroundings;
    use crate::render::console::Console;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        submission: Submission,
    }

    fn spec(words: &[&str]) -> Result<Spec, Problem> {
        let surroundings = Surroundings::from([
            ("PATH", "/usr/bin:/bin"),
            ("PWD", "/elsewhere"),
            ("CLAUDE_CODE_SESSION_ID", "s1"),
            ("HOMING_HOME", "/h"),
        ]);
        let context = Context {
            surroundings,
            console: Console::plain(None),
            home_flag: None,
            home: "/h".into(),
            json: false,
        };
        let line = Line::parse_from([&["homing"], words].concat());
        line.submission.spec("run", &context).map_err(|failure| match failure {
            Failure::Problem(problem) => *problem,
            Failure::ClosedOutput => unreachable!("nothing is written"),
        })
    }

    #[test]
    fn a_task_takes_over_the_folder_and_the_environment_but_no_session() {
        let spec = spec(&["--", "ls", "-l"]).unwrap();
        assert_eq!(spec.cwd, std::env::current_dir().ok().map(|cwd| OsText::from(cwd.into_os_string())));
        assert_eq!(spec.env.unwrap().keys().collect::<Vec<_>>(), ["PATH", "PWD"]);
        assert_eq!(spec.owner.as_deref(), Some("claude:s1"));
        assert_eq!(spec.rlimits.len(), 16);
        assert!(spec.umask.is_some() && spec.nice.is_some());
    }

    #[test]
    fn what_is_said_outright_wins() {
        let spec = spec(&[
            "--cwd",
            "/tmp",
            "--env",
            "A=b=c",
            "--env-from",
            "CLAUDE_CODE_SESSION_ID",
            "--owner",
            "me",
            "--label",
            "k=v=w",
            "--timeout",
            "1.5s",
            "--max-output",
            "1MiB",
            "--on-exit",
            "kill",
            "--key",
            "k",
            "--on-duplicate",
            "refuse",
            "-c",
            "a | b",
        ])
        .unwrap();
        let env = spec.env.unwrap();
        assert_eq!(env["A"], "b=c".into());
        assert_eq!(env["PWD"], "/tmp".into());
        assert_eq!(env["CLAUDE_CODE_SESSION_ID"], "s1".into());
        assert_eq!((spec.owner.as_deref(), spec.timeout_ms), (Some("me"), Some(1_500)));
        assert_eq!((spec.max_output_bytes, spec.on_exit), (Some(1 << 20), OnExit::Kill));
        assert_eq!((spec.shell, spec.on_duplicate), (Some("a | b".into()), OnDuplicate::Refuse));
        assert_eq!(spec.labels["k"], "v=w");
    }

    #[test]
    fn input_and_secrets_come_from_absolute_files_or_not_from_files() {
        let here = std::env::current_dir().unwrap().join("in.txt").into_os_string();
        assert_eq!(spec(&["--stdin", "in.txt", "cat"]).unwrap().stdin, Stdin::File(here.clone().into()));
        assert_eq!(spec(&["--stdin", "-", "cat"]).unwrap().stdin, Stdin::Pipe);
        assert_eq!(spec(&["--stdin", "pipe", "cat"]).unwrap().stdin, Stdin::Pipe);
        assert_eq!(spec(&["cat"]).unwrap().stdin, Stdin::None);
        let secrets = spec(&["--secret", "A=x@y", "--secret", "B=@in.txt", "env"]).unwrap().secrets;
        assert_eq!(secrets["A"], Secret::Value("x@y".into()));
        assert_eq!(secrets["B"], Secret::File(here.into()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_secrets_are_not_repeated() {
        for words in [
            &[][..],
            &["--env", "A", "ls"],
            &["--env-from", "NOT_SET", "ls"],
            &["--label", "x", "ls"],
            &["--timeout", "0", "ls"],
            &["--max-output", "1", "ls"],
            &["--pty", "--stdin", "/etc/passwd", "ls"],
            &["--name", "a\u{7}", "ls"],
            &["--watch", "(", "ls"],
            &["--watch", "", "ls"],
            &["--quiet-after", "0", "ls"],
            &["--heartbeat", "10ms", "ls"],
        ] {
            let problem = spec(words).unwrap_err();
            assert_eq!(problem.known(), Some(Code::InvalidRequest), "{words:?}");
        }
        let problem = spec(&["--secret", "hunter2", "ls"]).unwrap_err();
        assert!(!format!("{problem:?}").contains("hunter2"));
        let detail = spec(&["--watch", "fine", "--watch", "not (fine", "ls"]).unwrap_err().detail;
        assert_eq!(detail, "`--watch`: `not (fine` is no regular expression: unclosed group, at character 5");
        assert_eq!(spec(&["ls | wc"]).unwrap_err().known(), Some(Code::LooksLikeShell));
    }
}
