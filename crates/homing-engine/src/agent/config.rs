//! `[agents]`: which agent is asked where none is named, and agents of one's own.

use std::collections::BTreeMap;
use std::fmt;

use homing_agents::{SESSION, registry};
use homing_model::agent::{Driver, is_name};
use homing_model::{AgentName, slip};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

/// Stands for the prompt in a command line.
pub(super) const PROMPT: &str = "{prompt}";

/// `[agents]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agents {
    /// Asked where no agent is named.
    pub default: Option<String>,
    /// `[agents.NAME]`.
    pub named: BTreeMap<String, Entry>,
}

/// `[agents.NAME]`: how an agent is run and understood. What is not said is as with the agent that `driver`, or the name, stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    /// Understood as this agent is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Program and arguments. `{prompt}` stands for the prompt, which otherwise is the program's input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The same where a session goes on; `{session}` stands for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resume: Vec<String>,
    /// Where the answer is: `stdout`, or a JSON pointer into the lines that it prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// A JSON pointer to what says that it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A JSON pointer to the id of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Variables that it gets, whatever the caller has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// An agent that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) driver: Driver,
    pub(super) argv: Vec<String>,
    /// Empty if it cannot go on with a session.
    pub(super) resume: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
}

/// The command lines of the agents that are known without configuration; the prompt is the input of each.
fn built_in(name: &str) -> Option<Known> {
    let ask = registry::find(name)?.ask();
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let driver = Driver::Agent(AgentName::new(name)?);
    Some(Known { driver, argv: owned(ask.argv), resume: owned(ask.resume), env: BTreeMap::new() })
}

impl Agents {
    /// The agent of that name.
    pub(super) fn known(&self, name: &str) -> Option<Known> {
        match self.named.get(name) {
            Some(entry) => entry.known(name).ok(),
            None => built_in(name),
        }
    }

    /// All that can be asked, by name.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = registry::names().collect();
        names.extend(self.named.keys().map(String::as_str).filter(|name| registry::find(name).is_none()));
        names
    }
}

impl Entry {
    /// What it comes to; the problem in words, if it makes no sense.
    fn known(&self, name: &str) -> Result<Known, String> {
        let like = match &self.driver {
            Some(driver) => Some(built_in(driver).ok_or_else(|| {
                let meant = slip::meant(driver, registry::names());
                format!("`driver = \"{driver}\"` is none of {}{meant}", registry::listed())
            })?),
            // A name alone means the agent that is known by it, unless it is to be understood in another way.
            None if self.answer.is_none() => built_in(name),
            None => None,
        };
        let by_pointer = [("answer", &self.answer), ("error", &self.error), ("session", &self.session)];
        if let Some(like) = like {
            if let Some((field, _)) = by_pointer.iter().find(|(_, given)| given.is_some()) {
                return Err(format!("`{field}` is for agents without a driver"));
            }
            let argv = if self.argv.is_empty() { like.argv } else { self.argv.clone() };
            // Who runs it in another way has to say how it goes on.
            let resume = if self.argv.is_empty() && self.resume.is_empty() {
                like.resume
            } else {
                self.resume.clone()
            };
            return Known { driver: like.driver, argv, resume, env: self.env.clone() }.checked();
        }
        for (field, pointer) in by_pointer {
            let odd = pointer.as_deref().filter(|text| !text.starts_with('/'));
            if odd.is_some_and(|text| field != "answer" || text != "stdout") {
                return Err(format!("`{field}` is a JSON pointer, such as \"/result\""));
            }
        }
        let driver = match self.answer.as_deref() {
            None | Some("stdout") if self.error.is_some() || self.session.is_some() => {
                return Err("`error` and `session` need `answer` to be a JSON pointer".to_owned());
            }
            None | Some("stdout") => Driver::Stdout,
            Some(pointer) => Driver::Lines {
                answer: pointer.to_owned(),
                error: self.error.clone(),
                session: self.session.clone(),
            },
        };
        Known { driver, argv: self.argv.clone(), resume: self.resume.clone(), env: self.env.clone() }
            .checked()
    }
}

impl Known {
    fn checked(self) -> Result<Self, String> {
        if self.argv.first().is_none_or(String::is_empty) {
            return Err("`argv` is missing: give the program and its arguments".to_owned());
        }
        if self.argv.iter().any(|word| word.contains(SESSION)) {
            return Err("`{session}` is for `resume`".to_owned());
        }
        if !self.resume.is_empty() && !self.resume.iter().any(|word| word.contains(SESSION)) {
            return Err("`resume` does not say where the session goes: `{session}`".to_owned());
        }
        if self.env.keys().any(|name| name.is_empty() || name.contains('=') || name.starts_with("HOMING_")) {
            return Err("`env` has a name that no variable of an agent can have".to_owned());
        }
        Ok(self)
    }
}

impl<'de> Deserialize<'de> for Agents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Agents;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`default`, and a table for each agent")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Agents, A::Error> {
                let mut agents = Agents::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "default" {
                        agents.default = Some(map.next_value()?);
                        continue;
                    }
                    let entry: Entry = map.next_value()?;
                    let wrong = |why: &str| de::Error::custom(format!("agents.{name}: {why}"));
                    if !is_name(&name) {
                        return Err(wrong("letters, digits, `-`, `_` and `.` make the name of an agent"));
                    }
                    // Whoever gives no command means an agent that is known by its name.
                    let meant = || slip::meant(&name, registry::names());
                    let meant = if entry.argv.is_empty() { meant() } else { String::new() };
                    entry.known(&name).map_err(|why| wrong(&format!("{why}{meant}")))?;
                    agents.named.insert(name, entry);
                }
                match &agents.default {
                    Some(name) if agents.known(name).is_none() => Err(de::Error::custom(format!(
                        "agents.default: there is no agent `{name}`{}; there are {}",
                        slip::meant(name, agents.names()),
                        agents.names().join(", ")
                    ))),
                    Some(_) | None => Ok(agents),
                }
            }
        }
        deserializer.deserialize_map(Table)
    }
}

impl Serialize for Agents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(default) = &self.default {
            map.serialize_entry("default", default)?;
        }
        for (name, entry) in &self.named {
            map.serialize_entry(name, entry)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Agents, String> {
        #[derive(Deserialize, Serialize)]
        struct File {
            #[serde(default)]
            agents: Agents,
        }
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        // What is shown of it reads back.
        let shown = toml::to_string(&file).unwrap();
        assert_eq!(toml::from_str::<File>(&shown).unwrap().agents, file.agents, "{shown}");
        Ok(file.agents)
    }

    #[test]
    fn known_agents_need_no_configuration() {
        let agents = read("").unwrap();
        assert_eq!(agents.names(), registry::names().collect::<Vec<_>>());
        for name in agents.names() {
            let known = agents.known(name).unwrap();
            assert_eq!(known.argv[0], name);
            assert!(!known.argv.iter().any(|word| word.contains(PROMPT)), "the prompt is the input");
            assert!(known.resume.iter().any(|word| word.contains(SESSION)), "{name}");
        }
    }

    #[test]
    fn agents_of_ones_own_are_commands_with_a_place_for_the_answer() {
        let agents = read(
            "[agents]\ndefault = \"mine\"\n[agents.mine]\nargv = [\"mine\", \"--ask\", \"{prompt}\"]\nanswer = \"/result\"\nsession = \"/id\"\n\
             error = \"/error\"\nresume = [\"mine\", \"--in\", \"{session}\"]\nenv = { MODE = \"x\" }\n\
             [agents.plain]\nargv = [\"cat\"]\n[agents.claude]\nargv = [\"claude\", \"-p\", \"--model\", \"opus\"]\n\
             [agents.reviewer]\ndriver = \"codex\"",
        )
        .unwrap();
        assert_eq!(agents.default.as_deref(), Some("mine"));
        let mine = agents.known("mine").unwrap();
        let lines = Driver::Lines {
            answer: "/result".into(),
            error: Some("/error".into()),
            session: Some("/id".into()),
        };
        assert_eq!((mine.driver, mine.env["MODE"].as_str()), (lines, "x"));
        assert_eq!(agents.known("plain").unwrap().driver, Driver::Stdout);
        let claude = agents.known("claude").unwrap();
        assert_eq!(
            (claude.driver, claude.argv.len(), claude.resume.len()),
            (built_in("claude").unwrap().driver, 4, 0)
        );
        assert_eq!(agents.known("reviewer"), built_in("codex"));
        assert_eq!(agents.known("nobody"), None);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (text, wrong) in [
            ("[agents]\ndefault = \"nobody\"", "no agent `nobody`"),
            ("[agents]\ndefault = \"codxe\"", "no agent `codxe` (did you mean `codex`?); there are"),
            ("[agents.calude]\nenv = { A = \"1\" }", "and its arguments (did you mean `claude`?)"),
            ("[agents.x]\nargv = [\"x\"]\ndriver = \"gemnii\"", "qwen (did you mean `gemini`?)"),
            ("[agents.x]", "agents.x: `argv` is missing"),
            ("[agents.x]\nargv = [\"\"]", "`argv` is missing"),
            ("[agents.x]\nargv = [\"x\"]\nanswer = \"result\"", "JSON pointer"),
            ("[agents.x]\nargv = [\"x\"]\nsession = \"/id\"", "need `answer`"),
            ("[agents.x]\nargv = [\"x\"]\nresume = [\"x\"]", "`{session}`"),
            ("[agents.x]\nargv = [\"x\", \"{session}\"]", "is for `resume`"),
            ("[agents.x]\nargv = [\"x\"]\ndriver = \"emacs\"", "emacs"),
            ("[agents.x]\ndriver = \"codex\"\nanswer = \"/a\"", "without a driver"),
            ("[agents.x]\nargv = [\"x\"]\nenv = { HOMING_HOME = \"x\" }", "`env`"),
            ("[agents.x]\nargv = [\"x\"]\nnonsense = 1", "nonsense"),
            ("[agents.\"a b\"]\nargv = [\"x\"]", "name of an agent"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }
}
