//! `homing list`: the tasks, live ones first.

mod watch;

use std::collections::BTreeMap;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use homing_api::Page;
use homing_client::{Client, Error, ListQuery};
use homing_model::{Status, Task};

use crate::cli::context::Context;
use crate::cli::entry;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::options::home;
use crate::render::table;

/// What a screen holds.
const SCREEN: u32 = 20;
/// What the daemon gives at once.
const PAGE: u32 = 1_000;

#[derive(Debug, Args)]
#[command(
    after_help = "Without --all or --limit it shows 20, and says on stderr if there are more. With --json, \
`next_cursor` is null if that was all. `+1` after a status: the task has ended, and one process \
that it started still runs; `homing show` names it, `homing stop` ends it.

Examples:
  homing list                        what runs, and the latest that ended
  homing list --all                  everything that is kept
  homing list --status running,queued
  homing list --status failed --label ci=1 --limit 5
  homing list --watch                redrawn as things happen, until q or Ctrl-C
  homing list --json | jq -r '.items[].id'"
)]
pub(crate) struct Options {
    /// Everything that is kept, not only a screenful
    #[arg(long, short = 'a')]
    all: bool,
    /// Only of this owner
    #[arg(long, value_parser = usage_wording::owner)]
    owner: Option<String>,
    /// Only in these states, comma-separated
    #[arg(long, value_name = "S", value_delimiter = ',', value_parser = statuses())]
    status: Vec<Status>,
    /// Only with this label; may be repeated
    #[arg(long, value_name = "K=V", value_parser = usage_wording::label)]
    label: Vec<String>,
    /// At most so many [default: 20]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = usage_wording::count)]
    limit: Option<u32>,
    /// Stay, and draw it anew whenever something happens; q ends it
    #[arg(long, short = 'w')]
    watch: bool,
}

fn statuses() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(Status::ALL.map(Status::as_str)).try_map(|word| word.parse::<Status>())
}

/// Prints the table, or the answer as JSON.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    refuse_two_values(&options.label)?;
    let limit = options.limit.unwrap_or(if options.all { u32::MAX } else { SCREEN });
    let query = ListQuery {
        owner: options.owner.clone(),
        statuses: options.status.clone(),
        labels: options.label.clone(),
        limit: None,
        cursor: None,
    };
    if options.watch {
        return watch::run(&query, options.limit, context);
    }
    if home::is_missing(&context.home) {
        context.note_missing_home();
        if context.json {
            context.console.json(&Page::<Task> { items: Vec::new(), next_cursor: None })?;
        }
        return Ok(exit_code::DONE);
    }
    let page = context.block_on(async { Ok(fetch(&context.client(), query, limit).await?) })?;
    if context.json {
        context.console.json(&page)?;
        tell_of_more(options, &page, context);
        return Ok(exit_code::DONE);
    }
    if page.items.is_empty() {
        let filtered = options.owner.is_some() || !options.status.is_empty() || !options.label.is_empty();
        let text = if filtered {
            "homing: no such tasks"
        } else if entry::inside_task() {
            "homing: none that this task started; inside a task no others are shown"
        } else {
            "homing: no tasks yet; `homing run -- COMMAND` starts one"
        };
        context.console.note(text);
        return Ok(exit_code::DONE);
    }
    context.console.data(table::render(&page.items, context.now(), &context.console).as_bytes())?;
    tell_of_more(options, &page, context);
    Ok(exit_code::DONE)
}

/// No task has two values of one label.
fn refuse_two_values(labels: &[String]) -> Result<(), Failure> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, value) in labels.iter().filter_map(|label| label.split_once('=')) {
        if let Some(other) = seen.insert(name, value).filter(|other| *other != value) {
            return Err(Failure::usage(
                format!("no task has both `{name}={other}` and `{name}={value}`"),
                "Give each label once; tasks must have all that are given.",
            ));
        }
    }
    Ok(())
}

/// Nobody may take a screenful for everything; who asked for so many need not be told, except in passing.
fn tell_of_more(options: &Options, page: &Page<Task>, context: &Context) {
    if page.next_cursor.is_some() && (options.limit.is_none() || context.console.stderr_terminal) {
        let shown = match page.items.len() {
            1 => "only one is shown".to_owned(),
            several => format!("only the first {several} are shown"),
        };
        context
            .console
            .note(&format!("homing: {shown}; `homing list --all` shows the rest, `--limit N` as many"));
    }
}

/// Pages until there are enough.
async fn fetch(client: &Client, mut query: ListQuery, limit: u32) -> Result<Page<Task>, Error> {
    let mut items = Vec::new();
    loop {
        let have = u32::try_from(items.len()).unwrap_or(u32::MAX);
        query.limit = Some(limit.saturating_sub(have).clamp(1, PAGE));
        let page = client.list(&query).await?;
        let empty = page.items.is_empty();
        items.extend(page.items);
        if empty || page.next_cursor.is_none() || items.len() as u64 >= u64::from(limit) {
            return Ok(Page { items, next_cursor: page.next_cursor });
        }
        query.cursor = page.next_cursor;
    }
}

#[cfg(test)]
mod tests {
    use homing_client::fake::{Fake, Reply, sample_task};

    use super::*;

    #[tokio::test]
    async fn pages_are_fetched_until_there_are_enough() {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::serve(home.path(), |request| {
            let last = request.target.contains("cursor=b");
            let next = if last {
                None
            } else if request.target.contains("cursor=a") {
                Some("b")
            } else {
                Some("a")
            };
            let items = vec![sample_task("running"); 2];
            Reply::json(200, serde_json::json!({ "items": items, "next_cursor": next }).to_string())
        });
        let client = Client::new(home.path(), "u");
        let all = fetch(&client, ListQuery::default(), u32::MAX).await.unwrap();
        assert_eq!((all.items.len(), all.next_cursor), (6, None));
        let some = fetch(&client, ListQuery::default(), 3).await.unwrap();
        assert_eq!((some.items.len(), some.next_cursor.as_deref()), (4, Some("b")));
        assert!(fake.requests()[3].target.ends_with("limit=3"));
        assert!(fake.requests()[4].target.ends_with("limit=1&cursor=a"));
    }
}
