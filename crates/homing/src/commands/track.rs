//! `homing track`: a task that somebody else runs.

use std::time::Duration;

use clap::Args;
use homing_model::notify::SigningKey;
use homing_model::units::millis;
use homing_model::{Kind, Notify, Spec, Target, Task, foreign, units};

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::{Failure, tell_submitted};
use crate::cli::usage_wording;
use crate::commands::run;
use crate::options::common_task_options::{self, NotifyOnArg, OnDuplicateArg};
use crate::options::variables;

#[derive(Debug, Args)]
#[command(
    after_help = "homing does not start it, has no output of it, and ends nothing: whoever runs it says how it \
ended. With --lease it is lost when nothing was heard of it for so long: `homing heartbeat ID` \
and `homing progress --task ID` renew that, and only time in which the daemon could hear counts. \
With --pid it ends with that process; how that ended is not known then, and it is lost too, \
unless somebody said so before. With neither, the lease is 24 hours.

Examples:
  id=$(homing track --name review --lease 10m)
  homing heartbeat $id               it goes on
  homing complete $id --answer 'two findings'
  homing track --pid $! --notify 'exec:notify-send done'
  homing wait $id                    as with any task; `homing show $id` has the answer"
)]
pub(crate) struct Options {
    /// A short name; may stand for the id
    #[arg(long)]
    name: Option<String>,
    /// What it is for, in a sentence
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Lost when nothing was heard of it for so long [default: 24h]
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = units::duration, conflicts_with = "pid")]
    lease: Option<Duration>,
    /// Ends with this process
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = usage_wording::pid)]
    pid: Option<u32>,
    /// Whose task it is [default: HOMING_OWNER, the agent session, or user]
    #[arg(long)]
    owner: Option<String>,
    /// A label to filter by; may be repeated
    #[arg(long, value_name = "K=V")]
    label: Vec<String>,
    /// Tell of its end: inbox, a URL for a webhook, exec:COMMAND LINE, wake (a turn of the agent that asks), wake:…, or desktop; may be
    /// repeated [default: inbox]
    #[arg(long, value_name = "TARGET", value_parser = common_task_options::target)]
    notify: Vec<Target>,
    /// Which ends are told of [default: always]
    #[arg(long, value_name = "WHEN")]
    notify_on: Option<NotifyOnArg>,
    /// Signs this task's webhooks: whsec_… [default: what config.toml says]
    #[arg(long, value_name = "KEY", requires = "notify")]
    notify_secret: Option<String>,
    /// Only one live task of this owner has this key
    #[arg(long)]
    key: Option<String>,
    /// A second one with the key [default: join]
    #[arg(long, value_name = "WHAT", requires = "key")]
    on_duplicate: Option<OnDuplicateArg>,
}

impl Options {
    fn spec(&self, context: &Context) -> Result<Spec, Failure> {
        let usual = Notify::usual();
        let spec = Spec {
            kind: Kind::External,
            name: self.name.clone(),
            description: self.description.clone(),
            owner: Some(self.owner.clone().unwrap_or_else(|| context.owner())),
            labels: variables::labels(&self.label)?,
            lease_ms: self.lease.map(millis),
            pid: self.pid,
            key: self.key.clone(),
            on_duplicate: common_task_options::on_duplicate(self.on_duplicate),
            notify: Some(Notify {
                on: common_task_options::when(self.notify_on),
                targets: if self.notify.is_empty() { usual.targets } else { self.notify.clone() },
                secret: self.notify_secret.clone().map(SigningKey::new),
            }),
            session: context.session(),
            pane: context.pane(&self.notify),
            ..Spec::default()
        };
        spec.validate().map_err(|why| usage_wording::invalid("track", &why, self.owner.is_some()))?;
        Ok(spec)
    }
}

/// Submits, and prints the id.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let spec = options.spec(context)?;
    let client = context.client_for(spec.owner.as_deref().unwrap_or_default());
    let submitted =
        context.block_on(async { Ok(client.submit(&spec, run::fresh_key().as_deref()).await?) })?;
    if submitted.joined && spec.key.is_some() {
        context.console.note(&joined(&submitted.task));
    } else if let Some(less) = run::told_less(&spec, &submitted.task) {
        context.console.note(&less);
    }
    tell_submitted(&submitted.task, context)?;
    Ok(exit_code::DONE)
}

fn joined(task: &Task) -> String {
    let other = match task.kind {
        Kind::External => String::new(),
        Kind::Command | Kind::Agent | Kind::Hook => {
            format!("; it is a command: {}", foreign::one_line(&task.command))
        }
    };
    format!("homing: joined {}, which is live with this key{other}", task.id)
}
