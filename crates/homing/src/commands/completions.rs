//! `homing completions`: what a shell needs to complete commands, options and tasks.

use clap::{Args, ValueEnum};
use clap_complete::env::Shells;
use homing_api::{Code, Problem};
use homing_model::shell::quote;

use crate::cli::completion::VARIABLE;
use crate::cli::context::Context;
use crate::cli::entry;
use crate::cli::exit_code;
use crate::cli::failure::Failure;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

/// zsh loads the file as a function when it is first asked: then it has to answer too, not only to set itself up.
const FIRST_CALL: &str =
    "[[ \"${funcstack[1]}\" == _homing ]] && _clap_dynamic_completer_homing \"$@\" || true\n";

/// Where the function of bash ends.
const END: &str = "\n}\nif [[ \"${BASH_VERSINFO[0]}\" -eq 4";

/// bash puts a word into the line as it gets it: one that it would read as several is quoted before. Where a quote was begun it stays as it is, and one
/// that bash would expand there, or that ends the quote, is left out: any task chooses its name.
const QUOTED: &str = r#"
    local at
    for at in "${!COMPREPLY[@]}"; do
        if [[ ${COMP_WORDS[COMP_CWORD]} == [\"\']* ]]; then
            [[ ${COMPREPLY[at]} == *[\$\`\\\"\'!]* ]] && unset "COMPREPLY[at]"
        elif [[ ${COMPREPLY[at]} == *[^[:alnum:]_./:=@%+,~-]* ]]; then
            printf -v "COMPREPLY[at]" %q "${COMPREPLY[at]}"
        fi
    done"#;

#[derive(Debug, Args)]
#[command(
    after_help = "zsh looks into the folders of $fpath: `fpath=(~/.zfunc $fpath)` before `compinit` in ~/.zshrc.

Examples:
  homing completions bash > ~/.local/share/bash-completion/completions/homing
  homing completions zsh > ~/.zfunc/_homing
  homing completions fish > ~/.config/fish/completions/homing.fish"
)]
pub(crate) struct Options {
    /// Which shell
    shell: Shell,
}

/// Stands for the program's path until that is quoted as the script's place for it needs; a word that nobody quotes.
const PROGRAM: &str = "HOMING_PROGRAM_PATH";

/// Prints the script, which calls this program back for every answer.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let name = options.shell.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let script = script(&name, &entry::executable()?.to_string_lossy())?;
    if context.json {
        context.console.json(&serde_json::json!({ "shell": name, "script": script }))?;
    } else {
        context.console.data(script.as_bytes())?;
    }
    Ok(exit_code::DONE)
}

fn script(shell: &str, program: &str) -> Result<String, Problem> {
    let internal = |why: String| Problem::new(Code::Internal, format!("no completions for {shell}: {why}"));
    let shells = Shells::builtins();
    let completer = shells.completer(shell).ok_or_else(|| internal("unknown shell".to_owned()))?;
    let mut script = Vec::new();
    // What comes with the scripts quotes in one manner for all, also where the place is within double quotes.
    let quoted = quoted(shell, program);
    let given = if quoted.is_some() { PROGRAM } else { program };
    completer
        .write_registration(VARIABLE, "homing", "homing", given, &mut script)
        .map_err(|error| internal(error.to_string()))?;
    let mut script = String::from_utf8(script).map_err(|error| internal(error.to_string()))?;
    if let Some(quoted) = quoted {
        script = script.replace(PROGRAM, &quoted);
    }
    match shell {
        "zsh" => script.push_str(FIRST_CALL),
        "bash" => script = script.replacen(END, &format!("{QUOTED}{END}"), 1),
        _ => {}
    }
    Ok(script)
}

/// The path as it has to be written in the script of this shell; none where that is left to the script's maker.
fn quoted(shell: &str, program: &str) -> Option<String> {
    let escaped = |text: &str, special: &[char]| {
        text.chars().fold(String::new(), |mut text, c| {
            if special.contains(&c) {
                text.push('\\');
            }
            text.push(c);
            text
        })
    };
    match shell {
        // It is within double quotes.
        "bash" => Some(escaped(program, &['\\', '"', '$', '`'])),
        "zsh" => Some(quote(program).into_owned()),
        // It is within double quotes, and what they hold is read once more.
        "fish" => {
            let word = format!("'{}'", escaped(program, &['\\', '\'']));
            Some(escaped(&word, &['\\', '"', '$']))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_script_that_calls_back() {
        for shell in Shell::value_variants() {
            let name = shell.to_possible_value().unwrap().get_name().to_owned();
            let script = script(&name, "/usr/bin/homing").unwrap();
            assert!(script.contains(VARIABLE) && script.contains("/usr/bin/homing"), "{name}");
            assert!(!script.contains(PROGRAM), "{name}");
        }
    }
    #[test]
    fn the_place_for_the_quoting_is_found_in_the_script_of_bash() {
        assert_eq!(script("bash", "/usr/bin/homing").unwrap().matches(QUOTED).count(), 1);
    }
}
