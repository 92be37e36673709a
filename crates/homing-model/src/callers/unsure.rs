//! How much of an id is enough to change something by it.
//!
//! To look at a task any unique start of its id will do, with or without the `t-`: whoever sees another one than was meant looks again. What is
//! stopped, forgotten or typed into is not undone, and with few tasks a single letter is unique by chance: a slip of the finger, or a name
//! with one in it, must not be the name of a task (P8 ends what was meant, and nothing else). Who writes `t-` means an id; a whole
//! one, `@last` and a name always say what they mean.

use crate::id::{Reference, TaskId};

/// The fewest characters where the `t-` was left out: a short word may be a name with a slip in it.
const BARE: usize = 4;

/// A few characters that fit one task, and are too few to change it by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{reference}` is too little of an id to act on a task by")]
pub struct Unsure {
    /// What was given.
    reference: String,
    /// What it fits.
    pub task: TaskId,
}

/// Whether a text is so little of an id that only the name of the task could make it certain.
#[must_use]
pub fn is_little(text: &str) -> bool {
    match Reference::parse(text) {
        Reference::Id(_) | Reference::Last | Reference::PrefixOrName { prefix: None, .. } => false,
        Reference::PrefixOrName { prefix: Some(_), name } => match name.get(..2) {
            Some("t-" | "T-") => name.len() == 2,
            _ => name.len() < BARE,
        },
    }
}

/// Refuses a text that stands for this task only by being a very short start of its id.
///
/// # Errors
/// If it is too short, and not the name of the task.
pub fn certain(text: &str, task: &TaskId, name: Option<&str>) -> Result<(), Unsure> {
    if is_little(text) && name != Some(text) {
        return Err(Unsure { reference: text.to_owned(), task: task.clone() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_start_with_its_letter_or_four_characters_without_it_or_the_name() {
        let id: TaskId = "t-k3mbcdfghj".parse().unwrap();
        let enough = |text: &str, name: Option<&str>| certain(text, &id, name).is_ok();
        for text in ["t-k", "T-K", "t-k3", "t-k3mb", "k3mb", "K3MB", "t-k3mbcdfghj", "@last"] {
            assert!(enough(text, None), "{text}");
        }
        for text in ["k", "k3", "K3M"] {
            assert!(!enough(text, None) && !enough(text, Some("build")), "{text}");
            assert!(enough(text, Some(text)), "the name of the task: {text}");
        }
    }
}
