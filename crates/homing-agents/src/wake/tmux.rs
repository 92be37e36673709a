//! tmux: pastes one line into the empty prompt of an agent, and sends it with Enter. The last resort, and off unless `wake.tmux` is set.
//!
//! Keys that reach anything but an empty prompt do harm: they answer a permission dialog, send the user's draft, or run in a shell. So the
//! process in the foreground must be the one that was there when the task was submitted, it must be an agent whose prompt
//! [`super::screen`] can read, and the prompt must be empty: before the text is prepared, and again right before it is pasted. The text
//! goes as a bracketed paste, which the agents never take for single keys. Enter follows only if the prompt holds exactly that text, and the
//! delivery counts only once the prompt no longer holds it and the screen shows the notice elsewhere. In any other case nothing more
//! is typed, the notice stays in the inbox, and the reason is the delivery's.
//!
//! Nothing is typed while the window's panes share their keys (`synchronize-panes`): another pane may show a dialog. tmux itself compares the
//! cursor with that of the last look, and looks for that option, in the step that pastes and again in the step that presses Enter. What
//! remains is a dialog that the agent has opened and not drawn yet: it gets the paste, or the key.

use std::process::Command;
use std::time::Duration;

use homing_model::session::{Foreground, Pane};
use homing_model::turn;
use homing_sys::process;
use tokio::time::{Instant, sleep};

use super::program::{self, Ran};
use super::screen::{PromptLayout, PromptState, Screen, prompt_contains, prompt_state, squeezed};
use super::{Surroundings, Verdict, WakeRequest};
use crate::registry;

/// What tmux prints if the cursor is no longer where it was.
const MOVED: &str = "moved";
const LIMIT: Duration = Duration::from_secs(10);
/// How long the program may take to show a paste in its prompt, or to take it after Enter.
const SHOWN: Duration = Duration::from_secs(10);
/// Between two looks at the pane.
const LOOK: Duration = Duration::from_millis(50);
/// Programs may take an Enter right behind a paste for a part of it (Codex for 120 ms): the line would be there, and no turn begin.
const PASTE: Duration = Duration::from_millis(500);
/// Rows above the screen in which the notice is looked for after Enter.
const HISTORY: &str = "-500";
/// Separates the history from the screen where both are printed in one step. A screen that shows this line itself cannot be parsed,
/// and is no evidence.
const HISTORY_END: &str = "=== homing: the screen follows ===";

/// An agent whose prompt can be read.
#[derive(Debug, Clone, Copy)]
struct Prompted {
    title: &'static str,
    layout: &'static PromptLayout,
}

fn tmux(pane: &Pane, path: &str, words: &[&str]) -> Option<Ran> {
    tmux_with(pane, path, words, b"")
}

fn tmux_with(pane: &Pane, path: &str, words: &[&str], input: &[u8]) -> Option<Ran> {
    let mut command = Command::new(program::find("tmux", path)?);
    command.args(["-S", &pane.server]).args(words).env("PATH", path).env_remove("TMUX");
    program::run(command, input, LIMIT).ok()
}

/// What tmux says of a pane.
struct PaneFacts {
    pid: u32,
    /// A mode of tmux gets the keys, and not the program.
    in_mode: bool,
    /// Keys that are sent to this pane go to all panes of its window.
    synchronized: bool,
}

/// `None` if there is no such pane.
fn look(pane: &Pane, path: &str) -> Option<PaneFacts> {
    let format = "#{pane_id} #{pane_pid} #{pane_in_mode} #{pane_dead} #{pane_synchronized}";
    let words = ["display-message", "-p", "-t", &pane.id, format];
    let ran = tmux(pane, path, &words).filter(Ran::succeeded)?;
    let mut parts = ran.stdout.split_whitespace();
    let (id, pid, mode, dead) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let synchronized = parts.next() != Some("0");
    let facts = PaneFacts { pid: pid.parse().ok()?, in_mode: mode != "0", synchronized };
    (id == pane.id && dead == "0").then_some(facts)
}

/// What runs in the foreground of a pane now. `None` if that cannot be found out.
#[must_use]
pub fn foreground(pane: &Pane, path: &str) -> Option<Foreground> {
    leader(look(pane, path)?.pid)
}

/// The leader of the group in the foreground of the terminal that a process is in.
fn leader(pid: u32) -> Option<Foreground> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name: state, parent, group, session, terminal, and the group in the terminal's foreground.
    let group: u32 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(5)?.parse().ok()?;
    let found = process::stat(group).filter(|found| !found.zombie)?;
    Some(Foreground { pid: found.pid, start: found.start, name: found.name })
}

/// Has tmux print the cursor and the visible part of the pane.
fn show_screen(pane: &Pane) -> [&str; 10] {
    let id = pane.id.as_str();
    ["display-message", "-p", "-t", id, "#{cursor_x} #{cursor_y}", ";", "capture-pane", "-p", "-t", id]
}

/// The visible part of the pane, and the cursor in it, as of one moment.
fn screen(pane: &Pane, path: &str) -> Option<Screen> {
    parse_screen(&tmux(pane, path, &show_screen(pane)).filter(Ran::succeeded)?.stdout)
}

/// What [`show_screen`] has tmux print.
fn parse_screen(shown: &str) -> Option<Screen> {
    let (at, text) = shown.split_once('\n')?;
    let (x, y) = at.split_once(' ')?;
    Some(Screen { text: text.to_owned(), cursor: (x.parse().ok()?, y.parse().ok()?) })
}

fn state(pane: &Pane, path: &str, agent: Prompted) -> PromptState {
    look_at(pane, path, agent).0
}

/// The state of the prompt, and where the cursor was.
fn look_at(pane: &Pane, path: &str, agent: Prompted) -> (PromptState, Option<(usize, usize)>) {
    screen(pane, path).map_or((PromptState::Unknown, None), |screen| {
        (prompt_state(&screen, agent.layout), Some(screen.cursor))
    })
}

/// Has tmux do something if the cursor is still where it was and no other pane gets the same keys, in one step. False if not.
fn act(pane: &Pane, path: &str, cursor: Option<(usize, usize)>, command: &str) -> Option<bool> {
    let (x, y) = cursor?;
    let at = format!("#{{==:#{{cursor_x}} #{{cursor_y}},{x} {y}}}");
    let alone = "#{==:#{pane_in_mode}#{pane_synchronized},00}";
    let still = format!("#{{&&:{at},{alone}}}");
    let moved = format!("display-message -p {MOVED}");
    let ran = tmux(pane, path, &["if-shell", "-F", "-t", &pane.id, &still, command, &moved])?;
    ran.succeeded().then(|| !ran.stdout.contains(MOVED))
}

/// The agent that a process is, by its command line: `claude`, or `node /usr/bin/gemini`.
fn agent_of(program: &Foreground) -> Option<Prompted> {
    let line = std::fs::read(format!("/proc/{}/cmdline", program.pid)).ok()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    agent_in(&words)
}

fn agent_in(words: &[impl AsRef<str>]) -> Option<Prompted> {
    let stem = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        name.split('.').next().unwrap_or(name).to_owned()
    };
    let mut words = words.iter().map(AsRef::as_ref);
    let first = stem(words.next()?);
    let name = match first.as_str() {
        "node" | "bun" => stem(words.find(|word| !word.starts_with('-'))?),
        _ => first,
    };
    let agent = registry::find(&name)?;
    Some(Prompted { title: agent.title(), layout: agent.identity().prompt? })
}

/// Why nothing is typed, for a state that is not empty.
fn refusal(state: &PromptState, pane: &Pane, agent: Prompted) -> String {
    let title = agent.title;
    match state {
        PromptState::Dialog => {
            format!("a dialog of {title} is open in pane {}; nothing is typed into it", pane.id)
        }
        PromptState::Draft(_) => {
            format!("the prompt of {title} in pane {} has a draft; nothing is typed into it", pane.id)
        }
        PromptState::Busy => format!("{title} in pane {} is in the middle of a turn", pane.id),
        PromptState::Unknown | PromptState::Empty => {
            format!("pane {} shows no prompt of {title} that is known; nothing is typed into it", pane.id)
        }
    }
}

/// Why nothing was typed though it looked as if it could be.
fn changed(pane: &Pane) -> String {
    format!("pane {} changed in the last moment; nothing is typed into it", pane.id)
}

/// Waits until the condition holds, or for [`SHOWN`].
async fn wait_until(mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + SHOWN;
    while !holds() {
        if Instant::now() >= end {
            return false;
        }
        sleep(LOOK).await;
    }
    true
}

/// Whether the conversation shows the notice and the prompt does not. Both are read as of one moment: a paste that the user has
/// edited, or that has no Enter yet, is no evidence.
fn was_taken(pane: &Pane, path: &str, agent: Prompted, mark: &str) -> bool {
    let history = ["capture-pane", "-p", "-J", "-S", HISTORY, "-t", &pane.id];
    let separator = [";", "display-message", "-p", "-t", &pane.id, HISTORY_END, ";"];
    let words = [&history[..], &separator, &show_screen(pane)].concat();
    let Some(ran) = tmux(pane, path, &words).filter(Ran::succeeded) else { return false };
    let Some((history, shown)) = ran.stdout.rsplit_once(HISTORY_END) else { return false };
    let Some(screen) = parse_screen(shown.trim_start_matches('\n')) else { return false };
    prompt_state(&screen, agent.layout) != PromptState::Unknown
        && squeezed(history).contains(mark)
        && !prompt_contains(&screen, agent.layout, mark)
}

/// Whether the program that submitted is in the foreground and gets what is typed; if not, why.
fn listens(pane: &Pane, expected: &Foreground, path: &str) -> Result<(), String> {
    let Some(facts) = look(pane, path) else {
        return Err(format!("there is no pane {} now", pane.id));
    };
    match leader(facts.pid) {
        Some(found) if found.pid == expected.pid && found.start == expected.start => {}
        Some(found) => {
            return Err(format!(
                "`{}` is in the foreground of pane {}, and no longer the `{}` that submitted",
                found.name, pane.id, expected.name
            ));
        }
        None => return Err(format!("nothing is in the foreground of pane {}", pane.id)),
    }
    if facts.synchronized {
        let id = &pane.id;
        return Err(format!("pane {id} shares its keys with others (`synchronize-panes`); nothing is typed"));
    }
    if facts.in_mode { Err(format!("pane {} is scrolled back, or in another mode", pane.id)) } else { Ok(()) }
}

/// Pastes the notices of a request, on one line, into the prompt of the agent in a pane, and sends it.
pub async fn wake(pane: &Pane, request: WakeRequest<'_>, surroundings: &Surroundings) -> Verdict {
    let path = &surroundings.path;
    let Some(expected) = &pane.program else {
        return Verdict::Failed(format!("what ran in pane {} was not recorded", pane.id));
    };
    if let Err(why) = listens(pane, expected, path) {
        return Verdict::NotNow(why);
    }
    let Some(agent) = agent_of(expected) else {
        return Verdict::NotNow(format!(
            "`{}` in pane {} is no agent whose prompt is known; nothing is typed into it",
            expected.name, pane.id
        ));
    };
    let Some(notice) = request.notices.first() else {
        return Verdict::Failed("there is nothing to say".to_owned());
    };
    let line = harmless(&turn::line(request.notices));
    let mark = squeezed(&format!("[notice {}]", notice.id));
    let held = PromptState::Draft(squeezed(&line));
    let tried = request.tried.contains(&notice.id);
    let now = state(pane, path, agent);
    if tried && was_taken(pane, path, agent, &mark) {
        return Verdict::Delivered(format!(
            "pane {} has shown the notice since an attempt before this one",
            pane.id
        ));
    }
    if !(tried && now == held)
        && let Err(verdict) = paste(pane, expected, agent, path, &line).await
    {
        return verdict;
    }
    // Enter goes only to a prompt that holds the line and nothing else.
    sleep(PASTE).await;
    if let Err(why) = listens(pane, expected, path) {
        return Verdict::NotNow(format!("{why}, since the line was typed"));
    }
    let (now, cursor) = look_at(pane, path, agent);
    if now != held {
        return Verdict::NotNow(format!("{}, since the line was typed", refusal(&now, pane, agent)));
    }
    match act(pane, path, cursor, &format!("send-keys -t {} Enter", pane.id)) {
        Some(true) => {}
        Some(false) => return Verdict::NotNow(changed(pane)),
        None => return Verdict::Failed("tmux did not take the Enter key".to_owned()),
    }
    if wait_until(|| was_taken(pane, path, agent, &mark)).await {
        return Verdict::Delivered(format!(
            "typed into pane {}: {} took it, its prompt is free again and the notice is in the conversation",
            pane.id, agent.title
        ));
    }
    if state(pane, path, agent) == held {
        return Verdict::NotNow(format!("{} in pane {} did not take the Enter key", agent.title, pane.id));
    }
    Verdict::Failed(format!("pane {} does not show that {} took the notice", pane.id, agent.title))
}

/// Pastes the line into the prompt, if that is empty, and waits until the prompt shows it.
async fn paste(
    pane: &Pane,
    expected: &Foreground,
    agent: Prompted,
    path: &str,
    line: &str,
) -> Result<(), Verdict> {
    let check = || match look_at(pane, path, agent) {
        (PromptState::Empty, cursor) => Ok(cursor),
        (other, _) => Err(Verdict::NotNow(refusal(&other, pane, agent))),
    };
    let _ = check()?;
    let buffer = format!("homing-{}", std::process::id());
    let load = ["load-buffer", "-b", &buffer, "-"];
    if !tmux_with(pane, path, &load, line.as_bytes()).is_some_and(|ran| ran.succeeded()) {
        return Err(Verdict::Failed("tmux did not take the text".to_owned()));
    }
    // The last look: what happened since the first one counts.
    let ready = listens(pane, expected, path).map_err(Verdict::NotNow).and_then(|()| check());
    let pasted = ready.and_then(|cursor| {
        match act(pane, path, cursor, &format!("paste-buffer -p -d -b {buffer} -t {}", pane.id)) {
            Some(true) => Ok(()),
            Some(false) => Err(Verdict::NotNow(changed(pane))),
            None => Err(Verdict::Failed("tmux did not paste the text".to_owned())),
        }
    });
    if let Err(verdict) = pasted {
        let _ = tmux(pane, path, &["delete-buffer", "-b", &buffer]);
        return Err(verdict);
    }
    let held = PromptState::Draft(squeezed(line));
    // If it never shows, the caller finds that out and types nothing more.
    let _ = wait_until(|| state(pane, path, agent) == held || listens(pane, expected, path).is_err()).await;
    Ok(())
}

/// The line without anything that means something to a shell: should one take it after all, it finds no command of that name.
fn harmless(line: &str) -> String {
    let tame = |character| match character {
        '`' | '"' => '\'',
        ';' => ',',
        '(' => '[',
        ')' => ']',
        '$' | '\\' | '&' | '|' | '<' | '>' | '#' | '!' | '*' | '?' | '{' | '}' | '~' => '_',
        other => other,
    };
    line.chars().map(tame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_known_by_its_command_line() {
        for (words, agent) in [
            (&["claude"][..], Some("Claude Code")),
            (&["/usr/lib/claude-code/bin/claude.exe", "--resume"], Some("Claude Code")),
            (&["node", "/usr/bin/codex"], Some("Codex")),
            (&["/usr/bin/node", "--no-warnings", "/opt/gemini-cli/bundle/gemini.js"], Some("Gemini CLI")),
            (&["opencode"], None),
            (&["vim", "claude"], None),
            (&["node"], None),
            (&[], None),
        ] {
            assert_eq!(agent_in(words).map(|agent| agent.title), agent, "{words:?}");
        }
    }

    #[test]
    fn a_shell_that_takes_the_line_runs_nothing_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = r#"x" ; touch a; $(touch b) `touch c` | touch d && touch e > f ) # !! {g,h}"#;
        let line = harmless(&format!("{} Task t-1 \"{foreign}\" matches `touch i`; see", turn::MARK));
        let ran = Command::new("sh").args(["-c", &line]).current_dir(folder.path()).output().unwrap();
        assert!(!ran.status.success(), "{line}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line}");
    }
}
