//! What was typed and makes no sense, told in the words of the command line: options, not fields and addresses.
//!
//! Values are looked at here before the daemon sees them, so that it has nothing to say about them in its own words.

use homing_api::{Code, Problem};
use homing_model::nesting;
use homing_model::validate::Invalid;
use homing_sys::process::signal_number;

use crate::cli::failure::Failure;

/// No id, name, owner or label is longer.
const LONGEST: usize = 2_000;

fn short(text: &str, what: &str) -> Result<String, String> {
    match text.len() {
        0 => Err(format!("{what} cannot be empty")),
        1..=LONGEST => Ok(text.to_owned()),
        length => Err(format!("{what} has {length} bytes and may have {LONGEST}")),
    }
}

/// What names a task.
pub(crate) fn reference(text: &str) -> Result<String, String> {
    short(text, "id or name")
}

/// An owner to look for. An empty one would be no filter, and `--owner "$UNSET"` a list of everything.
pub(crate) fn owner(text: &str) -> Result<String, String> {
    short(text, "owner")
}

/// A label to look for.
pub(crate) fn label(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => short(text, "label"),
        Some(_) | None => Err("write NAME=VALUE".to_owned()),
    }
}

/// A number that counts or points.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a whole number, 0 or above".to_owned())
}

/// A process.
pub(crate) fn pid(text: &str) -> Result<u32, String> {
    let process = |pid: &u32| (1..=i32::MAX.unsigned_abs()).contains(pid);
    text.parse().ok().filter(process).ok_or_else(|| "write the id of a process that runs".to_owned())
}

/// A number of things to show.
pub(crate) fn count(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "write a whole number, 1 or above".to_owned())
}

/// A signal, left as it was written.
pub(crate) fn signal(text: &str) -> Result<String, String> {
    signal_number(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Why a command does not get at the task that a word names: in the words of the command, not of the look that it needs first.
pub(crate) fn refused(command: &str, id: &str, error: homing_client::Error) -> Failure {
    let what = format!("`{command}` of task `{}`", homing_model::foreign::one_line(id));
    error.into_problem().in_words_of(nesting::Rule::Foreign, &what).into()
}

/// Why a task cannot be submitted like this, by the options that say so.
pub(crate) fn invalid(verb: &str, why: &Invalid, owner_was_typed: bool) -> Problem {
    let detail = match why {
        Invalid::NoCommand | Invalid::EmptyProgram => "the command is empty".to_owned(),
        Invalid::TwoCommands => "a program and a shell line are both given: choose one".to_owned(),
        Invalid::Text { field: "owner", problem } if !owner_was_typed => {
            format!("the owner that the environment names (HOMING_OWNER) {problem}")
        }
        Invalid::Text { field: "labels", problem } => format!("`--label` {problem}"),
        Invalid::Text { field: "prompt", problem } => format!("the prompt {problem}"),
        Invalid::Text { field, problem } => format!("`--{field}` {problem}"),
        Invalid::Number { field: "timeout_ms", .. } => {
            "`--timeout` must be above 0; without it there is no limit".to_owned()
        }
        Invalid::Number { field: "max_output_bytes", .. } => {
            "`--max-output` must be at least 64KiB".to_owned()
        }
        Invalid::Number { field: "lease_ms", .. } => "`--lease` must be above 0, and at most 365d".to_owned(),
        Invalid::Number { field: "pid", .. } => "`--pid` must be the id of a process".to_owned(),
        Invalid::Watch(why) => format!("`--watch`: {}", homing_model::foreign::one_line(&why.to_string())),
        Invalid::Number { field: "quiet_after_ms", .. } => {
            "`--quiet-after` must be at least 100ms".to_owned()
        }
        Invalid::Number { field: "heartbeat_ms", .. } => "`--heartbeat` must be at least 100ms".to_owned(),
        Invalid::RelativeStdin => "`--stdin` names no file".to_owned(),
        Invalid::RelativeCwd => "`--cwd` names no folder".to_owned(),
        Invalid::Kind
        | Invalid::Misplaced { .. }
        | Invalid::TwoWatches
        | Invalid::Nul(_)
        | Invalid::VariableName(_)
        | Invalid::Reserved(_)
        | Invalid::Number { .. } => why.to_string(),
    };
    let mut problem = Problem::new(Code::InvalidRequest, detail);
    problem.advice = format!("`homing {verb} --help` describes every option.");
    problem
}

/// The next step for a person at a terminal, where the catalogue's is for a program that sends requests.
pub(crate) fn advice(problem: &Problem) -> &str {
    match problem.known() {
        Some(code @ (Code::InvalidRequest | Code::MalformedBody | Code::NoRoute))
            if problem.advice == code.advice() =>
        {
            "`homing COMMAND --help` describes a command and its options."
        }
        _ => &problem.advice,
    }
}

/// A submit that the daemon found too large.
pub(crate) fn too_large() -> Problem {
    let mut problem =
        Problem::new(Code::TooLarge, "the command with its arguments and variables is larger than 8 MiB");
    problem.advice = "Put large data into a file and give the file's name.".to_owned();
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_nothing_is_refused_before_anybody_is_asked() {
        for text in ["", &"x".repeat(LONGEST + 1)] {
            assert!(reference(text).is_err() && owner(text).is_err() && label(text).is_err());
        }
        assert_eq!(reference("t-k3m").as_deref(), Ok("t-k3m"));
        assert_eq!(label("a=b=c").as_deref(), Ok("a=b=c"));
        assert!(label("=b").is_err() && label("b").is_err());
        assert_eq!(
            (whole("7"), whole("-1").is_err(), whole("99999999999999999999").is_err()),
            (Ok(7), true, true)
        );
        assert!(count("1") == Ok(1) && count("0").is_err() && count("abc").is_err() && count("-3").is_err());
        assert!(signal("INT").is_ok() && signal("SIGTERM").is_ok() && signal("9").is_ok());
        assert!(signal("NOPE").is_err());
    }

    #[test]
    fn only_advice_for_programs_is_replaced() {
        let typed = Problem::new(Code::InvalidRequest, "x");
        assert!(!advice(&typed).contains("openapi"), "{}", advice(&typed));
        let other = Problem::new(Code::TaskLive, "x");
        assert_eq!(advice(&other), Code::TaskLive.advice());
        let mut own = typed;
        own.advice = "Write `--env NAME=VALUE`.".to_owned();
        assert_eq!(advice(&own), own.advice);
    }
}
