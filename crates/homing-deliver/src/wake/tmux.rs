//! tmux: what was in the foreground of a pane gets a line typed, and then Enter. The last resort: it answers nothing.
//!
//! The program in the foreground is a process, by its pid and start time, and it must be the one that was there when the task was submitted.
//! Whatever took its place (a shell, an editor) would take the line for something else. That is looked at before the line and again before Enter. A
//! line that was typed and not sent stays where it is, if its program does: the next attempt finds it there, and types only Enter. One that
//! somebody has written on meanwhile is theirs: it is neither sent nor added to, and the pane is left alone until it is gone.

use std::process::Command;
use std::time::Duration;

use homing_model::session::{Foreground, Pane};
use homing_model::turn;
use homing_shim::process;
use tokio::time::{Instant, sleep};

use super::program::{self, Ran};
use super::{Order, Surroundings, Verdict};

const LIMIT: Duration = Duration::from_secs(10);
/// What shows nothing of what is typed is not waited for longer; a program that is at work may take a while.
const SHOWN: Duration = Duration::from_secs(5);
/// Between two looks at the pane.
const LOOK: Duration = Duration::from_millis(50);
/// Programs take keys that come faster than a hand types for a paste, and an Enter right behind them for a part of it (Codex for 120 ms): the
/// line would be there, and no turn begin.
const PASTE: Duration = Duration::from_millis(500);

/// `Task t-…`, without the space.
const TASK: usize = 16;

fn tmux(pane: &Pane, path: &str, words: &[&str]) -> Option<Ran> {
    let mut command = Command::new(program::find("tmux", path)?);
    command.args(["-S", &pane.server]).args(words).env("PATH", path).env_remove("TMUX");
    program::run(command, b"", LIMIT).ok()
}

/// What tmux says of the pane: its process, and whether keys go to that and not to a mode of tmux. `None` if there is no such pane.
fn look(pane: &Pane, path: &str) -> Option<(u32, bool)> {
    let words =
        ["display-message", "-p", "-t", &pane.id, "#{pane_id} #{pane_pid} #{pane_in_mode} #{pane_dead}"];
    let ran = tmux(pane, path, &words).filter(Ran::succeeded)?;
    let mut parts = ran.stdout.split_whitespace();
    let (id, pid, mode, dead) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    (id == pane.id && dead == "0").then_some((pid.parse().ok()?, mode == "0"))
}

pub(super) fn foreground(pane: &Pane, path: &str) -> Option<Foreground> {
    let (pid, _) = look(pane, path)?;
    leader(pid)
}

/// The leader of the group in the foreground of the terminal that a process is in.
fn leader(pid: u32) -> Option<Foreground> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name: state, parent, group, session, terminal, and the group in the terminal's foreground.
    let group: u32 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(5)?.parse().ok()?;
    let found = process::stat(group).filter(|found| !found.zombie)?;
    Some(Foreground { pid: found.pid, start: found.start, name: found.name })
}

/// What is on the screen.
fn screen(pane: &Pane, path: &str) -> String {
    let shown = tmux(pane, path, &["capture-pane", "-p", "-t", &pane.id]);
    shown.map(|shown| shown.stdout).unwrap_or_default()
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Whether the line is on the screen, in whatever pieces.
fn shows(pane: &Pane, path: &str, line: &str) -> bool {
    squeezed(&screen(pane, path)).contains(&squeezed(line))
}

/// What an attempt before this one has left on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Nothing that can be seen.
    Nothing,
    /// The line, as it was typed.
    Line,
    /// The line, and somebody has written on it.
    Changed,
}

/// Looks for the last time that the line, or a beginning that no other has, is on a screen, and at what stands behind it there.
fn left_on(screen: &str, line: &str) -> Left {
    let left = left_in(screen.lines(), line);
    if left == Left::Line {
        return left;
    }
    // A box around a line that is too long for it has sides between the pieces.
    match left_in(screen.lines().map(|row| row.trim_matches(is_side)), line) {
        Left::Nothing => left,
        within => within,
    }
}

fn is_side(drawn: char) -> bool {
    drawn.is_whitespace() || drawn == '|' || ('\u{2500}'..='\u{259f}').contains(&drawn)
}

fn left_in<'a>(rows: impl Iterator<Item = &'a str>, line: &str) -> Left {
    let line = squeezed(line);
    let (mut shown, mut ends) = (String::new(), Vec::new());
    for row in rows {
        shown.push_str(&squeezed(row));
        ends.push(shown.len());
    }
    // The mark and the name of the task, and half of what is said of it.
    let least = squeezed(turn::MARK).chars().count() + TASK;
    let beginning: String = line.chars().take(least.max(line.chars().count() / 2)).collect();
    let Some(at) = shown.rfind(&beginning) else { return Left::Nothing };
    let Some(behind) = shown.get(at..).and_then(|last| last.strip_prefix(line.as_str())) else {
        return Left::Changed;
    };
    // To the end of the row: what a program draws around it has neither letters nor digits.
    let end = shown.len() - behind.len();
    let row = ends.into_iter().find(|row| *row >= end).unwrap_or(end);
    let behind = behind.get(..row - end).unwrap_or(behind);
    if behind.chars().any(char::is_alphanumeric) { Left::Changed } else { Left::Line }
}

/// Waits until the program has read what was typed, as far as it shows it, and the paste is over.
async fn settle(pane: &Pane, path: &str, line: &str) {
    let end = Instant::now() + SHOWN;
    while Instant::now() < end && !shows(pane, path, line) {
        sleep(LOOK).await;
    }
    sleep(PASTE).await;
}

/// Whether the program that submitted is in the foreground and gets what is typed; if not, why.
fn listens(pane: &Pane, expected: &Foreground, path: &str) -> Result<(), String> {
    let Some((pid, takes_keys)) = look(pane, path) else {
        return Err(format!("there is no pane {} now", pane.id));
    };
    match leader(pid) {
        Some(found) if found.pid == expected.pid && found.start == expected.start => {}
        Some(found) => {
            return Err(format!(
                "`{}` is in the foreground of pane {}, and no longer the `{}` that submitted",
                found.name, pane.id, expected.name
            ));
        }
        None => return Err(format!("nothing is in the foreground of pane {}", pane.id)),
    }
    if takes_keys { Ok(()) } else { Err(format!("somebody scrolls in pane {}", pane.id)) }
}

/// What an attempt before this one, if there was one, has left.
fn left(pane: &Pane, path: &str, order: &Order, line: &str) -> Left {
    let tried = order.notices.first().is_some_and(|notice| order.tried.contains(&notice.id));
    if tried { left_on(&screen(pane, path), line) } else { Left::Nothing }
}

pub(super) async fn wake(pane: &Pane, order: &Order, surroundings: &Surroundings) -> Verdict {
    let path = &surroundings.path;
    let Some(expected) = &pane.program else {
        return Verdict::Failed(format!("what ran in pane {} was not recorded", pane.id));
    };
    if let Err(why) = listens(pane, expected, path) {
        return Verdict::NotNow(why);
    }
    let line = harmless(&turn::line(&order.notices));
    match left(pane, path, order, &line) {
        Left::Line => {}
        Left::Changed => {
            return Verdict::NotNow(format!(
                "somebody has written on the line that was typed into pane {}",
                pane.id
            ));
        }
        Left::Nothing => {
            let typed =
                tmux(pane, path, &["send-keys", "-t", &pane.id, "-l", "--", &line]).filter(Ran::succeeded);
            let Some(_) = typed else { return Verdict::Failed("tmux did not take the keys".to_owned()) };
            settle(pane, path, &line).await;
        }
    }
    // Meanwhile it may have gone, or somebody has begun to scroll: then Enter would go to somebody else.
    if let Err(why) = listens(pane, expected, path) {
        return Verdict::NotNow(format!("{why}, since the line was typed"));
    }
    // By itself, so that what reads a paste as one thing sees the end of it first.
    match tmux(pane, path, &["send-keys", "-t", &pane.id, "Enter"]) {
        Some(ran) if ran.succeeded() => {}
        Some(_) | None => return Verdict::Failed("tmux did not take the Enter key".to_owned()),
    }
    match foreground(pane, path) {
        Some(found) if found.pid == expected.pid && found.start == expected.start => {
            Verdict::Delivered(format!("typed into pane {}, where `{}` still runs", pane.id, expected.name))
        }
        Some(_) | None => Verdict::NotNow(format!("`{}` left pane {} just then", expected.name, pane.id)),
    }
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
    fn a_line_that_somebody_has_written_on_is_told_from_one_that_stands_as_it_was_typed() {
        let line = format!(
            "{} Task t-2p7kzjnb98 'check' succeeded after 3.1s, see: homing show t-2p7kzjnb98",
            turn::MARK
        );
        let (first, last) = line.split_at(50);
        for (screen, left) in [
            ("> \n".to_owned(), Left::Nothing),
            (format!("> {line}\n  ? for help\n"), Left::Line),
            (format!("╭───╮\n│ > {line} │\n╰───╯\n 3 tasks\n"), Left::Line),
            (format!("> {first}\n  {last}\n\n  ? for help\n"), Left::Line),
            (format!("│ > {first} │\n│   {last}   │\n╰──────╯\n"), Left::Line),
            (format!("│ > {first} │\n│   {last}! and │\n╰──────╯\n"), Left::Changed),
            (format!("> {line} and then?\n"), Left::Changed),
            (format!("> {first}\n  {last}x\n"), Left::Changed),
            (format!("> {}\n", line.replace("see:", "look at:")), Left::Changed),
            (format!("> {}\n", line.trim_end_matches("b98")), Left::Changed),
            (format!("you: {line} and then?\nok\n> {line}\n"), Left::Line),
            (format!("> {} Task t-2p7kzjnb98 runs on\n", turn::MARK), Left::Nothing),
        ] {
            assert_eq!(left_on(&screen, &line), left, "{screen}");
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
