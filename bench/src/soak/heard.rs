//! What the sessions of a soak heard, from the files that their calls left.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::field::Field;
use super::load::SESSIONS;
use super::story::{Mark, Notice, Telling, nanos};

/// All of it; and the numbers of tool calls whose answer nobody heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) tellings: Vec<Telling>,
    pub(crate) unheard: Vec<u64>,
}

/// Reads the files. `ends` has the notice of each task's end.
pub(crate) fn all(field: &Field, ends: &BTreeMap<&str, &str>) -> Result<Heard> {
    let mut heard = Heard::default();
    for entry in std::fs::read_dir(&field.stand_ins.heard)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned();
        let parts: Vec<&str> = name.split('.').collect();
        let at = nanos(entry.metadata()?.modified()?);
        match parts.as_slice() {
            ["wake", session, ..] => {
                let by = text.lines().next().unwrap_or_default();
                let by = by.split(' ').filter_map(|pid| pid.parse().ok()).collect();
                // Of what was kept whole the place in time is in the name.
                let at = parts.last().and_then(|at| at.parse().ok()).unwrap_or(at);
                let one = Telling {
                    notice: String::new(),
                    owner: session.replacen('-', ":", 1),
                    life: None,
                    at,
                    mark: Mark::Shim,
                    by,
                };
                heard.tellings.extend(notices(&text).map(|notice| Telling { notice, ..one.clone() }));
            }
            ["hook" | "waiter", session, life, _] => {
                let one = telling(field, session, life, at, &entry.path());
                heard.tellings.extend(notices(&text).map(|notice| Telling { notice, ..one.clone() }));
            }
            [mcp, session, life, _] if mcp.starts_with("mcp-") => {
                let number = mcp.trim_start_matches("mcp-").parse().unwrap_or(SESSIONS);
                match ended(&text).and_then(|task| ends.get(task.as_str()).copied()) {
                    Some(notice) => {
                        let one = telling(field, session, life, at, &entry.path());
                        heard.tellings.push(Telling { notice: notice.to_owned(), mark: Mark::Before, ..one });
                    }
                    None => heard.unheard.push(number),
                }
            }
            _ => {}
        }
    }
    heard.tellings.sort_by_key(|telling| telling.at);
    Ok(heard)
}

fn telling(field: &Field, session: &str, life: &str, at: u64, file: &Path) -> Telling {
    let mut end = file.as_os_str().to_owned();
    end.push(".end");
    let end = std::fs::read_to_string(end).unwrap_or_default();
    // Whoever ended by itself had time to mark it, whatever its code; above 128 it was killed.
    let ended = end.trim().split_once(' ').filter(|(code, _)| code.parse().is_ok_and(|code: u32| code < 128));
    let ended = ended.and_then(|(_, at)| at.parse().ok());
    Telling {
        notice: String::new(),
        owner: field.sessions.owner(session.parse().unwrap_or(u64::MAX)).to_owned(),
        life: life.parse().ok(),
        at,
        mark: ended.map_or(Mark::Killed, Mark::Until),
        by: Vec::new(),
    }
}

/// The notices that a text of ours names, each once.
fn notices(text: &str) -> impl Iterator<Item = String> + use<> {
    let found = text.split("(notice ").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    found.collect::<std::collections::BTreeSet<_>>().into_iter()
}

/// The task whose end a tool call was answered with.
fn ended(text: &str) -> Option<String> {
    let answers = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let answer = answers.into_iter().find(|answer| answer["id"] == 2)?;
    let said = &answer["result"]["structuredContent"];
    said["ended"].as_bool().filter(|ended| *ended)?;
    Some(said["task"]["id"].as_str()?.to_owned())
}

/// The notice of each task's end.
pub(crate) fn ends(notices: &BTreeMap<String, Notice>) -> BTreeMap<&str, &str> {
    let ends = notices.iter().filter(|(_, notice)| notice.about == "task.completed");
    ends.map(|(id, notice)| (notice.task.as_str(), id.as_str())).collect()
}
