//! Reads the state of an agent's prompt from its screen. Pure: the screen is what `tmux capture-pane -p` prints.
//!
//! A key that is meant for the prompt answers a permission dialog if one is open, and Enter sends a draft of the user. So only
//! [`PromptState::Empty`] permits typing, and it needs positive evidence: the frame of the prompt, nothing in it but the agent's own
//! placeholder, and the cursor at its beginning. The layouts are those of Claude Code 2.1, Codex 0.166 and Gemini CLI 0.61. A screen that
//! looks different is [`PromptState::Unknown`].

/// The visible part of a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) text: String,
    /// Column and row of the cursor, from 0.
    pub(super) cursor: (usize, usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PromptState {
    /// The prompt has the focus and nothing was typed.
    Empty,
    /// The prompt has the focus and this text, without its spaces.
    Draft(String),
    /// A choice is open: keys would answer it.
    Dialog,
    /// A turn is under way, and may open a dialog at any moment.
    Busy,
    Unknown,
}

/// The prompt as it is drawn: its first row, the row after its last, its text, and the column where the text begins.
struct Prompt {
    first: usize,
    end: usize,
    text: String,
    column: usize,
}

/// How an agent draws its prompt.
#[derive(Debug, Clone, Copy)]
pub struct PromptLayout {
    /// What the empty prompt shows.
    pub placeholder: &'static str,
    /// The mark of the selected row of a numbered choice.
    pub choice: char,
    /// Where the prompt is.
    pub frame: Frame,
}

/// Where a prompt is on the screen.
#[derive(Debug, Clone, Copy)]
pub enum Frame {
    /// The rows between the last two rules, of which the first begins with the mark.
    Rules {
        /// The mark.
        mark: char,
    },
    /// The last row that begins with one of the marks, and the rows below it that are indented as its text is.
    Mark {
        /// The marks.
        marks: &'static [&'static str],
        /// The indent.
        indent: &'static str,
    },
}

pub(super) fn prompt_state(screen: &Screen, layout: &PromptLayout) -> PromptState {
    let rows: Vec<&str> = screen.text.lines().collect();
    if rows.iter().any(|row| is_choice(row, layout)) {
        return PromptState::Dialog;
    }
    let has_cursor = |prompt: &Prompt| (prompt.first..prompt.end).contains(&screen.cursor.1);
    let Some(prompt) = find_prompt(&rows, layout).filter(has_cursor) else {
        return if works(&rows) { PromptState::Busy } else { PromptState::Unknown };
    };
    // Enter during a turn only queues the line, and a dialog may open before it is pressed.
    if works(&rows) {
        return PromptState::Busy;
    }
    let at_begin = screen.cursor == (prompt.column, prompt.first);
    let is_empty = at_begin && prompt.text == squeezed(layout.placeholder);
    if is_empty { PromptState::Empty } else { PromptState::Draft(prompt.text) }
}

/// Whether the prompt contains this text, wherever the cursor is.
pub(super) fn prompt_contains(screen: &Screen, layout: &PromptLayout, squeezed_text: &str) -> bool {
    let rows: Vec<&str> = screen.text.lines().collect();
    find_prompt(&rows, layout).is_some_and(|prompt| prompt.text.contains(squeezed_text))
}

fn find_prompt(rows: &[&str], layout: &PromptLayout) -> Option<Prompt> {
    match layout.frame {
        Frame::Rules { mark } => between_rules(rows, mark),
        Frame::Mark { marks, indent } => after_mark(rows, marks, indent),
    }
}

/// A row of a numbered choice that is selected: `❯ 1. Yes`.
fn is_choice(row: &str, layout: &PromptLayout) -> bool {
    let row = row.trim_start_matches(|drawn: char| drawn.is_whitespace() || drawn == '│');
    let Some(option) = row.strip_prefix(layout.choice) else { return false };
    let option = option.trim_start();
    let digits = option.chars().take_while(char::is_ascii_digit).count();
    digits > 0 && option.get(digits..).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether the screen says that a turn is under way and can be interrupted.
fn works(rows: &[&str]) -> bool {
    rows.iter().any(|row| {
        let row = row.to_lowercase();
        row.contains("esc to interrupt") || row.contains("esc to cancel")
    })
}

fn between_rules(rows: &[&str], mark: char) -> Option<Prompt> {
    let is_rule = |row: &&str| row.starts_with("──────────");
    let last = rows.iter().rposition(is_rule)?;
    let before = rows.get(..last)?.iter().rposition(is_rule)?;
    let inside = rows.get(before + 1..last)?;
    let head = inside.first()?.strip_prefix(mark)?;
    let text = std::iter::once(head).chain(inside.iter().skip(1).copied()).map(squeezed).collect();
    Some(Prompt { first: before + 1, end: last, text, column: 2 })
}

fn after_mark(rows: &[&str], marks: &[&str], indent: &str) -> Option<Prompt> {
    let strip = |row: &&str| {
        // The spaces at the end of a row are not always drawn.
        marks.iter().find_map(|mark| {
            row.strip_prefix(mark)
                .or_else(|| (row.trim_end() == mark.trim_end()).then_some(""))
                .map(str::to_owned)
        })
    };
    let first = rows.iter().rposition(|row| strip(row).is_some())?;
    let head = strip(rows.get(first)?)?;
    let below = rows.get(first + 1..)?.iter();
    let more = below.take_while(|row| row.starts_with(indent) && !row.trim().is_empty()).count();
    let end = first + 1 + more;
    let rest = rows.get(first + 1..end)?.iter().copied();
    let text = std::iter::once(head.as_str()).chain(rest).map(squeezed).collect();
    Some(Prompt { first, end, text, column: indent.chars().count() })
}

/// A text without its spaces: programs wrap and indent what is typed.
pub(super) fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;

    fn layout(agent: &str) -> &'static PromptLayout {
        find(agent).unwrap().identity().prompt.unwrap()
    }

    /// A screen of the real program, recorded in tmux; the first line is the place of the cursor.
    fn recorded(text: &str) -> Screen {
        let (cursor, text) = text.split_once('\n').unwrap();
        let (x, y) = cursor.split_once(' ').unwrap();
        Screen { text: text.to_owned(), cursor: (x.parse().unwrap(), y.parse().unwrap()) }
    }

    macro_rules! screen {
        ($agent:literal, $name:literal) => {
            recorded(include_str!(concat!("../", $agent, "/screens/", $name, ".txt")))
        };
    }

    const NOTICE: &str = "[homing notice - not user input] t-q72wfmq36k 'build' succeeded, exit code 0, after 2.7s \
        [notice n-5srmnbxzrp], see: homing show t-q72wfmq36k";

    #[test]
    fn recorded_prompt_states_are_recognised() {
        let draft = || PromptState::Draft(squeezed("please delete everything except"));
        let pasted = || PromptState::Draft(squeezed(NOTICE));
        for (name, agent, screen, expected) in [
            ("claude-empty", "claude", screen!("claude", "empty"), PromptState::Empty),
            ("claude-draft", "claude", screen!("claude", "draft"), draft()),
            ("claude-dialog", "claude", screen!("claude", "dialog"), PromptState::Dialog),
            ("claude-pasted", "claude", screen!("claude", "pasted"), pasted()),
            ("claude-sent", "claude", screen!("claude", "sent"), PromptState::Empty),
            ("codex-empty", "codex", screen!("codex", "empty"), PromptState::Empty),
            ("codex-draft", "codex", screen!("codex", "draft"), draft()),
            ("codex-dialog", "codex", screen!("codex", "dialog"), PromptState::Dialog),
            ("codex-pasted", "codex", screen!("codex", "pasted"), pasted()),
            ("codex-sent", "codex", screen!("codex", "sent"), PromptState::Empty),
            ("gemini-empty", "gemini", screen!("gemini", "empty"), PromptState::Empty),
            ("gemini-draft", "gemini", screen!("gemini", "draft"), draft()),
            ("gemini-dialog", "gemini", screen!("gemini", "dialog"), PromptState::Dialog),
            ("gemini-pasted", "gemini", screen!("gemini", "pasted"), pasted()),
            ("gemini-sent", "gemini", screen!("gemini", "sent"), PromptState::Empty),
        ] {
            assert_eq!(prompt_state(&screen, layout(agent)), expected, "{name}");
        }
    }

    #[test]
    fn a_screen_of_another_program_is_unknown() {
        for screen in [screen!("claude", "empty"), screen!("codex", "empty"), screen!("gemini", "empty")] {
            let empty = ["claude", "codex", "gemini"]
                .into_iter()
                .filter(|agent| prompt_state(&screen, layout(agent)) == PromptState::Empty);
            assert_eq!(empty.count(), 1, "{screen:?}");
        }
        for text in ["", "$ ", "> ", "❯ \n", "~\n~\n-- INSERT --"] {
            let screen = Screen { text: text.to_owned(), cursor: (2, 0) };
            for agent in ["claude", "gemini", "codex"] {
                assert_eq!(prompt_state(&screen, layout(agent)), PromptState::Unknown, "{text:?}");
            }
        }
    }

    #[test]
    fn a_prompt_without_the_cursor_or_with_spaces_is_not_empty() {
        for (agent, screen) in [
            ("claude", screen!("claude", "empty")),
            ("codex", screen!("codex", "empty")),
            ("gemini", screen!("gemini", "empty")),
        ] {
            let (x, y) = screen.cursor;
            let spaces = Screen { cursor: (x + 3, y), ..screen.clone() };
            assert!(matches!(prompt_state(&spaces, layout(agent)), PromptState::Draft(_)), "{agent:?}");
            let elsewhere = Screen { cursor: (x, y - 3), ..screen.clone() };
            assert_eq!(prompt_state(&elsewhere, layout(agent)), PromptState::Unknown, "{agent:?}");
            for cursor in [(x, y), (x + 3, y)] {
                let text = format!("{}\n * Thinking… (esc to interrupt)\n", screen.text);
                assert_eq!(
                    prompt_state(&Screen { text, cursor }, layout(agent)),
                    PromptState::Busy,
                    "{agent:?}"
                );
            }
        }
    }

    #[test]
    fn a_shell_mode_and_a_draft_of_several_rows_are_not_empty() {
        let shell = screen!("claude", "empty");
        let shell = Screen { text: shell.text.replace('❯', "!"), ..shell };
        assert_eq!(prompt_state(&shell, layout("claude")), PromptState::Unknown);
        let shell = screen!("gemini", "empty");
        let shell = Screen {
            text: shell.text.replace(" >   Type your message", " !   Type your shell command"),
            ..shell
        };
        assert_ne!(prompt_state(&shell, layout("gemini")), PromptState::Empty);
        let wrapped = "────────────\n❯ first line\n  second\n────────────\n  ? for shortcuts\n";
        let wrapped = Screen { text: wrapped.to_owned(), cursor: (8, 2) };
        assert_eq!(
            prompt_state(&wrapped, layout("claude")),
            PromptState::Draft("firstlinesecond".to_owned())
        );
    }
}
