//! Words that people bring from other programs, and the command here that does the same.

/// A word, and what to type instead.
type Habit = (&'static str, &'static str);

/// What `kill`, `docker`, `systemctl` and their like have taught.
const COMMANDS: &[Habit] = &[
    ("abort", "stop"),
    ("add", "run"),
    ("background", "run"),
    ("bg", "run"),
    ("cancel", "stop"),
    ("cat", "output"),
    ("check", "doctor"),
    ("clean", "gc"),
    ("cleanup", "gc"),
    ("continue", "resume"),
    ("del", "forget"),
    ("delete", "forget"),
    ("describe", "show"),
    ("drop", "forget"),
    ("end", "stop"),
    ("enqueue", "run"),
    ("error", "explain"),
    ("errors", "explain"),
    ("fg", "attach"),
    ("follow", "output -f"),
    ("freeze", "pause"),
    ("get", "show"),
    ("health", "doctor"),
    ("history", "list --all"),
    ("info", "show"),
    ("inspect", "show"),
    ("interrupt", "stop --signal INT"),
    ("jobs", "list"),
    ("join", "wait"),
    ("kill", "stop"),
    ("killall", "stop"),
    ("launch", "run"),
    ("ls", "list"),
    ("man", "help"),
    ("nohup", "run"),
    ("pkill", "stop"),
    ("print", "output"),
    ("prune", "gc"),
    ("purge", "forget"),
    ("queue", "run"),
    ("quit", "stop"),
    ("redo", "rerun"),
    ("reload", "config reload"),
    ("remove", "forget"),
    ("replay", "rerun"),
    ("retry", "rerun"),
    ("rm", "forget"),
    ("serve", "daemon run"),
    ("settings", "config"),
    ("spawn", "run"),
    ("start", "run"),
    ("stat", "status"),
    ("state", "status"),
    ("stdin", "input"),
    ("stdout", "output"),
    ("submit", "run"),
    ("suspend", "pause"),
    ("tail", "output -f"),
    ("tasks", "list"),
    ("term", "stop"),
    ("terminate", "stop"),
    ("thaw", "resume"),
    ("top", "list"),
    ("type", "input"),
    ("unpause", "resume"),
    ("usage", "help"),
    ("version", "--version"),
    ("watch", "output -f"),
    ("write", "input"),
];

/// The same below `daemon`.
const DAEMON: &[Habit] = &[
    ("down", "stop"),
    ("fg", "run"),
    ("foreground", "run"),
    ("kill", "stop"),
    ("quit", "stop"),
    ("reload", "restart"),
    ("serve", "run"),
    ("state", "status"),
    ("terminate", "stop"),
    ("up", "start"),
];

/// The same below `config`.
const CONFIG: &[Habit] = &[
    ("describe", "explain"),
    ("doc", "explain"),
    ("get", "explain"),
    ("help", "explain"),
    ("init", "default"),
    ("lint", "check"),
    ("refresh", "reload"),
    ("validate", "check"),
    ("where", "path"),
];

const AGAIN: &str =
    "`homing rerun ID` runs a task again, as a new one; `homing daemon restart` restarts the daemon";
const SIGNAL: &str = "no command only sends a signal yet: `homing stop --signal S ID` sends one and ends the task after the grace; \
    `kill -s S PID`, with the pid that `homing show ID` tells, sends it to the main process";

/// What others have and homing has not, with what comes nearest.
const ABSENT: &[Habit] = &[("restart", AGAIN), ("signal", SIGNAL)];

const EDITED: &str = "`homing config` shows what is in force; `homing config path` prints the file to edit, and a change takes effect by itself";

/// The same below `config`.
const ABSENT_IN_CONFIG: &[Habit] = &[
    ("edit", EDITED),
    ("list", EDITED),
    ("ls", EDITED),
    ("set", EDITED),
    ("show", EDITED),
    ("unset", EDITED),
];

/// The way out for somebody who looks for what is not there.
pub(crate) fn absent(above: &str, word: &str) -> Option<&'static str> {
    let absent = match above {
        "homing" => ABSENT,
        "config" => ABSENT_IN_CONFIG,
        _ => &[],
    };
    absent.iter().find(|(habit, _)| habit.eq_ignore_ascii_case(word)).map(|(_, way)| *way)
}

/// What somebody with this habit means.
pub(crate) fn meant(above: &str, word: &str) -> Option<&'static str> {
    let habits = match above {
        "homing" => COMMANDS,
        "daemon" => DAEMON,
        "config" => CONFIG,
        _ => &[],
    };
    habits.iter().find(|(habit, _)| habit.eq_ignore_ascii_case(word)).map(|(_, meant)| *meant)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::grammar::Cli;

    #[test]
    fn every_habit_is_no_command_and_means_one() {
        for (path, habits) in [("", COMMANDS), ("daemon", DAEMON), ("config", CONFIG)] {
            assert!(habits.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order, each once");
            for (habit, meant) in habits {
                let line = |words: &str| {
                    let words = ["homing", path].into_iter().chain(words.split(' '));
                    Cli::try_parse_from(words.filter(|word| !word.is_empty()))
                };
                let kind = |words: &str| line(words).err().map(|error| error.kind());
                assert_eq!(kind(habit), Some(clap::error::ErrorKind::InvalidSubcommand), "{habit}");
                assert_ne!(kind(meant), Some(clap::error::ErrorKind::InvalidSubcommand), "{meant}");
                assert_ne!(kind(meant), Some(clap::error::ErrorKind::UnknownArgument), "{meant}");
            }
        }
    }

    #[test]
    fn what_is_absent_is_no_command() {
        for (above, habits) in [("homing", ABSENT), ("config", ABSENT_IN_CONFIG)] {
            assert!(habits.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order, each once");
            for (habit, _) in habits {
                let line = ["homing", above, habit].into_iter().skip(usize::from(above == "homing"));
                let kind = Cli::try_parse_from(line).unwrap_err().kind();
                assert_eq!(kind, clap::error::ErrorKind::InvalidSubcommand, "{habit}");
                assert_eq!(meant(above, habit), None, "{habit}");
            }
        }
        assert_eq!(absent("homing", "Restart"), Some(AGAIN));
        assert_eq!(absent("daemon", "pause"), None);
    }

    #[test]
    fn case_does_not_matter_and_strange_words_mean_nothing() {
        assert_eq!(meant("homing", "KILL"), Some("stop"));
        assert_eq!(meant("daemon", "up"), Some("start"));
        assert_eq!(meant("homing", "kubernetes"), None);
    }
}
