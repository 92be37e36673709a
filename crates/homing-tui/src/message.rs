//! What a panel is told, and what it wants done.

use homing_model::Timestamp;
use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use crate::detail::Detail;
use crate::row::Row;
use crate::snapshot::{Link, Snapshot};

/// Where a piece of output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stream {
    /// Its standard output, or its terminal.
    #[default]
    Stdout,
    /// Its standard error.
    Stderr,
}

/// Some output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Piece {
    /// Bytes that are missing before it.
    pub gap: u64,
    /// Where it came from.
    pub stream: Stream,
    /// The bytes, cut anywhere.
    pub bytes: Vec<u8>,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Message {
    /// A key was pressed.
    Key(KeyEvent),
    /// A text was pasted: it is typed where something is typed, and nothing elsewhere.
    Paste(String),
    /// The mouse was used, with coordinates of the buffer that the panel was drawn into.
    Mouse(MouseEvent),
    /// It is this late.
    Now(Timestamp),
    /// Everything anew.
    Snapshot(Box<Snapshot>),
    /// All tasks anew.
    Rows(Vec<Row>),
    /// One task, new or changed. Its last line stays if the new one is empty.
    Row(Box<Row>),
    /// A task is no longer there.
    Gone(String),
    /// The last line that a task printed.
    LastLine {
        /// Which task.
        task: String,
        /// The line.
        line: String,
    },
    /// More about a task.
    Detail(Detail),
    /// A task's output from here on replaces what is shown.
    OutputBegins {
        /// Which task.
        task: String,
    },
    /// More of it. What is of another task than the one that was begun is passed over.
    Output {
        /// Which task.
        task: String,
        /// The bytes.
        pieces: Vec<Piece>,
    },
    /// Something about a task's output that the task did not print.
    Remark {
        /// Which task.
        task: String,
        /// In words.
        text: String,
    },
    /// Whether the rest is up to date.
    Link(Link),
    /// Words for whoever looks, shown for a while.
    Say(String),
}

/// Something to be done by whoever runs the panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Leave.
    Quit,
    /// End a task.
    Stop(String),
    /// Freeze a task.
    Pause(String),
    /// Let it go on.
    Resume(String),
    /// Run the same again.
    Rerun(String),
    /// Give the terminal to a task.
    Attach(String),
    /// Take what is told of a task out of its owner's inbox.
    Acknowledge {
        /// Which task.
        task: String,
        /// Whose inbox.
        owner: String,
    },
    /// Put a text into the clipboard.
    Copy(String),
}

/// What can be done with tasks here; what cannot is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities {
    /// To end them.
    pub stop: bool,
    /// To freeze them, and to let them go on.
    pub pause: bool,
    /// To run them again.
    pub rerun: bool,
    /// To give them the terminal.
    pub attach: bool,
    /// To take them out of an inbox.
    pub acknowledge: bool,
    /// To reach the clipboard.
    pub copy: bool,
}
