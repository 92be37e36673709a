//! The MCP server is a table of `config.toml`, the hooks are in `hooks.json`.

use serde_json::{Value, json};

use crate::install::{File, HOOK_SECONDS, Installation, NAME, Scope, Site, group, skill};

/// What Codex allows at the end of a session, in seconds.
const END_SECONDS: u64 = 3;
/// How long Codex waits for a tool, in seconds: a wait for a task is one.
const TOOL_SECONDS: u64 = 600;

pub(super) fn install(site: &Site<'_>) -> Installation {
    let root = site.chosen("CODEX_HOME").unwrap_or_else(|| site.here.join(super::FOLDER));
    let (command, args) = site.server();
    let handler = |event: &str, seconds: u64| {
        group(&[json!({ "type": "command", "command": site.hook("codex", event), "timeout": seconds })])
    };
    let hooks = vec![
        ("SessionStart", handler("SessionStart", HOOK_SECONDS)),
        ("UserPromptSubmit", handler("UserPromptSubmit", HOOK_SECONDS)),
        ("Stop", handler("Stop", HOOK_SECONDS)),
        ("SessionEnd", handler("SessionEnd", END_SECONDS)),
    ];
    // Texts and lists of texts are written alike in JSON and TOML, as far as paths go.
    let block = format!(
        "[mcp_servers.{NAME}]\ncommand = {}\nargs = {}\ntool_timeout_sec = {TOOL_SECONDS}\n",
        Value::from(command),
        Value::from(args)
    );
    let skills = if site.scope == Scope::Project { site.here.join(".agents") } else { root.clone() };
    Installation {
        files: vec![
            File::Toml { path: root.join("config.toml"), table: &["mcp_servers", NAME], block },
            File::Json { path: root.join("hooks.json"), members: Vec::new(), hooks },
            skill(&skills, include_str!("skill.md")),
        ],
        note: "Codex asks once whether it may run new hooks (\"Hooks need review\", or `/hooks`): trust them, or it leaves them out.",
    }
}
