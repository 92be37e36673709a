//! The MCP server is in `opencode.json`; a plugin of homing does what hooks do elsewhere.

use serde_json::json;

use crate::install::{File, Installation, NAME, Scope, Site, skill};

pub(super) fn install(site: &Site<'_>) -> Installation {
    let root = match site.scope {
        Scope::Project => site.here.join(".opencode"),
        Scope::User => site.chosen("OPENCODE_CONFIG_DIR").unwrap_or_else(|| {
            site.chosen("XDG_CONFIG_HOME").unwrap_or_else(|| site.here.join(".config")).join("opencode")
        }),
    };
    let folder = if site.scope == Scope::Project { site.here } else { &root };
    let there = ["opencode.jsonc", "opencode.json"].map(|name| folder.join(name));
    let path = there.into_iter().find(|path| path.exists()).unwrap_or_else(|| folder.join("opencode.json"));
    let server = json!({ "type": "local", "command": site.with(&["mcp"]), "enabled": true });
    Installation {
        files: vec![
            File::Json { path, members: vec![(&["mcp", NAME], server)], hooks: Vec::new() },
            File::Own { path: root.join("plugin").join("homing.js"), content: include_str!("plugin.js") },
            skill(&root, include_str!("skill.md")),
        ],
        note: "opencode loads the plugin when it starts: restart it, and results start turns in its sessions.",
    }
}
