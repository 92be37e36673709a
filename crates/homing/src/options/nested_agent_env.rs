//! One agent inside another: whose session this process is in. Both have left their variables in our environment; the one that was
//! started by the other is the one whose variable the processes above us lose first. Keeps P6: never in the wrong conversation.

use std::os::unix::ffi::OsStrExt;

use homing_agents::registry::REGISTRY;
use homing_sys::process;

use crate::options::environment::Surroundings;

/// Takes the variables of outer sessions out of these, where there are several. What cannot be told stays as it is.
pub(crate) fn keep(surroundings: &mut Surroundings) {
    let entry = |variable: &'static str| {
        let value = surroundings.get(variable)?;
        Some((variable, [variable.as_bytes(), b"=", value.as_bytes()].concat()))
    };
    let variables = REGISTRY.iter().map(|agent| agent.identity().session_variable);
    let present: Vec<_> = variables.filter_map(entry).collect();
    if present.len() < 2 {
        return;
    }
    if let Some(innermost) = first_to_vanish(&present, environments()) {
        for (variable, _) in present.iter().filter(|(variable, _)| *variable != innermost) {
            surroundings.forget(variable);
        }
    }
}

/// What the processes above us were given at their start, from our parent on. One that cannot be read was given nothing that we know.
fn environments() -> impl Iterator<Item = Vec<u8>> {
    process::own_ancestors()
        .map(|above| std::fs::read(format!("/proc/{}/environ", above.pid)).unwrap_or_default())
}

/// The variable whose entry is the first that a process above us does not have, if it is one alone.
fn first_to_vanish(
    present: &[(&'static str, Vec<u8>)],
    environments: impl Iterator<Item = Vec<u8>>,
) -> Option<&'static str> {
    for environment in environments {
        let has = |entry: &[u8]| environment.split(|byte| *byte == 0).any(|one| one == entry);
        let mut gone = present.iter().filter(|(_, entry)| !has(entry)).map(|(variable, _)| *variable);
        match (gone.next(), gone.next()) {
            (None, _) => {}
            (Some(variable), None) => return Some(variable),
            (Some(_), Some(_)) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_one_is_lost_first_on_the_way_up() {
        let present = [
            ("CLAUDE_CODE_SESSION_ID", b"CLAUDE_CODE_SESSION_ID=c".to_vec()),
            ("CODEX_THREAD_ID", b"CODEX_THREAD_ID=x".to_vec()),
        ];
        let vanish = |above: &[&str]| {
            first_to_vanish(&present, above.iter().map(|text| text.replace(' ', "\0").into_bytes()))
        };
        let (claude, codex) = ("A=1 CLAUDE_CODE_SESSION_ID=c", "CODEX_THREAD_ID=x B=2");
        let both = &format!("{claude} {codex}");
        assert_eq!(vanish(&[both, claude, ""]), Some("CODEX_THREAD_ID"));
        assert_eq!(vanish(&[both, both, codex]), Some("CLAUDE_CODE_SESSION_ID"));
        assert_eq!(
            vanish(&["CLAUDE_CODE_SESSION_ID=other CODEX_THREAD_ID=x"]),
            Some("CLAUDE_CODE_SESSION_ID")
        );
        assert_eq!(vanish(&[both, ""]), None, "both at once tell nothing");
        assert_eq!(vanish(&[]), None);
    }
}
