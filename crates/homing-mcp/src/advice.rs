//! What to do next, in the words of somebody who has tools and no shell.
//!
//! The catalogue's advice is for people at a terminal. A model is told the tool and the parameter instead; what no tool can mend is for the
//! person whom it works for, and it is told to say so.

use homing_api::{Code, Problem};

/// What a model can do about each problem itself.
const BY_TOOLS: &[(Code, &str)] = &[
    (
        Code::UnknownTask,
        "The tool `list` shows your tasks, with `everyone: true` those of others too. A task is named by its id, a unique start of it, its \
         name while it lives, or `@last`.",
    ),
    (
        Code::AmbiguousTask,
        "Give more characters of the id, or an id instead of a name; the tool `list` shows both.",
    ),
    (Code::InvalidRequest, "Mend what the message names; the tool's schema describes every parameter."),
    (Code::TaskLive, "Call `wait` for it, or `stop` it, first."),
    (Code::TaskEnded, "The tool `list` with its `id` says how it ended, `output` what it printed."),
    (Code::NoInput, "Run it again with `stdin: true`, or with `pty: true` if it wants a terminal."),
    (
        Code::InputNotRead,
        "What was not written is not kept: see with `output` what it is at, and call `input` again when it reads.",
    ),
    (
        Code::OutputGone,
        "The tool `list` with its `id` still has the outcome; run the command again if its output is needed.",
    ),
    (Code::DuplicateKey, "Call `wait` for it, `stop` it, or give another `key`."),
    (Code::NotApplicable, "The tool `list` with its `id` says where the task is."),
    (Code::TooLarge, "Put large data into a file, and name the file."),
    (
        Code::NestedLimit,
        "Call `wait` for one of the tasks that you have started, or `stop` one, and try again. How many and how deep is set by `[nested]` \
         in config.toml, which is the user's to change.",
    ),
    (
        Code::BadTarget,
        "Leave `notify_on_complete` and `watch` out, and call `wait` instead. `[notify]` in config.toml, which is the user's to change, \
         says who may be told.",
    ),
    (Code::NobodyToWake, "Leave `notify_on_complete` and `watch` out, and call `wait` instead."),
    (
        Code::RecordExpired,
        "It ended so long ago that nothing else is known of it. Run it again if its result is needed.",
    ),
    (
        Code::NestedNotify,
        "Leave `notify_on_complete` and `watch` out, and call `wait` for the task instead. Only whoever submits the task that you run in \
         can allow more (option `--allow-nested-notify`).",
    ),
    (
        Code::NestedForeign,
        "From inside a task you reach what you have started there, which the tool `list` shows, and nothing else. Only whoever submits \
         the task that you run in can allow more (option `--allow-nested-notify`).",
    ),
    (Code::UnknownNotice, "The tool `inbox` shows what waits for you, with its ids."),
    (Code::AmbiguousId, "Give more characters of the id; the tool `inbox` shows them whole."),
    (
        Code::ForeignTask,
        "You stop and type into your own tasks only; the tool `list` shows them. The user may stop any task: `homing stop ID`.",
    ),
    (
        Code::NoAgent,
        "Name one of those that the message lists as `agent`, where it is installed, or one that `[agents.NAME]` in config.toml makes. \
         `[agents] default` there, which is the user's to set, is asked where none is named.",
    ),
    (Code::UnknownAgent, "Give as `agent` one of those that the message lists."),
    (Code::NotContinued, "Ask anew, without `continue`, and put what matters into the `prompt`."),
];

/// The next step for whoever was refused by a tool.
pub(crate) fn of(problem: &Problem) -> String {
    let by_tools = BY_TOOLS.iter().find(|(code, _)| problem.known() == Some(*code));
    match by_tools {
        Some((_, advice)) => (*advice).to_owned(),
        None => format!("No tool can mend this; tell the user: {}", problem.advice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_only_tools_is_told_of_tools_or_to_tell_the_user() {
        for code in Code::ALL {
            let advice = of(&Problem::new(*code, "it happened"));
            // An option or a command line is named only as something that somebody else types.
            let for_others = ["he user", "whoever submits"].iter().any(|who| advice.contains(who));
            assert!(
                for_others || !(advice.contains("`homing ") || advice.contains("`--")),
                "{code:?}: {advice}"
            );
        }
    }

    #[test]
    fn special_advice_for_a_terminal_does_not_reach_a_model_as_its_own() {
        let mut problem = Problem::new(Code::NotApplicable, "it is run by somebody else");
        problem.advice = "`homing show ID` has its answer.".to_owned();
        assert!(!of(&problem).contains("homing show"));
        let problem = Problem::new(Code::StorageFull, "full");
        assert!(of(&problem).starts_with("No tool can mend this; tell the user: "));
    }
}
