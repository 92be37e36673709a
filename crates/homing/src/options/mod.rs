//! Options and surroundings of a command, read once and turned into requests.

pub(crate) mod capture;
pub(crate) mod common_task_options;
pub(crate) mod configuration;
pub(crate) mod environment;
pub(crate) mod home;
pub(crate) mod nested_agent_env;
pub(crate) mod program;
pub(crate) mod submission;
pub(crate) mod unknown_session;
pub(crate) mod variables;
