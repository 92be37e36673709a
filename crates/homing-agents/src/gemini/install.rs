//! The MCP server and the hooks are in `settings.json`.

use serde_json::json;

use crate::install::{File, HOOK_SECONDS, Installation, NAME, Site, group, skill};

pub(super) fn install(site: &Site<'_>) -> Installation {
    let chosen = site.chosen("GEMINI_CLI_HOME");
    let root = chosen.as_deref().unwrap_or(site.here).join(".gemini");
    let (command, args) = site.server();
    let handler = |event: &str| {
        let millis = HOOK_SECONDS * 1_000;
        let command = site.hook("gemini", event);
        group(&[json!({ "name": NAME, "type": "command", "command": command, "timeout": millis })])
    };
    let events = ["SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"];
    let settings = File::Json {
        path: root.join("settings.json"),
        members: vec![(&["mcpServers", NAME], json!({ "command": command, "args": args }))],
        hooks: events.map(|event| (event, handler(event))).to_vec(),
    };
    Installation {
        files: vec![settings, skill(&root, include_str!("skill.md"))],
        note: "Gemini CLI is told at the end of a turn and when a session goes on; nothing wakes it while it is idle.",
    }
}
