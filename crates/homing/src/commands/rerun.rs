//! `homing rerun`: the same again, as a new task.

use clap::Args;
use clap_complete::{ArgValueCandidates, ArgValueCompleter};
use homing_api::RerunRequest;
use homing_client::Submitted;
use homing_model::Target;
use homing_model::notify::{Notify, When};

use super::run::fresh_key;
use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::shell_words;
use crate::cli::usage_wording;
use crate::options::common_task_options;
use crate::options::variables::Variables;

#[derive(Debug, Args)]
#[command(
    after_help = "The new task has the command line, folder, limits, labels, name and targets of the old one, \
which may still run, and is yours. It gets the environment of this shell, then what `--env` and \
`--env-from` set for the old task, then what they set here. Secrets that were given as values, \
with `--secret` or with `--env`, have to be given again; a secret that is a file is read again. \
What was piped into it is not kept: `homing input` gives it anew. Of a forgotten task only the \
outcome is left, so it cannot be run again.

Examples:
  homing rerun @last                             prints the new id
  homing rerun build && homing wait @last
  homing rerun t-4k --secret TOKEN=@token.txt
  homing rerun $(homing list --status failed --json | jq -r '.items[].id')"
)]
pub(crate) struct Options {
    /// Ids, starts of ids, names, or @last
    #[arg(value_name = "ID", required = true, value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::tasks))]
    ids: Vec<String>,
    /// Whose the new task is [default: HOMING_OWNER, the agent session, or user]
    #[arg(long, value_parser = usage_wording::owner)]
    owner: Option<String>,
    #[command(flatten)]
    variables: Variables,
    /// Tell of its end there, always, instead of where the old one told of its own; may be repeated
    #[arg(long, value_name = "TARGET", value_parser = common_task_options::target, add = ArgValueCandidates::new(shell_words::targets))]
    notify: Vec<Target>,
}

/// Runs one after the other again; one that cannot be does not keep the others.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let owner = options.owner.clone().unwrap_or_else(|| context.owner());
    let client = context.client_for(&owner);
    let notify = (!options.notify.is_empty()).then(|| Notify {
        on: When::Always,
        targets: options.notify.clone(),
        secret: None,
    });
    let request = RerunRequest {
        owner: Some(owner),
        env: Some(options.variables.environment(&context.surroundings)?),
        env_set: options.variables.set(&context.surroundings)?,
        secrets: options.variables.secrets()?,
        notify,
        session: context.session(),
        pane: context.pane(&options.notify),
    };
    context.block_on(async {
        let mut code = exit_code::DONE;
        let mut tasks = Vec::new();
        for id in &options.ids {
            // Under a fresh key, so that a daemon that dies in the middle costs nothing and doubles nothing.
            match client.rerun(id, &request, fresh_key().as_deref()).await {
                Ok(submitted) => {
                    tell(&submitted, context);
                    if !context.json {
                        let id = &submitted.task.id;
                        context.console.line(id.as_str()).map_err(|failure| failure.naming(id))?;
                    }
                    tasks.push(submitted.task);
                }
                Err(error) => context.one_failed(error, &mut code),
            }
        }
        if context.json {
            let printed = context.console.json(&serde_json::json!({ "items": tasks }));
            printed
                .map_err(|failure| tasks.iter().fold(failure, |failure, task| failure.naming(&task.id)))?;
        }
        Ok(code)
    })
}

/// What is not as the first time.
fn tell(submitted: &Submitted, context: &Context) {
    let id = &submitted.task.id;
    if submitted.joined {
        context.console.note(&format!("homing: joined {id}, which is live with this key"));
    } else if submitted.task.accepts_input {
        context.console.note(&format!(
            "homing: what the first run got as input is not kept; `homing input {id} TEXT` gives it anew, `homing input {id} --eof` ends it"
        ));
    }
}
