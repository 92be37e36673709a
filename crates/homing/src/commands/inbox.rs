//! `homing inbox`: what waits for an owner.

use std::time::Duration;

use clap::Args;
use homing_api::{InboxAnswer, InboxOwner, TakeRequest};
use homing_client::{Client, Error};
use homing_model::Notice;
use homing_model::foreign::one_line as line;
use homing_model::shell::quote;
use homing_model::units;
use homing_model::units::{millis, show_duration};

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::options::home;
use crate::render::notice;

/// What is shown, unless somebody wants more.
const SCREEN: u32 = 100;
/// What the daemon gives at once.
const PAGE: u32 = 1_000;
/// So many owners are named.
const NAMED: usize = 5;

/// As long as the daemon makes anybody wait at once.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

#[derive(Debug, Args)]
#[command(
    after_help = "A task that ends leaves an entry, unless its end was seen as it came (`run --wait`, `exec`) or \
is told elsewhere (`--notify`). It stays until it is acknowledged. Looking changes nothing. It \
shows the oldest 100, and says on stderr if there are more. With --wait it returns 1 if nothing \
came in time, and says so on stderr.

Examples:
  homing inbox                       what has ended since you last looked
  homing inbox --ack                 the same, and it is dealt with
  homing inbox --wait 10m --ack      wait for the next result
  homing inbox -n 1000               more of them, if there are many
  homing inbox --json | jq -r '.items[] | .task.id + \" \" + .status'
  homing inbox --wait 5m || echo 'nothing yet'
  homing ack t-k3m                   what is there of a task
  homing ack n-7hq                   one entry; a unique start of its id is enough"
)]
pub(crate) struct Options {
    /// Whose inbox [default: HOMING_OWNER, the agent session, or user]
    #[arg(long, value_parser = usage_wording::owner)]
    owner: Option<String>,
    /// If there is nothing, wait this long for something
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = units::duration)]
    wait: Option<Duration>,
    /// Acknowledge what was printed
    #[arg(long)]
    ack: bool,
    /// At most so many, the oldest, and no more than 1000 at once [default: 100]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = usage_wording::count)]
    limit: Option<u32>,
}

/// Prints the inbox. What is acknowledged was printed first: an entry is never lost between the two.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    if options.wait.is_none() && home::is_missing(&context.home) {
        context.note_missing_home();
        if context.json {
            context.console.json(&InboxAnswer::default())?;
        }
        return Ok(exit_code::DONE);
    }
    let owner = options.owner.clone().unwrap_or_else(|| context.owner());
    let client = context.client_for(&owner);
    let client = if options.wait.is_some() { client.patient() } else { client };
    let limit = options.limit.unwrap_or(SCREEN).min(PAGE);
    context.block_on(async {
        let mut left = options.wait.unwrap_or_default();
        let answer = loop {
            // The daemon holds no answer back for longer.
            let wait = left.min(LONGEST_WAIT);
            let answer = ask(&client, &owner, options.ack, limit, wait).await?;
            left = left.saturating_sub(wait);
            if left.is_zero() || !answer.items.is_empty() {
                break answer;
            }
        };
        if answer.items.is_empty() {
            tell_of_nothing(options, &owner, &client, context).await;
        }
        print(&answer, context)?;
        if options.ack && !answer.items.is_empty() {
            let ids = answer.items.iter().map(|notice: &Notice| notice.id.to_string()).collect();
            client.acknowledge(&owner, ids).await?;
        }
        if answer.more {
            let whole = answer.items.len() as u64 >= u64::from(limit);
            tell_of_more(options, answer.items.len(), whole && limit < PAGE, context);
        }
        let in_vain = options.wait.is_some() && answer.items.is_empty();
        Ok(if in_vain { exit_code::FAILED } else { exit_code::DONE })
    })
}

/// One question, which a while may pass before it is answered.
async fn ask(
    client: &Client,
    owner: &str,
    take: bool,
    limit: u32,
    wait: Duration,
) -> Result<InboxAnswer, Error> {
    if take {
        let request = TakeRequest { max: Some(limit), wait_ms: Some(millis(wait)), ..TakeRequest::default() };
        return client.take(owner, &request).await;
    }
    client.inbox_up_to(owner, Some(limit), Some(wait)).await
}

/// Nobody may take what is shown for all there is. A higher limit shows more only if the answer did
/// not end for its size.
fn tell_of_more(options: &Options, shown: usize, by_limit: bool, context: &Context) {
    let owner = options.owner.as_ref().map(|owner| format!(" --owner {}", quote(&line(owner))));
    let owner = owner.unwrap_or_default();
    context.console.note(&if options.ack {
        format!("homing: these {shown} are dealt with; there are more: `homing inbox{owner} --ack` shows the next")
    } else if by_limit {
        format!(
            "homing: only the oldest {shown} are shown; `homing inbox{owner} --limit N` shows as many, up to {PAGE}, `homing inbox{owner} --ack` \
             deals with them {SCREEN} at a time"
        )
    } else {
        format!(
            "homing: only the oldest {shown} are shown, and there are more; `homing inbox{owner} --ack` deals with them {SCREEN} at a time"
        )
    });
}

/// That there is nothing; and for whom there is something, which somebody may have meant.
async fn tell_of_nothing(options: &Options, owner: &str, client: &Client, context: &Context) {
    if let Some(waited) = options.wait {
        let waited = show_duration(millis(waited));
        return context.console.note(&format!("homing: nothing came within {waited}"));
    }
    let mut text = "homing: nothing waits for you".to_owned();
    text.push_str(&of_others(owner, client, context).await);
    context.console.note(&text);
}

/// For whom else there is something: not for a program, and not for who may not see it.
pub(super) async fn of_others(owner: &str, client: &Client, context: &Context) -> String {
    if context.json {
        return String::new();
    }
    let Ok(all) = client.inbox_owners().await else { return String::new() };
    let others: Vec<_> = all.into_iter().filter(|other| other.owner != owner).collect();
    others_hint(&others, owner).unwrap_or_default()
}

fn others_hint(others: &[InboxOwner], owner: &str) -> Option<String> {
    let first = others.first()?;
    let shown = |other: &InboxOwner| format!("{} for {}", other.open, line(&other.owner));
    let mut named: Vec<_> = others.iter().take(NAMED).map(shown).collect();
    if others.len() > NAMED {
        named.push(format!("{} more owners", others.len() - NAMED));
    }
    Some(format!(
        "\n  you are {}; there are {}\n  next: `homing inbox --owner {}` shows what waits for another owner",
        line(owner),
        named.join(", "),
        quote(&line(&first.owner))
    ))
}

fn print(answer: &InboxAnswer, context: &Context) -> Result<(), Failure> {
    if context.json {
        return context.console.json(answer);
    }
    let mut text = String::new();
    for item in &answer.items {
        text.push_str(&notice::render(item, context.now(), &context.console));
    }
    context.console.data(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_others_are_named_with_what_they_have() {
        assert_eq!(others_hint(&[], "me"), None);
        let others: Vec<_> =
            (1..=7).map(|open| InboxOwner { owner: format!("agent {open}\u{1b}"), open }).collect();
        let hint = others_hint(&others, "me").unwrap();
        assert!(hint.starts_with("\n  you are me; there are 1 for agent 1"), "{hint}");
        assert!(hint.contains("5 for agent 5") && !hint.contains("agent 6"), "{hint}");
        assert!(hint.contains(", 2 more owners\n") && !hint.contains('\u{1b}'), "{hint}");
        assert!(hint.contains("`homing inbox --owner 'agent 1"), "{hint}");
    }
}
