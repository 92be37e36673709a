//! The options of `run` and `exec`, and the spec that they make.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::ArgValueCompleter;
use homing_model::notify::{SigningKey, When};
use homing_model::units::millis;
use homing_model::{Notify, OnDuplicate, OnExit, OsText, Spec, Stdin, Target, units};

use crate::context::Context;
use crate::failure::Failure;
use crate::{capture, completion, program, variables, wording};

/// What happens to children that outlive the main process.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum OnExitArg {
    Leave,
    Kill,
}

/// What a second submit with the same key means.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnDuplicateArg {
    Join,
    Refuse,
}

/// Which ends are told of.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum NotifyOnArg {
    Always,
    Failure,
    Never,
}

pub(crate) fn target(text: &str) -> Result<Target, String> {
    text.parse().map_err(|error: homing_model::notify::UnknownTarget| error.to_string())
}

/// Which ends are told of, where nothing was said too.
pub(crate) fn when(given: Option<NotifyOnArg>) -> When {
    match given {
        Some(NotifyOnArg::Always) | None => When::Always,
        Some(NotifyOnArg::Failure) => When::Failure,
        Some(NotifyOnArg::Never) => When::Never,
    }
}

/// What a second submit means, where nothing was said too.
pub(crate) fn on_duplicate(given: Option<OnDuplicateArg>) -> OnDuplicate {
    match given {
        Some(OnDuplicateArg::Refuse) => OnDuplicate::Refuse,
        Some(OnDuplicateArg::Join) | None => OnDuplicate::Join,
    }
}

// A task to be, as typed. Not a doc comment: the parser would take it for what every command that has these options does.
#[derive(Debug, Args)]
pub(crate) struct Submission {
    /// Run LINE in bash (or sh) instead of a program
    #[arg(short = 'c', value_name = "LINE", conflicts_with = "argv")]
    shell: Option<OsString>,
    /// A short name; may stand for the id
    #[arg(long)]
    name: Option<String>,
    /// What it is for, in a sentence
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Whose task it is [default: HOMING_OWNER, the agent session, or user]
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// A label to filter by; may be repeated
    #[arg(long, value_name = "K=V")]
    label: Vec<String>,
    /// Working directory [default: this one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// Set a variable; may be repeated
    #[arg(long, value_name = "K=V")]
    env: Vec<OsString>,
    /// Pass this variable on even though it is kept from tasks (agent sessions)
    #[arg(long, value_name = "NAME")]
    env_from: Vec<String>,
    /// A variable that is never written to disk; @FILE is read at every start
    #[arg(long, value_name = "K=V|K=@FILE", add = ArgValueCompleter::new(completion::secret))]
    secret: Vec<OsString>,
    /// Input: a file, `-` for this process's, `pipe` for `homing input`, `none` [default: none]
    #[arg(long, value_name = "FILE|-|pipe", value_hint = ValueHint::FilePath)]
    stdin: Option<OsString>,
    /// Give it a terminal, of 80 columns and 24 lines
    #[arg(long)]
    pty: bool,
    /// End it this long after its start
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = units::duration)]
    timeout: Option<Duration>,
    /// Between the polite signal and the last one [default: 5s, or what config.toml says]
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = units::duration)]
    grace: Option<Duration>,
    /// Children that outlive the main process [default: leave]
    #[arg(long, value_name = "WHAT")]
    on_exit: Option<OnExitArg>,
    /// How much output is kept [default: 256MiB, or what config.toml says]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    max_output: Option<u64>,
    /// Tell of a line of output that matches; may be repeated
    #[arg(long, value_name = "REGEX")]
    watch: Vec<String>,
    /// Tell when it printed nothing for so long; it goes on
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = units::duration)]
    quiet_after: Option<Duration>,
    /// Tell what is new in its output this often, if anything is
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = units::duration)]
    heartbeat: Option<Duration>,
    /// Tell of its end: inbox, a URL for a webhook, exec:COMMAND LINE, wake (a turn of the agent that asks), wake:…, or desktop; may be
    /// repeated [default: inbox]
    #[arg(long, value_name = "TARGET", value_parser = target)]
    notify: Vec<Target>,
    /// Which ends are told of [default: always]
    #[arg(long, value_name = "WHEN")]
    notify_on: Option<NotifyOnArg>,
    /// Signs this task's webhooks: whsec_… [default: what config.toml says]
    #[arg(long, value_name = "KEY", requires = "notify")]
    notify_secret: Option<String>,
    /// What it runs may name targets for tasks of its own
    #[arg(long)]
    allow_nested_notify: bool,
    /// Only one live task of this owner has this key
    #[arg(long)]
    key: Option<String>,
    /// A second one with the key [default: join]
    #[arg(long, value_name = "WHAT", requires = "key")]
    on_duplicate: Option<OnDuplicateArg>,
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
        let here = std::env::current_dir().map_err(|error| {
            Failure::usage(
                format!("the working directory cannot be found: {error}"),
                "Change to a folder that exists, or name one with `--cwd DIR`.",
            )
        });
        let cwd = match &self.cwd {
            Some(path) if path.is_absolute() => path.clone(),
            Some(path) => here?.join(path),
            None => here?,
        };
        let mut env = variables::environment(&self.env, &self.env_from, &context.surroundings)?;
        if self.cwd.is_some() && env.contains_key("PWD") {
            env.insert("PWD".to_owned(), OsText::from(cwd.clone().into_os_string()));
        }
        let stdin = self.input();
        if self.pty && matches!(stdin, Stdin::File(_)) {
            return Err(Failure::usage(
                "`--pty` gives it a terminal, which no file can be",
                format!("`homing {verb} --pty --stdin - … < FILE` types the file into the terminal."),
            ));
        }
        let search = env.get("PATH").map(OsText::as_os_str);
        program::refuse_shell_line(verb, &self.argv, &cwd, search)?;
        let spec = Spec {
            argv: self.argv.iter().cloned().map(OsText::from).collect(),
            shell: self.shell.clone().map(OsText::from),
            name: self.name.clone(),
            description: self.description.clone(),
            owner: Some(self.owner.clone().unwrap_or_else(|| context.owner())),
            labels: variables::labels(&self.label)?,
            env: Some(env),
            secrets: variables::secrets(&self.secret)?,
            stdin,
            cwd: Some(OsText::from(cwd.into_os_string())),
            pty: self.pty,
            timeout_ms: self.timeout.map(millis),
            grace_ms: self.grace.map(millis),
            on_exit: match self.on_exit {
                Some(OnExitArg::Kill) => OnExit::Kill,
                Some(OnExitArg::Leave) | None => OnExit::Leave,
            },
            max_output_bytes: self.max_output,
            umask: capture::umask(),
            rlimits: capture::rlimits(),
            nice: capture::nice(),
            key: self.key.clone(),
            on_duplicate: on_duplicate(self.on_duplicate),
            notify: Some(self.policy()),
            allow_nested_notify: self.allow_nested_notify,
            watch: self.watch.clone(),
            quiet_after_ms: self.quiet_after.map(millis),
            heartbeat_ms: self.heartbeat.map(millis),
            session: context.session(),
            pane: context.pane(&self.notify),
            ..Spec::default()
        };
        spec.validate().map_err(|why| wording::invalid(verb, &why, self.owner.is_some()))?;
        Ok(spec)
    }

    /// Who is told. A target that is named takes the place of the inbox, unless the inbox is named too.
    fn policy(&self) -> Notify {
        let usual = Notify::usual();
        Notify {
            on: when(self.notify_on),
            targets: if self.notify.is_empty() { usual.targets } else { self.notify.clone() },
            secret: self.notify_secret.clone().map(SigningKey::new),
        }
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
    use homing_model::{Code, Problem, Secret};

    use super::*;
    use crate::console::Console;
    use crate::surroundings::Surroundings;

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
