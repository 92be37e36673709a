//! Words that a shell offers and that no task has: agents, keys of the configuration, targets of notices.
//!
//! They are read from the file and from the grammar, and nobody is asked: no daemon has to run for them.

use std::path::Path;

use clap_complete::CompletionCandidate;
use homing_agents::registry::{self, REGISTRY};
use homing_engine::config::manual::SECTIONS;

use crate::cli::completion;
use crate::cli::entry;
use crate::options::environment::Surroundings;
use crate::options::home;

/// Every agent that can be asked: those that homing knows, and those of config.toml. A file that is broken has none to offer.
pub(crate) fn agents() -> Vec<CompletionCandidate> {
    let surroundings = Surroundings::of_this_process();
    let typed: Vec<_> = std::env::args_os().collect();
    let file = home::configuration(completion::home_flag(&typed).map(Path::new), &surroundings);
    let config = file.ok().and_then(|file| entry::configuration(&file).ok()).unwrap_or_default();
    config.agents.names().into_iter().map(agent).collect()
}

/// Every agent that homing can be installed in.
pub(crate) fn hosts() -> Vec<CompletionCandidate> {
    REGISTRY
        .iter()
        .map(|agent| CompletionCandidate::new(agent.name()).help(Some(agent.title().into())))
        .collect()
}

fn agent(name: &str) -> CompletionCandidate {
    let help = if registry::find(name).is_some() { "known to homing" } else { "an agent of config.toml" };
    CompletionCandidate::new(name).help(Some(help.into()))
}

/// Every section of the configuration, and every key of it.
pub(crate) fn keys() -> Vec<CompletionCandidate> {
    let candidate = |name: &str, about: &str| {
        let first = about.split_inclusive(['.', ':', ';']).next().unwrap_or_default();
        CompletionCandidate::new(name).help(Some(first.trim_end_matches(['.', ':', ';']).to_owned().into()))
    };
    let of_section = |section: &homing_engine::config::manual::Section| {
        let whole = candidate(section.name, section.about);
        let keys =
            section.keys.iter().map(|key| candidate(&format!("{}.{}", section.name, key.name), key.about));
        std::iter::once(whole).chain(keys).collect::<Vec<_>>()
    };
    SECTIONS.iter().flat_map(of_section).collect()
}

/// Where notices can go. Of a word that goes on, the beginning is offered.
pub(crate) fn targets() -> Vec<CompletionCandidate> {
    [
        ("inbox", "an entry for the owner"),
        ("wake", "a new turn of the agent that submits"),
        ("desktop", "a desktop notification"),
        ("exec:", "a command that gets it on stdin"),
        ("https://", "a webhook"),
    ]
    .into_iter()
    .map(|(word, help)| CompletionCandidate::new(word).help(Some(help.into())))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(candidates: &[CompletionCandidate]) -> Vec<String> {
        candidates.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn every_key_is_offered_with_its_section() {
        let offered = words(&keys());
        for word in ["retention", "retention.age", "log.level", "agents.default"] {
            assert!(offered.iter().any(|offered| offered == word), "{word}: {offered:?}");
        }
    }

    #[test]
    fn what_is_offered_as_a_target_is_one_or_begins_one() {
        for word in words(&targets()) {
            let whole = match word.as_str() {
                "exec:" => "exec:true".to_owned(),
                "https://" => "https://example.com/".to_owned(),
                word => word.to_owned(),
            };
            assert!(whole.parse::<homing_model::Target>().is_ok(), "{word}");
        }
    }
}
