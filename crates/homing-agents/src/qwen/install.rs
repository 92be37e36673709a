//! The MCP server and the hooks are in `settings.json`.

use serde_json::json;

use crate::install::{File, HOOK_SECONDS, Installation, NAME, Site, group, skill};

pub(super) fn install(site: &Site<'_>) -> Installation {
    let root = site.chosen("QWEN_HOME").unwrap_or_else(|| site.here.join(super::FOLDER));
    let (command, args) = site.server();
    let handler = |event: &str| {
        let command = site.hook("qwen", event);
        group(&[json!({ "name": NAME, "type": "command", "command": command, "timeout": HOOK_SECONDS })])
    };
    let events = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"];
    let settings = File::Json {
        path: root.join("settings.json"),
        members: vec![(&["mcpServers", NAME], json!({ "command": command, "args": args }))],
        hooks: events.map(|event| (event, handler(event))).to_vec(),
    };
    Installation {
        files: vec![settings, skill(&root, include_str!("skill.md"))],
        note: "Sessions of Qwen Code that run now know of it after a restart (`qwen --continue`).",
    }
}
