//! What is said beside the bytes when somebody is attached to a task's terminal: the text frames of `GET /v1/tasks/{ref}/attach`.
//!
//! Binary frames are bytes, both ways: what the program prints, and what is typed. Each text frame is one of these as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use homing_model::{Task, TerminalSize};

use crate::problem::Problem;

/// The most bytes of one frame from a viewer.
pub const LARGEST_FRAME: usize = 64 * 1024;

/// What a viewer asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachRequest {
    /// The viewer's own terminal has this size now. The smallest of all viewers decides that of the task's.
    Resize(TerminalSize),
    /// Send the screen anew, from the model.
    Refresh(bool),
    /// Have the program draw anew, by changing the size for a moment.
    Redraw(bool),
}

/// The next binary frame is a whole screen; those after it are what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachScreen {
    /// Columns of the task's terminal.
    pub cols: u16,
    /// Rows of the task's terminal.
    pub rows: u16,
    /// Whether what follows is what the program prints, byte for byte. If not, the viewer's terminal has another size than the task's and is
    /// painted.
    pub exact: bool,
    /// Whether it is the alternate screen, as editors have it.
    pub alternate: bool,
    /// Whether the screen was made of a part of the output only: the rest is no longer kept, or too much. The program was asked to draw anew.
    pub partial: bool,
}

/// What became of what was typed, since the beginning of this connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachInput {
    /// Bytes that the terminal took.
    pub taken: u64,
    /// Bytes that were given up: the program did not read for ten seconds, and its terminal is full.
    pub dropped: u64,
}

/// What a viewer is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachEvent {
    /// A whole screen follows.
    Screen(AttachScreen),
    /// Input was taken, or was not.
    Input(AttachInput),
    /// The task has ended: the last frame.
    Ended(Box<Task>),
    /// Something went wrong.
    Problem(Box<Problem>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_are_objects_with_one_name() {
        let resize: AttachRequest = serde_json::from_str(r#"{"resize":{"cols":80,"rows":24}}"#).unwrap();
        assert_eq!(resize, AttachRequest::Resize(TerminalSize { cols: 80, rows: 24 }));
        let input = AttachEvent::Input(AttachInput { taken: 3, dropped: 0 });
        assert_eq!(serde_json::to_string(&input).unwrap(), r#"{"input":{"taken":3,"dropped":0}}"#);
    }
}
