//! Completions as real shells take them.

use std::process::Command;

use homing_testkit::{Home, PATIENCE, copy_program, left_out, wait_for, wait_until};

/// Runs a script in a shell, with the program in its PATH; none if there is no such shell.
fn shell(home: &Home, words: &[&str], script: &str) -> Option<String> {
    let bin = home.program().parent().expect("a folder").display();
    let path = format!("{bin}:/usr/local/bin:/usr/bin:/bin");
    let mut command = Command::new("timeout");
    command.arg("60").args(words).arg(script).env_clear().env("PATH", path).env("TERM", "xterm");
    command.env("HOMING_HOME", home.path()).env("HOME", home.scratch()).current_dir(home.scratch());
    let output = command.output().expect("timeout runs");
    if output.status.code() == Some(127) {
        left_out(&format!("{} is not installed", words[0]));
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Writes the script of a program in a place with an odd name, which it has to quote.
fn script(home: &Home, name: &str, file: &str) {
    let folder = home.scratch().join("it's a \"$HOME\" \\ (of) `sorts`");
    std::fs::create_dir(&folder).expect("a folder");
    let program = folder.join("homing");
    copy_program(home.program(), &program);
    let output = Command::new(program).args(["completions", name]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    std::fs::write(home.scratch().join(file), output.stdout).expect("a file");
}

/// What is typed, and the words that must and must not be offered.
const TYPED: &[(&str, &[&str], &[&str])] = &[
    ("homing ou", &["output"], &["logs"]),
    ("homing l", &["list"], &["logs"]),
    ("homing d", &["daemon", "doctor"], &[]),
    ("homing logs --t", &["--tail", "--timestamps"], &[]),
    ("homing help d", &["daemon", "doctor"], &["list"]),
    ("homing explain HM003", &["HM0030", "HM0031"], &["HM0001"]),
    ("homing show my", &["mytask"], &[]),
    ("homing forget my", &["mytask"], &["mylive"]),
    ("homing stop my", &["mylive"], &["mytask"]),
    ("homing input my", &["mypipe"], &["mytask", "mylive"]),
    ("homing stop --signal U", &["USR1", "USR2"], &["TERM"]),
    ("homing show @", &["@last"], &["mytask"]),
    ("homing ask --agent co", &["codex"], &["claude"]),
    ("homing config explain retention.a", &["retention.age"], &["retention.count"]),
    ("homing run --notify d", &["desktop"], &["inbox"]),
    ("homing run ./my", &["./mytool"], &[]),
    ("homing run -- ./my", &["./mytool"], &[]),
    ("homing run -- cat my", &["mytool"], &[]),
];

/// A home with a task of each kind, and a file.
fn prepared() -> Home {
    let home = super::home();
    let _ = home.ended(&home.submit(&["--name", "mytask"], "true"));
    let _ = home.submit(&["--name", "mylive"], "exec sleep 1000");
    let id = home.submit(&["--name", "mypipe", "--stdin", "pipe"], "exec sleep 1000");
    let _ = home.until_status(&id, "running");
    std::fs::write(home.scratch().join("mytool"), "").expect("a file");
    home
}

/// Asks until everything is offered that must be: a daemon that does not answer at once has nothing to offer, since somebody waits at the key.
fn check(name: &str, mut offered: impl FnMut(&str) -> Option<String>) {
    for (typed, some, none) in TYPED {
        let text = wait_until(&format!("{some:?} in {name} for {typed:?}"), PATIENCE, || {
            let Some(text) = offered(typed) else { return Ok(None) };
            let all = some.iter().all(|word| text.split_whitespace().any(|other| other == *word));
            if all { Ok(Some(text)) } else { Err(text) }
        });
        let Some(text) = text else { return };
        for word in *none {
            assert!(
                !text.split_whitespace().any(|other| other == *word),
                "{name} offers {word} for {typed:?}: {text}"
            );
        }
    }
}

#[test]
fn bash_offers_commands_options_values_and_tasks() {
    let home = prepared();
    script(&home, "bash", "script");
    check("bash", |typed| {
        let line = format!(
            "source ./script; COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9
             _clap_complete_homing homing \"${{COMP_WORDS[COMP_CWORD]}}\" x; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        shell(&home, &["bash", "--norc", "-c"], &line)
    });
}

#[test]
fn fish_offers_commands_options_values_and_tasks() {
    let home = prepared();
    script(&home, "fish", "script");
    check("fish", |typed| {
        let line = format!("source ./script; complete -C '{typed}'");
        let text = shell(&home, &["fish", "--no-config", "-c"], &line)?;
        // The words alone, without what is said of them.
        Some(
            text.lines()
                .map(|line| line.split('\t').next().unwrap_or_default())
                .collect::<Vec<_>>()
                .join("\n"),
        )
    });
}

#[test]
fn zsh_completes_at_the_first_press_of_the_key() {
    let home = super::home();
    let _ = home.submit(&["--name", "mytask"], "true");
    script(&home, "zsh", "_homing");
    for (typed, completed) in [("homing ou", "homing output "), ("homing show my", "homing show mytask ")] {
        // The line is printed by a widget, so that what is seen is what zsh has, not how it draws it.
        let line = format!(
            r#"zmodload zsh/zpty; zpty z zsh -f -i
            zpty -w z 'PS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; tell() {{ print -r "<$BUFFER>" }}; zle -N tell; bindkey "^X" tell; echo rea""dy'
            zpty -r -m z line '*ready*'
            zpty -w -n z $'{typed}\t\x18'
            zpty -r -m z line '*<*>*'; print -r -- $line; zpty -d z"#
        );
        // Each time at the first press, in a shell of its own.
        wait_until(&format!("{completed:?}"), PATIENCE, || match shell(&home, &["zsh", "-f", "-c"], &line) {
            Some(text) if !text.contains(&format!("<{completed}>")) => Err(text),
            Some(_) | None => Ok(()),
        });
    }
}

#[test]
fn the_file_of_a_secret_is_offered() {
    let home = prepared();
    let mut command = home.command();
    command.args(["--", "homing", "run", "--secret", "A=@my"]).current_dir(home.scratch());
    command.env("HOMING_COMPLETE", "fish");
    let offered = String::from_utf8(command.output().expect("it answers").stdout).expect("text");
    assert_eq!(offered.trim(), "A=@mytool");
}

/// What is typed, and the name as it stands in the line then.
const SPACED: [(&str, &str); 2] =
    [("homing show sp", r"spaced\ out\ name"), (r"homing show spaced\ o", r"spaced\ out\ name")];

/// Asks until the daemon answers as soon as whoever types is made to wait, which is not long.
fn in_time(ask: impl Fn() -> Option<String>) -> Option<String> {
    wait_for("an offer", || match ask() {
        Some(text) if text.trim().is_empty() => None,
        answer => Some(answer),
    })
}

fn spaced() -> Home {
    let home = super::home();
    let _ = home.submit(&["--name", "spaced out name"], "true");
    home
}

#[test]
fn bash_quotes_a_name_with_spaces_unless_a_quote_was_begun() {
    let home = spaced();
    script(&home, "bash", "script");
    let begun = [(r#"homing show \"spaced"#, "spaced out name"), (r"homing show \'sp", "spaced out name")];
    for (typed, completed) in SPACED.into_iter().chain(begun) {
        // As bash does it: the words as they are typed, and the last without a quote that was begun.
        let line = format!(
            r#"source ./script; COMP_WORDS=({}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9
            last=${{COMP_WORDS[COMP_CWORD]}}; _clap_complete_homing homing "${{last#[\"\']}}" x; printf '%s\n' "${{COMPREPLY[@]}}""#,
            typed.replace(r"\ ", r"\\\ ")
        );
        let Some(text) = in_time(|| shell(&home, &["bash", "--norc", "-c"], &line)) else { return };
        assert_eq!(text.trim_end(), completed, "{typed}");
    }
}

#[test]
fn fish_offers_a_name_with_spaces_however_it_was_begun() {
    let home = spaced();
    script(&home, "fish", "script");
    for (typed, _) in SPACED.into_iter().chain([("homing show \"spaced o", "")]) {
        let line = format!("source ./script; complete -C '{}'", typed.replace('\\', r"\\"));
        let Some(text) = in_time(|| shell(&home, &["fish", "--no-config", "-c"], &line)) else { return };
        assert!(text.contains("spaced"), "{typed}: {text}");
    }
}

#[test]
fn zsh_quotes_a_name_with_spaces() {
    let home = spaced();
    script(&home, "zsh", "_homing");
    for (typed, completed) in SPACED {
        let line = format!(
            r#"zmodload zsh/zpty; zpty z zsh -f -i
            zpty -w z 'PS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; tell() {{ print -r "<$BUFFER>" }}; zle -N tell; bindkey "^X" tell; echo rea""dy'
            zpty -r -m z line '*ready*'
            zpty -w -n z $'{}\t\x18'
            zpty -r -m z line '*<*>*'; print -r -- $line; zpty -d z"#,
            typed.replace('\\', r"\\")
        );
        let asked = || {
            let text = shell(&home, &["zsh", "-f", "-c"], &line)?;
            // Whatever stands there as it was typed was offered nothing.
            Some(if text.contains(&format!("<{typed}>")) { String::new() } else { text })
        };
        let Some(text) = in_time(asked) else { return };
        assert!(text.contains(&format!("<homing show {completed} >")), "{typed}: {text:?}");
    }
}

#[test]
fn p11_what_is_offered_within_quotes_runs_nothing() {
    let home = super::home();
    let _ = home.submit(&["--name", "$(touch ran)"], "true");
    let id = home.submit(&["--name", "harmless"], "true");
    script(&home, "bash", "script");
    for quote in ["\\\"", "\\'"] {
        let line = format!(
            r#"source ./script; COMP_WORDS=(homing show {quote}); COMP_CWORD=2; COMP_TYPE=9
            _clap_complete_homing homing "" x; printf '%s\n' "${{COMPREPLY[@]}}""#
        );
        let Some(text) = in_time(|| shell(&home, &["bash", "--norc", "-c"], &line)) else { return };
        assert!(
            text.contains("harmless") && text.contains(&id) && !text.contains("touch"),
            "{quote}: {text}"
        );
    }
}
