//! What every task that homing runs may be given, whatever it is: the options that `run`, `exec` and `ask` share.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::ArgValueCandidates;
use homing_model::notify::{SigningKey, When};
use homing_model::units::millis;
use homing_model::{Notify, OnDuplicate, OnExit, OsText, Spec, Target, units};

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::shell_words;
use crate::options::capture;
use crate::options::variables;
use crate::options::variables::Variables;

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

// Not a doc comment: the parser would take it for what every command that has these options does.
#[derive(Debug, Args)]
pub(crate) struct Circumstances {
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
    pub(crate) cwd: Option<PathBuf>,
    #[command(flatten)]
    variables: Variables,
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
    #[arg(long, value_name = "TARGET", value_parser = target, add = ArgValueCandidates::new(shell_words::targets))]
    notify: Vec<Target>,
    /// Which ends are told of [default: always]
    #[arg(long, value_name = "WHEN")]
    notify_on: Option<NotifyOnArg>,
    /// Signs this task's webhooks: whsec_… [default: what config.toml says]
    #[arg(long, value_name = "KEY", requires = "notify")]
    notify_secret: Option<String>,
    /// What it runs may do all that you may: name targets, reach tasks of others, change what concerns everybody
    #[arg(long)]
    allow_nested_notify: bool,
    /// Only one live task of this owner has this key
    #[arg(long)]
    key: Option<String>,
    /// A second one with the key [default: join]
    #[arg(long, value_name = "WHAT", requires = "key")]
    on_duplicate: Option<OnDuplicateArg>,
}

impl Circumstances {
    /// The spec of a task without its command, with all that it takes over from its caller.
    pub(crate) fn spec(&self, context: &Context) -> Result<Spec, Failure> {
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
        let env_set = self.variables.set(&context.surroundings)?;
        let mut env = self.variables.environment(&context.surroundings)?;
        if self.cwd.is_some() && env.contains_key("PWD") {
            env.insert("PWD".to_owned(), OsText::from(cwd.clone().into_os_string()));
        }
        Ok(Spec {
            name: self.name.clone(),
            description: self.description.clone(),
            owner: Some(self.owner.clone().unwrap_or_else(|| context.owner())),
            labels: variables::labels(&self.label)?,
            env: Some(env),
            env_set: env_set.into_iter().map(|(name, value)| (name, Some(value))).collect(),
            secrets: self.variables.secrets()?,
            cwd: Some(OsText::from(cwd.into_os_string())),
            timeout_ms: self.timeout.map(millis),
            grace_ms: self.grace.map(millis),
            on_exit: match self.on_exit {
                Some(OnExitArg::Kill) => OnExit::Kill,
                Some(OnExitArg::Leave) | None => OnExit::Leave,
            },
            max_output_bytes: self.max_output,
            umask: Some(capture::umask()),
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
        })
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
}
