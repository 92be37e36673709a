//! What the sessions of a soak heard, from the files that their calls left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use super::field::Field;
use super::load::SESSIONS;
use super::story::{Came, Mark, Notice, Telling, nanos};

/// In nanoseconds.
const MS: u64 = 1_000_000;

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
                    came: Came::HandedOver,
                    mark: Mark::Shim,
                    by,
                };
                heard.tellings.extend(notices(&text).map(|notice| Telling { notice, ..one.clone() }));
            }
            ["hook" | "waiter", session, life, _] => {
                let one = telling(field, session, life, at, &entry.path());
                let diary = Diary::read(&entry.path());
                heard
                    .tellings
                    .extend(notices(&text).map(|notice| diary.adds(Telling { notice, ..one.clone() })));
            }
            [mcp, session, life, _] if mcp.starts_with("mcp-") => {
                let number = mcp.trim_start_matches("mcp-").parse().unwrap_or(SESSIONS);
                match ended(&text).and_then(|task| ends.get(task.as_str()).copied()) {
                    Some(notice) => {
                        let one = telling(field, session, life, at, &entry.path());
                        // What it says is written down just before it is asked.
                        let said = std::fs::metadata(beside(&entry.path(), ".said"))
                            .and_then(|meta| meta.modified());
                        let came = said
                            .map_or(Came::Unknown, |said| Came::Answered { began: nanos(said), own: true });
                        heard.tellings.push(Telling {
                            notice: notice.to_owned(),
                            came,
                            mark: Mark::Before,
                            ..one
                        });
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
    let end = std::fs::read_to_string(beside(file, ".end")).unwrap_or_default();
    // Whoever ended by itself had time to mark it, whatever its code; above 128 it was killed.
    let ended = end.trim().split_once(' ').filter(|(code, _)| code.parse().is_ok_and(|code: u32| code < 128));
    let ended = ended.and_then(|(_, at)| at.parse().ok());
    Telling {
        notice: String::new(),
        owner: field.sessions.owner(session.parse().unwrap_or(u64::MAX)).to_owned(),
        life: life.parse().ok(),
        at,
        came: Came::Unknown,
        mark: ended.map_or(Mark::Killed, Mark::Unheard),
        by: Vec::new(),
    }
}

/// A file that belongs to another.
fn beside(file: &Path, kind: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(kind);
    name.into()
}

/// What a hook noted of itself: its step, when, and the notices that it was about.
#[derive(Debug, Default)]
struct Diary(Vec<(String, u64, Vec<String>)>);

impl Diary {
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(beside(file, ".diary")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let ids = |line: &Value| {
            let ids = line["ids"].as_array().into_iter().flatten();
            ids.filter_map(|id| id.as_str().map(str::to_owned)).collect()
        };
        Self(
            lines
                .filter_map(|line| {
                    Some((line["step"].as_str()?.to_owned(), line["at_ms"].as_u64()?, ids(&line)))
                })
                .collect(),
        )
    }

    /// Puts in what it says of a telling. Its clock shows milliseconds: what is to be late is taken as late.
    fn adds(&self, telling: Telling) -> Telling {
        let took = self.0.iter().position(|(step, _, ids)| step == "took" && ids.contains(&telling.notice));
        let Some(took) = took else { return telling };
        let given = (self.0[took].1 + 1) * MS;
        let asked =
            self.0[..took].iter().rev().find(|(step, ..)| step == "asks").map_or(given, |asks| asks.1 * MS);
        let marked =
            self.0[took..].iter().find(|(step, ..)| step == "marked").map(|marked| (marked.1 + 1) * MS);
        Telling { came: Came::Taken { asked, given }, mark: marked.map_or(telling.mark, Mark::By), ..telling }
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
