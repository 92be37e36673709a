//! `homing explain`: what a code means and what to do about it.

use clap::Args;
use clap_complete::ArgValueCandidates;
use homing_api::{Code, Problem};

use crate::cli::completion;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::render::columns;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  homing explain HM0012
  homing explain unknown_task
  homing explain                     all of them")]
pub(crate) struct Options {
    /// The code, or its word
    #[arg(value_name = "CODE", add = ArgValueCandidates::new(completion::codes))]
    code: Option<String>,
}

/// Prints one code, or all.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let Some(wanted) = &options.code else {
        if context.json {
            context.console.json(&Code::ALL.iter().map(|code| json(*code)).collect::<Vec<_>>())?;
        } else {
            let text: String =
                Code::ALL.iter().map(|code| format!("{}  {}\n", code.code(), code.title())).collect();
            context.console.data(text.as_bytes())?;
        }
        return Ok(exit_code::DONE);
    };
    let code = Code::find(wanted).ok_or_else(|| {
        let mut problem =
            Problem::new(Code::InvalidRequest, format!("`{wanted}` is no code of this release"));
        problem.advice = "`homing explain` lists them all.".to_owned();
        problem
    })?;
    if context.json {
        context.console.json(&json(code))?;
    } else {
        context.console.line(&text(code, context.console.width.unwrap_or(usize::MAX)))?;
    }
    Ok(exit_code::DONE)
}

/// What is known of it, on lines that fit; what belongs to a line is indented below it.
fn text(code: Code, width: usize) -> String {
    let paragraphs = [
        ("", format!("{} {}: {}", code.code(), code.slug(), code.title())),
        ("  in answers: ", format!("HTTP {}, {}", code.http_status(), Problem::new(code, "").kind)),
        ("  next: ", code.advice().to_owned()),
    ];
    let wrapped = paragraphs.iter().map(|(head, text)| {
        let below = format!("\n{}", " ".repeat(head.len()));
        format!("{head}{}", columns::wrap(text, width.saturating_sub(head.len())).join(&below))
    });
    wrapped.collect::<Vec<_>>().join("\n")
}

fn json(code: Code) -> serde_json::Value {
    serde_json::json!({ "code": code.code(), "slug": code.slug(), "title": code.title(), "advice": code.advice(),
        "status": code.http_status() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_with_its_next_step() {
        for code in Code::ALL {
            let whole = text(*code, usize::MAX);
            assert!(whole.starts_with(code.code()) && whole.contains("next: "), "{whole}");
            assert_eq!(whole.lines().count(), 3);
            let narrow = text(*code, 60);
            assert!(narrow.lines().all(|line| columns::of(line) <= 60), "{narrow}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&narrow), words(&whole));
        }
    }
}
