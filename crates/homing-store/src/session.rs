//! Which process a session of an agent is in.

use homing_model::{AgentName, TaskId, Timestamp};

/// A session and the process that it is in, or was in last. A process is its pid, start time and boot: no other can be all of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Which agent.
    pub agent: AgentName,
    /// Its id for the conversation.
    pub session: String,
    /// The machine.
    pub node: String,
    /// Its boot.
    pub boot_id: String,
    /// The agent's process.
    pub pid: u32,
    /// When that was started, in the kernel's ticks.
    pub start: u64,
    /// How often in a row the end of a turn was put off.
    pub streak: u32,
    /// Since when this is known.
    pub bound_at: Timestamp,
}

impl Binding {
    /// Whether both are in the same process.
    #[must_use]
    pub fn same_process(&self, other: &Self) -> bool {
        (self.pid, self.start) == (other.pid, other.start)
            && self.boot_id == other.boot_id
            && self.node == other.node
    }
}

/// A session was seen in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// Where.
    pub binding: Binding,
    /// A process of this agent is in one session at a time: what was bound to it before is not any more.
    pub alone: bool,
    /// The process that it was in before is gone: what that was told, and nobody confirmed, is open again.
    pub gives_back: bool,
    /// The agent polls for ends that it was promised, also in its new process: those are then held for it for a while.
    pub polls: bool,
    /// The process is in no task, or in one that may do all: no agent inside a task has this session.
    pub outside: bool,
}

/// An agent inside a task names its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionClaim {
    /// The task that the agent runs in.
    pub task: TaskId,
    /// The session, as an owner.
    pub session: String,
    /// The session that the task may have had so far.
    pub replaces: Option<String>,
    /// The process inside the task that the session was seen in. One that is in another process, or was in one that is gone, is not the
    /// task's, unless an earlier task of the same owner had it.
    pub inside: Option<Binding>,
}
