//! What a hook did, and when, for whoever judges afterwards whether somebody was told twice: the soak. Kept only where the environment
//! names a file for it. A line is there before the next step is taken, so that one who is killed leaves what it had done.

use std::fs::OpenOptions;
use std::io::Write;

use homing_model::NoticeId;
use serde_json::json;

use crate::cli::context::Context;

/// Names the file.
const FILE: &str = "HOMING_HOOK_DIARY";

/// What is worth a line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// It asks for what waits.
    Asks,
    /// It was given these.
    Took,
    /// It has said these.
    Said,
    /// The daemon has it that these were told.
    Marked,
}

/// Notes a step, if anybody wants to know. That it cannot be noted is nothing to the agent.
pub(super) fn note(context: &Context, step: Step, ids: &[NoticeId]) {
    let Some(file) = context.surroundings.get(FILE) else { return };
    let step = match step {
        Step::Asks => "asks",
        Step::Took => "took",
        Step::Said => "said",
        Step::Marked => "marked",
    };
    let line = json!({ "step": step, "at_ms": context.now().as_millis(), "ids": ids });
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(file) {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}
