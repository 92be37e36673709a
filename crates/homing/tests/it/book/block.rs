//! A session in a page: what is typed, and what is shown of the answers.

/// One command with what is shown of its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// As bash takes it, lines that go on included.
    pub(super) command: String,
    /// As the page has it, prompts included.
    pub(super) typed: String,
    /// What the page says that it prints.
    pub(super) shown: String,
}

/// The separator that the script prints before each command; no command of ours prints it.
const SEPARATOR: char = '\u{1e}';

/// The steps of a session.
pub(super) fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: format!("{command}\n"),
                typed: format!("{line}\n"),
                shown: String::new(),
            });
            continue;
        }
        let step =
            steps.last_mut().unwrap_or_else(|| panic!("a session begins with `$ `, not with `{line}`"));
        match line.strip_prefix("> ") {
            Some(more) if step.shown.is_empty() => {
                step.command.push_str(&format!("{more}\n"));
                step.typed.push_str(&format!("{line}\n"));
            }
            _ => step.shown.push_str(&format!("{line}\n")),
        }
    }
    steps
}

/// One script of them all, in one shell, as a reader has it. The separator leaves `$?` as it was.
pub(super) fn script(steps: &[Step]) -> String {
    let mut script = String::from("exec 2>&1\n");
    for step in steps {
        script.push_str(&format!("__code=$?; printf '\\036'; (exit $__code)\n{}", step.command));
    }
    script
}

/// What each step printed.
pub(super) fn printed(output: &str) -> Vec<String> {
    output.split(SEPARATOR).skip(1).map(str::to_owned).collect()
}

/// The session with these answers.
pub(super) fn told(steps: &[Step], printed: &[String]) -> String {
    let ended = |text: &str| if text.is_empty() || text.ends_with('\n') { "" } else { "\n" }.to_owned();
    steps.iter().zip(printed).map(|(step, text)| format!("{}{text}{}", step.typed, ended(text))).collect()
}

#[test]
fn a_session_falls_into_steps_and_is_told_again() {
    let text = "$ echo a\na\n$ cat <<END\n> b\n> END\nb\n$ false; echo $?\n1\n";
    let steps = steps(text);
    assert_eq!(steps.len(), 3);
    assert_eq!(steps[1].command, "cat <<END\nb\nEND\n");
    assert_eq!(steps[1].shown, "b\n");
    let answers = printed("\u{1e}a\n\u{1e}b\n\u{1e}1\n");
    assert_eq!(told(&steps, &answers), text);
}
