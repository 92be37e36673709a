//! Every key of `config.toml` in words: the commented default file, the page in the docs and `homing config explain` are made of this table.
//!
//! The default values are not written here: they are read off [`Config::default`]. A test asks the reader which keys it takes, so that none is missing here and
//! none is here that it would refuse.

use std::fmt::Write as _;

use toml::{Table, Value};

use super::Config;

/// A section.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// `reconcile`.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// `interval`.
    pub name: &'static str,
    /// What it means, in sentences.
    pub about: &'static str,
    /// A value as it is written in the file, for a key that has none by default.
    pub example: Option<&'static str>,
}

const fn key(name: &'static str, about: &'static str) -> Key {
    Key { name, about, example: None }
}

const fn optional(name: &'static str, example: &'static str, about: &'static str) -> Key {
    Key { name, about, example: Some(example) }
}

/// The whole file.
pub const SECTIONS: &[Section] = &[
    Section {
        name: "reconcile",
        about: "The safety net: a look, now and then, at whether what the ledger calls live is attended. Everything normally happens by events.",
        keys: &[
            key(
                "interval",
                "How often, at least 100ms. HOMING_RECONCILE_INTERVAL overrides it if it is set where the keeper starts; a keeper stays while tasks are live.",
            ),
            key("max_tasks", "Live tasks looked at in one pass; the next pass goes on where this one ended."),
        ],
    },
    Section {
        name: "retention",
        about: "How long finished tasks and their output are kept; whichever is reached first.",
        keys: &[
            key(
                "age",
                "A finished task is forgotten this long after its end, its output deleted; not while an inbox has an entry of it.",
            ),
            key(
                "count",
                "How many finished tasks are kept. The oldest go first, and after all others those that an inbox has an entry of: of these the oldest of the owner who has the most.",
            ),
            key("bytes", "How much output of finished tasks is kept in all; the order is that of `count`."),
            key("tombstones", "How long a task whose output is gone still answers with its outcome."),
        ],
    },
    Section {
        name: "output",
        about: "What tasks print.",
        keys: &[key(
            "max",
            "How much of one task's output is kept, at least 64KiB; `--max-output` of a task goes first. Beyond it the beginning and the end are kept. A change holds for tasks that start after it.",
        )],
    },
    Section {
        name: "stop",
        about: "Ending a task.",
        keys: &[key("grace", "Between the polite signal and the last one; `--grace` goes first.")],
    },
    Section {
        name: "nested",
        about: "Tasks that are submitted from inside tasks.",
        keys: &[
            key("depth", "How deep; 0 forbids them."),
            key("children", "How many live ones a task may have of its own."),
        ],
    },
    Section {
        name: "confined",
        about: "Callers in a sandbox that the daemon is not in.",
        keys: &[key(
            "allow",
            "Serve them all the same, on the listener also programs of other users and those that cannot be seen. Their tasks then run outside of their sandbox.",
        )],
    },
    Section {
        name: "listener",
        about: "The same API over TCP on this machine, for callers that show the token (`homing token`).",
        keys: &[
            key("enabled", "Whether it is open from the start."),
            key("port", "Where; 0 takes any port that is free, and keeps it."),
            optional(
                "dangerously_bind",
                "\"0.0.0.0\"",
                "An address beyond this machine to listen at as well. Whoever sees the traffic there has the token, and with it this account.",
            ),
        ],
    },
    Section {
        name: "webhook",
        about: "Where webhooks may go, and what signs them.",
        keys: &[
            key(
                "allow",
                "Addresses that are closed otherwise: \"host:port\", or a range such as \"10.0.0.0/8\".",
            ),
            key("deadline", "What one attempt may take, from the look-up to the last byte of the answer."),
            optional(
                "secret",
                "\"whsec_…\"",
                "The key that signs; several in a list while they are being changed. Without it the home has one of its own (`webhook.secret` there).",
            ),
        ],
    },
    Section {
        name: "notify",
        about: "What notices may do, whatever a task asks for.",
        keys: &[
            key("allow", "Kinds of targets that tasks may name."),
            key("forbid", "Kinds that they may not, though `allow` has them. The inbox cannot be forbidden."),
            key("on", "The most that is told: \"always\", \"failure\" or \"never\"."),
        ],
    },
    Section {
        name: "wake",
        about: "How agents are woken.",
        keys: &[
            key(
                "per_hour",
                "How often one owner is woken in any hour; 0 is never. What is beyond it waits in the inbox.",
            ),
            optional(
                "headless",
                "true",
                "Whether a session in which nobody sits is woken by running its agent for one more turn. Absent: only one that was without a person when it submitted.",
            ),
            key(
                "tmux",
                "Whether a notice may be typed into a pane of tmux (`wake:tmux:%PANE`). It goes only into an empty prompt of an agent; docs/wakes.md names the risk that is left.",
            ),
        ],
    },
    Section {
        name: "log",
        about: "What the daemon says of itself, as JSON lines in `daemon.log` of the home.",
        keys: &[
            key(
                "level",
                "From which level on: \"error\", \"warn\", \"info\", \"debug\" or \"trace\". HOMING_LOG overrides it if it is set where the keeper starts (a keeper stays while tasks are live), and takes levels by module too: \"info,homing_store=debug\".",
            ),
            key("max", "How large one file becomes, at least 64KiB."),
            key("keep", "How many full ones (`daemon.log.1`, …) are kept besides, at most 100."),
        ],
    },
    Section {
        name: "agents",
        about: "Agents that `homing ask` asks. Those that `homing ask --help` lists are known; `[agents.NAME]` says how another is run, or one of them in another way.",
        keys: &[optional(
            "default",
            "\"claude\"",
            "Asked where no agent is named; otherwise the one that is found.",
        )],
    },
];

/// The keys of `[agents.NAME]`.
pub const AGENT: &[Key] = &[
    optional("driver", "\"claude\"", "Understood as this agent is, one of those that are known."),
    optional(
        "argv",
        "[\"my-agent\", \"--print\"]",
        "Program and arguments. `{prompt}` stands for the prompt, which otherwise is the program's input.",
    ),
    optional(
        "resume",
        "[\"my-agent\", \"--resume\", \"{session}\"]",
        "The same where a session goes on; `{session}` stands for it.",
    ),
    optional(
        "answer",
        "\"/result\"",
        "Where the answer is: `stdout`, or a JSON pointer into the lines that it prints.",
    ),
    optional("error", "\"/error\"", "A JSON pointer to what says that it failed."),
    optional("session", "\"/session_id\"", "A JSON pointer to the id of its session."),
    optional("env", "{ MY_AGENT_MODE = \"batch\" }", "Variables that it gets, whatever the caller has."),
];

/// What a key is by default, as the file would have it.
#[must_use]
pub fn default_of(section: &str, key: &str) -> Option<String> {
    let defaults = Table::try_from(Config::default()).unwrap_or_default();
    defaults.get(section)?.as_table()?.get(key).map(Value::to_string)
}

/// A section and one of its keys, by `section.key`.
#[must_use]
pub fn find(name: &str) -> Option<(&'static Section, &'static Key)> {
    let (section, key) = name.split_once('.')?;
    let section = SECTIONS.iter().find(|known| known.name == section)?;
    Some((section, section.keys.iter().find(|known| known.name == key)?))
}

/// Lines of at most so many characters.
const WIDTH: usize = 100;

fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split(' ') {
        if line.len() > 1 && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}

/// `config.toml` with every key, its meaning and its default, all of it commented out: as a file it changes nothing.
#[must_use]
pub fn default_file() -> String {
    let mut out = String::new();
    comment(
        &mut out,
        "config.toml of homing. Every key is optional; what is commented out is the default. A change takes effect by itself, without a restart; \
         `homing config check` says whether the file is sound, `homing config` what is in force and where each value comes from. Durations are \
         written 500ms, 30s, 10m, 2h, 7d; sizes 64KiB, 256MiB, 4GiB.",
    );
    for section in SECTIONS {
        out.push('\n');
        comment(&mut out, section.about);
        let _ = writeln!(out, "[{}]", section.name);
        for key in section.keys {
            out.push('\n');
            comment(&mut out, key.about);
            let default = default_of(section.name, key.name);
            let value = default.as_deref().or(key.example).unwrap_or_default();
            let _ = writeln!(out, "#{} = {value}", key.name);
        }
    }
    out.push('\n');
    comment(&mut out, "An agent of your own, asked with `homing ask --agent NAME`.");
    out.push_str("#[agents.NAME]\n");
    for key in AGENT {
        out.push('\n');
        comment(&mut out, key.about);
        let _ = writeln!(out, "#{} = {}", key.name, key.example.unwrap_or_default());
    }
    out
}

/// The page in the docs.
#[must_use]
pub fn markdown() -> String {
    let mut out = String::from(
        "<!-- Generated by `cargo xtask generate` from crates/homing-engine/src/config/manual.rs; do not edit. -->\n\n\
         # Configuration\n\n\
         `config.toml` is in the home where one was chosen (`--home`, `HOMING_HOME`), else in `$XDG_CONFIG_HOME/homing`. It need not be there, and every key is optional.\n\
         Durations are written `500ms`, `30s`, `10m`, `2h`, `7d`; sizes `64KiB`, `256MiB`, `4GiB`. Nothing in a working directory is ever read as configuration.\n\n\
         ```sh\n\
         homing config                    # what is in force, and where each value comes from\n\
         homing config default            # this page as a commented file: > \"$(homing config path)\"\n\
         homing config check              # 0 if the file is sound\n\
         homing config explain log.level  # one key\n\
         homing daemon start\n\
         homing config reload             # the daemon reads it now, and says what is wrong with it\n\
         ```\n\n\
         A changed file takes effect by itself, a moment after it was written, also for tasks that run unless a key says otherwise. A broken one, or an unknown key, is reported with its line by `homing status`,\n\
         `homing doctor` and in `daemon.log`, and the last good one stays in force, also through restarts.\n",
    );
    for section in SECTIONS {
        let _ = write!(
            out,
            "\n## [{}]\n\n{}\n\n| key | default | meaning |\n|---|---|---|\n",
            section.name, section.about
        );
        for key in section.keys {
            let default = default_of(section.name, key.name);
            let default = default.map_or_else(|| "none".to_owned(), |value| format!("`{value}`"));
            let _ = writeln!(out, "| `{}` | {default} | {} |", key.name, key.about.replace('|', "\\|"));
        }
    }
    out.push_str("\n## [agents.NAME]\n\nHow an agent is run and understood. What is not said is as with the agent that `driver`, or the name, stands for.\n\n| key | for instance | meaning |\n|---|---|---|\n");
    for key in AGENT {
        let _ = writeln!(out, "| `{}` | `{}` | {} |", key.name, key.example.unwrap_or_default(), key.about);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The words in backquotes after \"expected\": what the reader would take.
    fn expected(text: &str) -> BTreeSet<String> {
        let error = toml::from_str::<Config>(text).unwrap_err().to_string();
        let (_, known) = error.split_once("expected").unwrap_or_else(|| panic!("{error}"));
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    fn names(keys: &[Key]) -> BTreeSet<String> {
        keys.iter().map(|key| key.name.to_owned()).collect()
    }

    #[test]
    fn every_key_that_the_reader_takes_is_explained_and_no_other() {
        let sections: BTreeSet<_> = SECTIONS.iter().map(|section| section.name.to_owned()).collect();
        assert_eq!(sections, expected("[nonsense]"));
        for section in SECTIONS.iter().filter(|section| section.name != "agents") {
            assert_eq!(
                names(section.keys),
                expected(&format!("[{}]\nnonsense = 1", section.name)),
                "{}",
                section.name
            );
        }
        assert_eq!(names(AGENT), expected("[agents.NAME]\nnonsense = 1"));
    }

    #[test]
    fn the_default_file_changes_nothing_and_says_what_the_defaults_are() {
        let text = default_file();
        assert_eq!(toml::from_str::<Config>(&text).unwrap(), Config::default());
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH + 20), "{text}");
        // Every default, as if somebody had taken the mark before it away.
        for section in SECTIONS {
            for key in section.keys.iter().filter(|key| key.example.is_none()) {
                let default = default_of(section.name, key.name)
                    .unwrap_or_else(|| panic!("{}.{}", section.name, key.name));
                let line = format!("{} = {default}", key.name);
                assert!(text.contains(&format!("\n#{line}\n")), "{line}");
                let read: Config = toml::from_str(&format!("[{}]\n{line}", section.name)).unwrap();
                assert_eq!(read, Config::default(), "{line}");
            }
        }
    }

    #[test]
    fn every_example_can_be_read() {
        for section in SECTIONS {
            for key in section.keys {
                let Some(example) = key.example.filter(|example| !example.contains('…')) else { continue };
                let text = format!("[{}]\n{} = {example}", section.name, key.name);
                assert!(toml::from_str::<Config>(&text).is_ok(), "{text}");
            }
        }
        // One that is understood like another says nothing of how it is understood.
        let (like, own): (Vec<&Key>, Vec<&Key>) = AGENT.iter().partition(|key| key.name == "driver");
        for keys in [like, own] {
            let text: String = keys
                .iter()
                .map(|key| format!("{} = {}\n", key.name, key.example.unwrap_or_default()))
                .collect();
            assert!(toml::from_str::<Config>(&format!("[agents.mine]\n{text}")).is_ok(), "{text}");
        }
        assert!(find("log.level").is_some() && find("log.loud").is_none() && find("log").is_none());
    }

    #[test]
    fn the_committed_pages_are_these() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
        for (file, text) in [("config.md", markdown()), ("config.default.toml", default_file())] {
            let committed = std::fs::read_to_string(format!("{docs}{file}")).unwrap_or_default();
            assert!(committed == text, "docs/{file} is out of date: `cargo xtask generate` writes it anew");
        }
    }
}
