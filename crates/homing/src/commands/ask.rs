//! `homing ask`: a sub-agent as a task; its answer is the result.

use std::io::Read as _;
use std::time::Duration;

use clap::Args;
use clap_complete::{ArgValueCandidates, ArgValueCompleter};
use homing_agents::{environment, registry};
use homing_client::{Client, Mode, Submitted};
use homing_model::agent::LONGEST_PROMPT;
use homing_model::sanitize::{Colour, Sanitizer};
use homing_model::{Kind, Spec, Task, TaskId};

use super::run::{conclude, submit};
use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::{Failure, heard, tell_submitted};
use crate::cli::shell_words;
use crate::cli::usage_wording;
use crate::options::common_task_options::Circumstances;
use crate::options::unknown_session;
use crate::render::symbol;
use crate::terminal::foreground::{Attended, Foreground};
use crate::terminal::interrupts::{Interrupts, OnInterrupt};
use crate::terminal::session_wait::{announced, meanwhile};

/// Between two looks at what the agent is at.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(override_usage = "homing ask [OPTIONS] PROMPT\n       homing ask [OPTIONS] - < FILE")]
#[command(
    after_help = format!("The agent runs in this folder, in a session of its own, as a task: it goes on whatever happens \
to this shell, and its answer comes to the inbox. It may do what its own settings allow without \
asking.

Without --agent: `[agents] default` in config.toml, else the agent whose session this is, else \
the only one on the PATH. Known are {}; `[agents.NAME]` makes \
any command one.

Examples:
  homing ask 'Why does the build fail? Look at build.log.'     submit; prints the id
  homing ask --wait --agent codex 'Review the last commit'     prints the answer
  homing ask --follow --timeout 20m 'Fix the flaky test'       shows on stderr what it is at
  homing ask --continue @last --wait 'And why?'                goes on with its session
  git diff | homing ask --wait -                               the prompt from a pipe
  homing show @last --json | jq -r .answer

Exit codes with --wait or --follow: 0 answered, the agent's own code or 1 where it reported an \
error, 128+n for a signal, 121 lost, 122 stopped, 123 still running, 124 timed out, 125 homing \
failed, 126/127 could not be started. Without them: 0 submitted, 1 failed, 2 usage, 69 no \
daemon.", registry::listed())
)]
pub(crate) struct Options {
    /// Which agent
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(shell_words::agents))]
    agent: Option<String>,
    /// Go on with the session of this task, which an agent answered
    #[arg(long = "continue", value_name = "ID", value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::tasks))]
    continues: Option<String>,
    /// Wait for the answer; print it
    #[arg(long)]
    wait: bool,
    /// The same, and show on stderr what the agent is at
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    circumstances: Circumstances,
    /// What it is asked; `-` reads it from stdin
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,
}

/// Submits, and stays only if asked to.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let spec = options.spec(context)?;
    let spec = if options.waits_for_end() { announced(spec) } else { spec };
    let client = context.client_for(spec.owner.as_deref().unwrap_or_default());
    context.block_on(async {
        let interrupts = Interrupts::catch()?;
        let submitted = submit(&spec, &client, context).await?;
        if !options.waits_for_end() {
            let code = told(&submitted, context)?;
            unknown_session::tell(&spec, &submitted, &client, context).await;
            return Ok(code);
        }
        let client = client.patient();
        let id = submitted.task.id.clone();
        context.console.note(&format!("homing: {id}"));
        let foreground = Foreground {
            context,
            client: &client,
            task: id.clone(),
            interrupts,
            on_interrupt: OnInterrupt::Leave,
            background_after: None,
            pump: false,
            keyboard: None,
            printer: None,
            heard: true,
        };
        let attend = async {
            tokio::join!(foreground.attend(), unknown_session::tell(&spec, &submitted, &client, context)).0
        };
        let ends = async {
            let attended = tokio::select! {
                attended = attend => attended?,
                error = narrate(&client, &id, context), if options.follow => return Err(error),
            };
            answer(attended, &client, context).await
        };
        meanwhile(&client, &spec, &id, Box::pin(ends)).await
    })
}

impl Options {
    /// Whether the command waits for the end of the task.
    pub(crate) fn waits_for_end(&self) -> bool {
        self.wait || self.follow
    }

    fn spec(&self, context: &Context) -> Result<Spec, Failure> {
        let mut spec = Spec {
            kind: Kind::Agent,
            agent: self.agent.clone(),
            prompt: Some(prompt(&self.prompt)?),
            continues: self.continues.clone(),
            ..self.circumstances.spec(context)?
        };
        // A session goes on where it was, unless another folder is named outright.
        if self.continues.is_some() && self.circumstances.cwd.is_none() {
            spec.cwd = None;
        }
        let names = spec.env.iter().flat_map(std::collections::BTreeMap::keys);
        if let Some(name) = names.into_iter().find(|name| environment::is_denied(name)) {
            return Err(Failure::usage(
                format!("{name} belongs to this session, and an agent that is asked has one of its own"),
                "Leave it out; what else the agent needs can be set with `--env` or in its part of config.toml.",
            ));
        }
        let owner_was_typed = self.circumstances.owner.is_some();
        spec.validate().map_err(|why| usage_wording::invalid("ask", &why, owner_was_typed))?;
        Ok(spec)
    }
}

/// The words that were typed, or what is piped in.
fn prompt(words: &[String]) -> Result<String, Failure> {
    let advice = "homing ask 'WHAT TO DO', or homing ask - < FILE";
    let text = match words {
        [] => return Err(Failure::usage("nothing was asked", advice)),
        [dash] if dash == "-" => {
            let mut text = Vec::new();
            let limit = LONGEST_PROMPT as u64 + 1;
            let read = std::io::stdin().lock().take(limit).read_to_end(&mut text);
            read.map_err(|error| Failure::usage(format!("stdin cannot be read: {error}"), advice))?;
            let text = String::from_utf8_lossy(&text).into_owned();
            if text.trim().is_empty() {
                return Err(Failure::usage("nothing was asked: stdin was empty", advice));
            }
            text
        }
        words => words.join(" "),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("nothing was asked: the prompt is empty", advice));
    }
    Ok(text)
}

fn told(submitted: &Submitted, context: &Context) -> Result<u8, Failure> {
    tell_submitted(&submitted.task, context)?;
    Ok(exit_code::DONE)
}

/// Tells what the agent is at, whenever that is something else, until it is dropped.
async fn narrate(client: &Client, id: &TaskId, context: &Context) -> Failure {
    let mut before = None;
    loop {
        match client.wait(std::slice::from_ref(id), Mode::All, Some(LOOK)).await {
            Err(error) => return error.into(),
            Ok(waited) if waited.done => std::future::pending().await,
            Ok(waited) => {
                let now = waited.items.first().and_then(|task| task.progress.as_ref()).map(symbol::progress);
                if let Some(now) = now.filter(|now| before.as_ref() != Some(now)) {
                    context.console.note(&format!("homing: {now}"));
                    before = Some(now);
                }
            }
        }
    }
}

/// Prints the answer, or the words that stand for it, and returns the code of the end.
async fn answer(attended: Attended, client: &Client, context: &Context) -> Result<u8, Failure> {
    let attended = match attended {
        Attended::Ended(task, read) if !context.json => {
            let read = heard(context.console.line(&shown(&task)))? && read;
            Attended::Ended(task, read)
        }
        other => other,
    };
    conclude(attended, client, context, true).await
}

/// An answer as it can be printed anywhere.
fn shown(task: &Task) -> String {
    let mut filter = Sanitizer::new(Colour::Strip);
    let mut text = filter.push(task.answer.as_deref().unwrap_or_default().as_bytes());
    text.push_str(&filter.finish());
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use homing_client::fake::sample_task;

    use super::*;
    use crate::options::environment::Surroundings;
    use crate::render::console::Console;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn spec(words: &[&str]) -> Result<Spec, String> {
        let context = Context {
            surroundings: Surroundings::from([("PATH", "/bin"), ("PWD", "/x"), ("CLAUDECODE", "1")]),
            console: Console::plain(None),
            home_flag: None,
            home: "/h".into(),
            json: false,
        };
        let line = Line::parse_from([&["ask"], words].concat());
        line.options.spec(&context).map_err(|failure| match failure {
            Failure::Problem(problem) => problem.detail,
            Failure::ClosedOutput => unreachable!("nothing is written"),
        })
    }

    #[test]
    fn a_prompt_is_a_task_in_this_folder_without_the_callers_session() {
        let asked = spec(&["--agent", "codex", "--timeout", "5m", "--name", "x", "why", "not?"]).unwrap();
        assert_eq!((asked.kind, asked.prompt.as_deref()), (Kind::Agent, Some("why not?")));
        assert_eq!((asked.agent.as_deref(), asked.timeout_ms), (Some("codex"), Some(300_000)));
        assert!(asked.cwd.is_some() && asked.argv.is_empty());
        assert_eq!(asked.env.unwrap().keys().collect::<Vec<_>>(), ["PATH", "PWD"]);
    }

    #[test]
    fn what_goes_on_goes_on_where_it_was() {
        let on = spec(&["--continue", "t-2222222222", "why?"]).unwrap();
        assert_eq!((on.continues.as_deref(), on.cwd), (Some("t-2222222222"), None));
        let elsewhere = spec(&["--continue", "@last", "--cwd", "/tmp", "why?"]).unwrap();
        assert_eq!(elsewhere.cwd, Some("/tmp".into()));
    }

    #[test]
    fn nothing_asked_and_odd_names_are_refused() {
        assert_eq!(spec(&[]).unwrap_err(), "nothing was asked");
        assert_eq!(spec(&[" "]).unwrap_err(), "nothing was asked: the prompt is empty");
        assert!(spec(&["--agent", "a b", "x"]).unwrap_err().starts_with("`--agent`"));
        let session = spec(&["--env-from", "CLAUDECODE", "x"]).unwrap_err();
        assert!(session.starts_with("CLAUDECODE belongs to this session"), "{session}");
    }

    #[test]
    fn an_answer_is_printed_without_what_a_terminal_obeys() {
        let mut json = sample_task("succeeded");
        json["answer"] = "\u{1b}[2Jone\ntwo\n\n".into();
        assert_eq!(shown(&serde_json::from_value(json).unwrap()), "one\ntwo");
    }
}
