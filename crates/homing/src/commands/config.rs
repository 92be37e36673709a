//! `homing config`: the configuration in force, where each value comes from, and whether the file is sound.

mod explanation;

use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use homing_api::{Code, ConfigurationInfo, ConfigurationSource, Problem};
use homing_engine::Config;
use homing_engine::config::manual;

use crate::cli::context::Context;
use crate::cli::entry;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::shell_words;
use crate::options::configuration;
use crate::options::home;
use crate::render::columns;

/// How long a daemon is waited for that may not be there.
const PATIENCE: Duration = Duration::from_secs(2);

/// The copy of the last good file, in the home.
const LAST_GOOD: &str = "config.last-good.toml";

#[derive(Debug, Args)]
#[command(
    after_help = "config.toml is in the home where one was chosen (--home, HOMING_HOME), else in the XDG \
configuration folder. A running daemon is asked what is in force; none is ever started. A \
changed file takes effect by itself, a moment after it was written; a broken one changes \
nothing, and that is said on stderr, in the status and by doctor.

[notify] says what notices may do, whatever a task asks for: kinds of targets (allow, forbid), \
and which ends are told at most (on). [wake] per_hour says how often an agent's session is woken \
in any hour, by whichever way.

Examples:
  homing config                      what is in force, and where each value comes from
  homing config check                0 if the file is sound
  homing config default              every key with its meaning, as a commented file
  homing config explain log.level
  $EDITOR \"$(homing config path)\""
)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: Option<What>,
    /// Only say whether the file is sound, as `config check`
    #[arg(long, conflicts_with_all = ["path", "default"])]
    check: bool,
    /// Only print where it is, as `config path`
    #[arg(long, conflicts_with = "default")]
    path: bool,
    /// Print every key with its meaning and default, as `config default`
    #[arg(long)]
    default: bool,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Say whether the file is sound
    #[command(after_help = "Exit codes: 0 it is, or there is none; 1 it is not.

Example:
  homing config check && homing config reload")]
    Check,
    /// Print where the file is
    #[command(after_help = "Example:
  $EDITOR \"$(homing config path)\"")]
    Path,
    /// Print every key with its meaning and default, as a commented file
    #[command(after_help = "As a file it changes nothing: take the mark away from the lines that you change.

Example:
  mkdir -p \"$(dirname \"$(homing config path)\")\"
  homing config default > \"$(homing config path)\"")]
    Default,
    /// Explain one key, or all of a section
    #[command(after_help = "Examples:
  homing config explain retention.age
  homing config explain retention")]
    Explain {
        /// SECTION.KEY, or SECTION
        #[arg(value_name = "KEY", add = ArgValueCandidates::new(shell_words::keys))]
        key: String,
    },
    /// Have the daemon read the file now, and say what is wrong with it
    #[command(after_help = "It does so by itself whenever the file changes; this waits until it is done.

Exit codes: 0 the file is in force; 1 it is broken and the last good one is; 69 no daemon runs.

Example:
  homing config reload")]
    Reload,
}

/// What is in force, or would be.
struct InForce {
    config: Config,
    source: ConfigurationSource,
    overrides: configuration::Overrides,
    running: bool,
}

/// Prints it; 1 if the file is broken.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let path = home::configuration(context.home_flag.as_deref(), &context.surroundings)?;
    match &options.what {
        Some(What::Path) => return show_path(&path, context),
        Some(What::Check) => return check(&path, context),
        Some(What::Default) => return default(context),
        Some(What::Explain { key }) => return explanation::run(key, &path, context),
        Some(What::Reload) => return reload(context),
        None if options.path => return show_path(&path, context),
        None if options.check => return check(&path, context),
        None if options.default => return default(context),
        None => {}
    }
    let file = entry::configuration(&path);
    let told = ask(context)?;
    let in_force = match (told, &file) {
        (Some(told), _) => told,
        (None, Ok(config)) => next(config.clone(), &path, context),
        (None, Err(problem)) => last_good(context).ok_or_else(|| problem.clone())?,
    };
    let changed = match &file {
        Ok(config) if in_force.running => {
            let mut file = config.clone();
            if in_force.overrides.interval {
                file.reconcile.interval = in_force.config.reconcile.interval;
            }
            configuration::differences(&in_force.config, &file)
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    print(&in_force, &path, &changed, file.as_ref().err(), context)?;
    if let Err(problem) = &file {
        context.report(problem);
        return Ok(exit_code::FAILED);
    }
    if !changed.is_empty() {
        let keys: Vec<_> = changed
            .iter()
            .map(|(key, in_force, file)| format!("{key} is {in_force} in force and {file} in the file"))
            .collect();
        context.console.note(&format!(
            "homing: the file has changed since the daemon read it: {}\n  next: `homing config reload` takes it over",
            keys.join(", ")
        ));
    }
    Ok(exit_code::DONE)
}

fn show_path(path: &Path, context: &Context) -> Result<u8, Failure> {
    let shown = path.display().to_string();
    if context.json {
        context.console.json(&serde_json::json!({ "path": shown }))?;
    } else {
        context.console.line(&shown)?;
    }
    Ok(exit_code::DONE)
}

fn default(context: &Context) -> Result<u8, Failure> {
    let text = manual::default_file();
    if context.json {
        let answer = serde_json::json!({ "default": text, "values": Config::default() });
        context.console.json(&answer)?;
    } else {
        context.console.data(text.as_bytes())?;
    }
    Ok(exit_code::DONE)
}

fn reload(context: &Context) -> Result<u8, Failure> {
    let client = context.quiet_client();
    let answer = context.block_on(async { Ok(client.reload_configuration().await) })?;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if error.is_nobody_there() => {
            let mut problem =
                Problem::new(Code::DaemonUnreachable, "no daemon runs that could read the configuration");
            problem.advice = "The next one reads it when it starts: `homing daemon start`.".to_owned();
            return Err(problem.into());
        }
        Err(error) => return Err(error.into()),
    };
    if context.json {
        context.console.json(&answer)?;
    } else {
        // Whether it was read just now or a moment before, by itself, is in the JSON and makes no difference to a reader.
        let path = homing_model::sanitize::line(&answer.path);
        let said = if Path::new(&answer.path).exists() {
            format!("{path} is in force")
        } else {
            format!("{path} is not there, which is fine: the defaults are in force")
        };
        context.console.line(&said)?;
    }
    Ok(exit_code::DONE)
}

fn check(path: &Path, context: &Context) -> Result<u8, Failure> {
    let effective = entry::effective_configuration(path)?;
    let (shown, exists) = (path.display().to_string(), path.exists());
    if context.json {
        let answer = serde_json::json!({ "path": shown, "exists": exists, "configuration": effective });
        context.console.json(&answer)?;
    } else {
        let what = if exists { "is sound" } else { "is not there, which is fine: the defaults apply" };
        context.console.line(&format!("{shown} {what}"))?;
    }
    Ok(exit_code::DONE)
}

/// By the word of the daemon; none if none runs, or one that does not tell.
fn ask(context: &Context) -> Result<Option<InForce>, Failure> {
    let client = context.quiet_client();
    let asked = context.block_on(async { Ok(tokio::time::timeout(PATIENCE, client.status()).await) })?;
    let told: Option<ConfigurationInfo> =
        asked.ok().and_then(Result::ok).and_then(|status| status.configuration);
    Ok(told.and_then(|told| {
        let config = serde_json::from_value(told.values).ok()?;
        let overrides = configuration::Overrides { interval: told.interval_is_set, log: told.log_is_set };
        Some(InForce { config, source: told.source, overrides, running: true })
    }))
}

/// What the next daemon takes from a sound file.
fn next(config: Config, path: &Path, context: &Context) -> InForce {
    InForce {
        config: configuration::overridden(config, &context.surroundings),
        source: if path.exists() { ConfigurationSource::File } else { ConfigurationSource::Defaults },
        overrides: configuration::overrides(&context.surroundings),
        running: false,
    }
}

/// What the next daemon takes where the file is broken.
fn last_good(context: &Context) -> Option<InForce> {
    let copy = context.home.join(LAST_GOOD);
    let config = Config::load(&copy).ok().filter(|_| copy.exists())?;
    Some(InForce { source: ConfigurationSource::LastGood, ..next(config, &copy, context) })
}

fn print(
    in_force: &InForce,
    path: &Path,
    changed: &[(String, toml::Value, toml::Value)],
    problem: Option<&Problem>,
    context: &Context,
) -> Result<(), Failure> {
    let copy = context.home.join(LAST_GOOD);
    let read = if in_force.source == ConfigurationSource::LastGood { &copy } else { path };
    let origins = configuration::origins(&in_force.config, read, in_force.overrides);
    let shown = path.display().to_string();
    if context.json {
        let keys: Vec<_> = changed.iter().map(|(key, ..)| key).collect();
        return context.console.json(&serde_json::json!({
            "path": shown, "exists": path.exists(), "running": in_force.running, "source": in_force.source,
            "configuration": toml::to_string(&in_force.config).unwrap_or_default(), "values": in_force.config,
            "origins": origins, "changed": keys, "problem": problem.map(|problem| &problem.detail),
        }));
    }
    let who = if in_force.running { "in force" } else { "no daemon runs; the next one begins with this" };
    let how = match in_force.source {
        ConfigurationSource::File | ConfigurationSource::Defaults if problem.is_some() => {
            " (broken: what was read before applies)".to_owned()
        }
        ConfigurationSource::File => String::new(),
        ConfigurationSource::Defaults if path.exists() => String::new(),
        ConfigurationSource::Defaults => " (not there: the defaults apply)".to_owned(),
        ConfigurationSource::LastGood => " (broken: the last good one applies)".to_owned(),
    };
    let width = context.console.width;
    let text = configuration::render(&in_force.config, &origins, width);
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(2));
    let head = [format!("{shown}{how}"), who.to_owned()];
    let head: String =
        head.iter().flat_map(|line| columns::wrap(line, room)).map(|line| format!("# {line}\n")).collect();
    context.console.data(format!("{head}\n{text}").as_bytes())
}
