//! From "ask this agent" to a command line, and what is kept with it.

use std::path::Path;

use homing_agents::parse::is_session;
use homing_agents::{SESSION, environment, registry};
use homing_model::agent::{Driver, Heard, LONGEST_ARGUMENT};
use homing_model::{Kind, OsText, Spec, SubAgent};
use homing_store::Record;

use super::config::{Known, PROMPT};
use super::{choice, program};
use crate::engine::Inner;
use crate::error::Error;
use crate::supervisor::launch::Values;

/// What a submit comes to.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What is kept.
    pub(crate) agent: SubAgent,
    /// The prompt, if it is the command's input and not an argument.
    pub(crate) input: Option<String>,
}

/// Makes a command of an agent and a prompt: `spec` gets the arguments, the folder and the variables that it needs.
pub(crate) async fn plan(inner: &Inner, spec: &mut Spec, owner: &str) -> Result<Plan, Error> {
    let earlier = match &spec.continues {
        Some(reference) => Some(earlier(inner, reference, owner).await?),
        None => None,
    };
    // A session that is not its own is nothing that an agent may speak for.
    let mut values: Values = spec.env.take().unwrap_or_else(|| inner.default_env.clone());
    values.retain(|name, _| !environment::is_denied(name));
    let config = inner.config();
    let agents = &config.agents;
    let name = match (&spec.agent, &earlier) {
        (Some(name), Some((record, agent))) if *name != agent.name => {
            let why = format!("`{}` answered it, and `{name}` cannot go on with that", agent.name);
            return Err(Error::NotContinued { task: record.id.clone(), why });
        }
        (Some(name), _) => name.clone(),
        (None, Some((_, agent))) => agent.name.clone(),
        (None, None) => choice::choose(agents, choice::asking(spec.session.as_ref(), owner), &values)?,
    };
    let known = agents.known(&name).ok_or_else(|| Error::UnknownAgent {
        name: name.clone(),
        known: agents.names().into_iter().map(str::to_owned).collect(),
    })?;
    let session = match &earlier {
        Some((record, agent)) => Some(session(record, agent, &known)?),
        None => None,
    };
    let prompt = spec.prompt.clone().unwrap_or_default();
    let template = if session.is_some() { &known.resume } else { &known.argv };
    let as_argument = template.iter().any(|word| word.contains(PROMPT));
    if as_argument && prompt.len() > LONGEST_ARGUMENT {
        return Err(Error::BadParameter(format!(
            "`prompt` is longer than {LONGEST_ARGUMENT} bytes, and `{name}` takes it as an argument: put the data into a file and name it in \
             the prompt"
        )));
    }
    spec.argv = template.iter().map(|word| filled(word, &prompt, session.as_deref())).collect();
    if let (None, Some((record, _))) = (&spec.cwd, &earlier) {
        // Agents find their sessions by the folder that they are in.
        spec.cwd.clone_from(&record.spec.cwd);
        if let (Some(cwd), Some(pwd)) = (&spec.cwd, values.get_mut("PWD")) {
            pwd.clone_from(cwd);
        }
    }
    values.extend(known.env.iter().map(|(name, value)| (name.clone(), OsText::from(value.as_str()))));
    let program = spec.argv.first().cloned().unwrap_or_default();
    if program::is_missing(
        program.as_os_str(),
        &values,
        spec.cwd.as_ref().map(|cwd| Path::new(cwd.as_os_str())),
    ) {
        let there = choice::there(agents, &values).into_iter().map(str::to_owned).collect();
        return Err(Error::AgentMissing { name, program: program.lossy().into_owned(), there });
    }
    let folder = folder(&known.driver, &values);
    spec.env = Some(values);
    spec.agent = Some(name.clone());
    let continues = earlier.map(|(record, _)| record.id);
    spec.continues = continues.as_ref().map(ToString::to_string);
    let heard = Heard { session_id: session, ..Heard::default() };
    let agent = SubAgent { name, driver: known.driver, folder, continues, heard };
    Ok(Plan { agent, input: (!as_argument).then_some(prompt) })
}

/// The task of this owner that is to be continued; what others have is as if it were not there.
async fn earlier(inner: &Inner, reference: &str, owner: &str) -> Result<(Record, SubAgent), Error> {
    let record = inner.own(reference, owner).await?;
    let refuse = |why: &str| Err(Error::NotContinued { task: record.id.clone(), why: why.to_owned() });
    match &record.agent {
        _ if record.forgotten => refuse("it is forgotten, and its session with it"),
        _ if record.kind != Kind::Agent => refuse("it is no task of an agent"),
        _ if !record.status.is_terminal() => Err(Error::Live(record.id)),
        Some(agent) => Ok((record.clone(), agent.clone())),
        None => refuse("it is no task of an agent"),
    }
}

/// The session that goes on.
fn session(earlier: &Record, agent: &SubAgent, known: &Known) -> Result<String, Error> {
    let refuse = |why: String| Err(Error::NotContinued { task: earlier.id.clone(), why });
    if known.resume.is_empty() {
        let name = &agent.name;
        return refuse(format!("`{name}` has no `resume` in its part of config.toml ([agents.{name}])"));
    }
    match agent.heard.session_id.as_deref().filter(|session| is_session(session)) {
        Some(session) => Ok(session.to_owned()),
        None => refuse(match &known.driver {
            Driver::Stdout | Driver::Lines { session: None, .. } => format!(
                "nothing says where `{0}` names its session: `session` in its part of config.toml ([agents.{0}]) does",
                agent.name
            ),
            Driver::Agent(_) | Driver::Lines { .. } => "its agent named no session".to_owned(),
        }),
    }
}

/// A word of a command line with what its places stand for. What the prompt says is not looked at again.
fn filled(word: &str, prompt: &str, session: Option<&str>) -> OsText {
    let with_session = |text: &str| text.replace(SESSION, session.unwrap_or_default());
    let parts: Vec<String> = word.split(PROMPT).map(with_session).collect();
    OsText::from(parts.join(prompt).as_str())
}

/// Where an agent keeps its sessions.
fn folder(driver: &Driver, values: &Values) -> Option<OsText> {
    let Driver::Agent(name) = driver else { return None };
    let variable = |name: &str| values.get(name).map(|value| value.as_os_str().to_owned());
    registry::state_folder(registry::find(name.as_str())?, variable)
        .map(|path| OsText::from(path.into_os_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_filled_in_as_it_is() {
        let word = |word: &str| filled(word, "say {session} {prompt}", Some("s-1")).lossy().into_owned();
        assert_eq!(word("--ask={prompt}"), "--ask=say {session} {prompt}");
        assert_eq!(word("{session}/{prompt}"), "s-1/say {session} {prompt}");
        assert_eq!(word("plain"), "plain");
    }

    #[test]
    fn sessions_are_looked_for_where_the_environment_says() {
        let values = |pairs: &[(&str, &str)]| -> Values {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), OsText::from(*value))).collect()
        };
        let agent = |name: &str| Driver::Agent(homing_model::AgentName::new(name).unwrap());
        let home = values(&[("HOME", "/h")]);
        let found =
            |driver: &Driver, values: &Values| folder(driver, values).map(|path| path.lossy().into_owned());
        assert_eq!(found(&agent("claude"), &home).as_deref(), Some("/h/.claude"));
        assert_eq!(found(&agent("codex"), &home).as_deref(), Some("/h/.codex"));
        let set = values(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c"), ("CODEX_HOME", "relative")]);
        assert_eq!(found(&agent("claude"), &set).as_deref(), Some("/c"));
        assert_eq!(found(&agent("codex"), &set).as_deref(), Some("/h/.codex"));
        assert_eq!(found(&Driver::Stdout, &set), None);
        assert_eq!(found(&agent("claude"), &values(&[])), None);
    }
}
