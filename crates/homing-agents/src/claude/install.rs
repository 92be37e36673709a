//! The MCP server is in `.claude.json` (`.mcp.json` of a project), the hooks are in `settings.json`.

use serde_json::json;

use crate::install::{File, HOOK_SECONDS, Installation, NAME, Scope, Site, group, skill};

/// How long a waiter may wait for a result, in seconds: the longest that Claude Code was seen to take.
const WAITER_SECONDS: u64 = 86_400;

pub(super) fn install(site: &Site<'_>) -> Installation {
    let chosen = site.chosen("CLAUDE_CONFIG_DIR");
    let servers = match (site.scope, &chosen) {
        (Scope::Project, _) => site.here.join(".mcp.json"),
        (Scope::User, Some(folder)) => folder.join(".claude.json"),
        (Scope::User, None) => site.here.join(".claude.json"),
    };
    let root = chosen.unwrap_or_else(|| site.here.join(".claude"));
    let (command, args) = site.server();
    let handler = |event: &str| json!({ "type": "command", "command": site.hook("claude", event), "timeout": HOOK_SECONDS });
    let waiter = json!({
        "type": "command", "command": site.hook("claude", "rewake"), "asyncRewake": true, "timeout": WAITER_SECONDS,
    });
    let hooks = vec![
        ("SessionStart", group(&[handler("SessionStart")])),
        ("UserPromptSubmit", group(&[handler("UserPromptSubmit")])),
        ("Stop", group(&[handler("Stop"), waiter])),
        ("SessionEnd", group(&[handler("SessionEnd")])),
    ];
    let server = json!({ "type": "stdio", "command": command, "args": args, "env": {} });
    let members = vec![(&["mcpServers", NAME][..], server)];
    Installation {
        files: vec![
            File::Json { path: servers, members, hooks: Vec::new() },
            File::Json { path: root.join("settings.json"), members: Vec::new(), hooks },
            skill(&root, include_str!("skill.md")),
        ],
        note: "Sessions of Claude Code that run now know of it after a restart (`claude --continue`).",
    }
}
