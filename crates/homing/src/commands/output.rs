//! `homing output`: what a task printed.

use clap::Args;
use clap_complete::ArgValueCompleter;
use homing_client::{Chunk, Client, OutputQuery, Source, Stream};
use homing_model::TaskId;

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::cli::usage_wording;
use crate::render::line_stamps;
use crate::render::printer::{Entry, Printer, Sink};
use crate::render::tail;
use crate::terminal::stdout_closed::Audience;

/// What one question asks for.
const STRETCH: u64 = 1 << 20;

#[derive(Debug, Args)]
#[command(
    after_help = "On a terminal, sequences that could do harm are removed or shown, never obeyed, and progress \
bars and spinners rewrite their line; elsewhere the bytes come as they are. Bytes that were not \
kept are told of on stderr.

Examples:
  homing output @last                everything so far
  homing output -f build             and what follows, to the end of the task
  homing output --tail 50 t-k3m      the last 50 lines
  homing output --offset 1048576 t-k3m > rest
  homing output --stderr --timestamps t-k3m"
)]
pub(crate) struct Options {
    /// Id, start of one, name, or @last
    #[arg(value_name = "ID", value_parser = usage_wording::reference, add = ArgValueCompleter::new(completion::tasks))]
    id: String,
    /// Stay until the task has ended
    #[arg(long, short = 'f')]
    follow: bool,
    /// Only the last N lines
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "offset", allow_negative_numbers = true, value_parser = usage_wording::whole)]
    tail: Option<u64>,
    /// From this byte on
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = usage_wording::whole)]
    offset: Option<u64>,
    /// Only its stderr
    #[arg(long)]
    stderr: bool,
    /// The time before each line
    #[arg(long, short = 't')]
    timestamps: bool,
    /// Bytes as they are, even on a terminal
    #[arg(long)]
    raw: bool,
}

/// Prints the output, and what follows if asked to.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    if context.json && options.timestamps {
        return Err(Failure::usage(
            "`--json` has no times of lines, and `--timestamps` would be lost",
            "Leave out one of them; `GET /v1/tasks/ID/output/index` has the times by offset.",
        ));
    }
    let client = if options.follow { context.client().patient_for_task() } else { context.client() };
    context.block_on(async {
        let look = client.task(&options.id).await;
        let id = look.map_err(|error| usage_wording::refused("output", &options.id, error))?.id;
        Reading::new(options, context, &client, &id).read().await?;
        Ok(exit_code::DONE)
    })
}

/// One pass over the output of one task.
struct Reading<'a> {
    options: &'a Options,
    context: &'a Context,
    client: &'a Client,
    id: &'a TaskId,
    only: Option<Source>,
    stream: Option<Stream>,
    printer: Printer,
}

impl<'a> Reading<'a> {
    fn new(options: &'a Options, context: &'a Context, client: &'a Client, id: &'a TaskId) -> Self {
        let mut printer = Printer::new(context.console, Sink::Stdout, options.raw);
        // Times are looked up by offset in the whole output, so one stream of it is chosen here, not by the daemon.
        let only = options.stderr.then_some(Source::Stderr);
        let mut stream = options.stderr.then_some(Stream::Stderr);
        if options.timestamps {
            stream = None;
            printer = printer.with_times(only);
        }
        Self { options, context, client, id, only, stream, printer }
    }

    async fn read(mut self) -> Result<(), Failure> {
        let mut offset = self.options.offset.unwrap_or(0);
        let mut complete = false;
        if let Some(lines) = self.options.tail {
            let mut dropped = 0;
            for chunk in tail::fetch(self.client, self.id, lines, self.only, self.stream).await? {
                (offset, complete, dropped) = (chunk.end, chunk.complete, chunk.dropped);
                self.show(&chunk).await?;
            }
            if dropped > 0 && !self.options.follow {
                (offset, complete) = self.read_last_gap(offset, complete).await?;
            }
        }
        if self.options.follow {
            let mut follow = self.client.follow(self.id, offset, self.stream);
            let audience = Audience::new();
            while let Some(chunk) = audience.while_there(follow.next()).await? {
                self.show(&chunk).await?;
            }
            (offset, complete) = (follow.offset(), true);
        } else if self.options.tail.is_none() {
            (offset, complete) = self.read_to_now(offset).await?;
        }
        self.printer.finish()?;
        if self.context.json {
            self.context.console.json_line(&Entry::End { offset, complete })
        } else {
            Ok(())
        }
    }

    /// Up to where the output ended when it was asked first: a task that never stops printing is no endless read.
    async fn read_to_now(&mut self, mut offset: u64) -> Result<(u64, bool), Failure> {
        let last = OutputQuery { tail: Some(1), ..OutputQuery::default() };
        let now = self.client.output(self.id.as_str(), &last).await?;
        let mut complete = now.complete;
        while offset < now.end {
            let query = OutputQuery {
                offset: Some(offset),
                limit: Some(STRETCH),
                stream: self.stream,
                ..OutputQuery::default()
            };
            let chunk = self.client.output(self.id.as_str(), &query).await?;
            self.show(&chunk).await?;
            complete = chunk.complete;
            if chunk.end <= offset {
                break;
            }
            offset = chunk.end;
        }
        if now.dropped > 0 {
            return self.read_last_gap(offset, complete).await;
        }
        Ok((offset, complete))
    }

    /// What was not kept at the very end, where no bytes follow to tell of it.
    async fn read_last_gap(&mut self, offset: u64, complete: bool) -> Result<(u64, bool), Failure> {
        let rest = OutputQuery {
            offset: Some(offset),
            limit: Some(1),
            stream: self.stream,
            ..OutputQuery::default()
        };
        let chunk = self.client.output(self.id.as_str(), &rest).await?;
        if chunk.gap == 0 || !chunk.bytes.is_empty() {
            return Ok((offset, complete));
        }
        self.show(&chunk).await?;
        Ok((chunk.end, chunk.complete))
    }

    async fn show(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        if self.context.json {
            return Entry::of_chunk(chunk).iter().try_for_each(|entry| self.context.console.json_line(entry));
        }
        let spans = if self.printer.needs_spans() {
            line_stamps::spans(self.client, self.id, chunk).await?
        } else {
            Vec::new()
        };
        self.printer.print(chunk, &spans)
    }
}
