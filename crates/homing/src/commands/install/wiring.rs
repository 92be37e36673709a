//! What makes an agent know of homing: which files it reads, and what is to be in them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use homing_api::{Code, Problem};
use homing_model::Agent;
use homing_model::shell;
use serde_json::{Value, json};

use super::backup::Shelf;
use super::edit::{Block, Edit, Members, Own};
use crate::cli::context::Context;
use crate::cli::entry;
use crate::options::environment::Surroundings;

/// What homing is called in the agent's configuration.
const NAME: &str = "homing";
/// How long a hook may take, in seconds; it needs milliseconds.
const SECONDS: u64 = 10;
/// What Codex allows at the end of a session.
const CODEX_END: u64 = 3;
/// How long a waiter may wait for a result, in seconds: the longest that Claude Code was seen to take.
const WAITER: u64 = 86_400;
/// How long Codex waits for a tool: a wait for a task is one.
const TOOL: u64 = 600;

const PLUGIN: &str = include_str!("../../../assets/opencode.js");

/// All that is done for one agent.
#[derive(Debug)]
pub(super) struct Wiring {
    /// In the order in which it is done.
    pub(super) edits: Vec<Edit>,
    /// What the user has to know.
    pub(super) note: &'static str,
    /// Where it is kept how the files were.
    pub(super) shelf: Shelf,
    /// The folder of the project that it is for, if it is for one.
    project: Option<PathBuf>,
}

impl Wiring {
    /// How many folders above a file homing may have made where nothing tells any more: in a project all of them, since an empty folder is
    /// nobody's there; those of an agent's user stay.
    pub(super) fn folders_of(&self, path: &Path) -> usize {
        let inside = self.project.as_deref().and_then(|project| path.strip_prefix(project).ok());
        inside.map_or(0, |inside| inside.components().count().saturating_sub(1))
    }

    /// The link by which a file of a project may be anywhere else, if there is one on the way to it.
    pub(super) fn link_out(&self, path: &Path) -> Option<PathBuf> {
        let project = self.project.as_deref()?;
        let mut inside = path.ancestors().take_while(|part| *part != project);
        inside.find(|part| part.is_symlink()).map(Path::to_owned)
    }
}

/// For whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// For the user, everywhere.
    User,
    /// For everybody in this folder.
    Project,
}

/// How the agent calls homing: the program and its first arguments.
struct Program(Vec<String>);

impl Program {
    /// For the user the place where a shell finds this program, as it is written there: an upgrade replaces what is there, and an agent that was
    /// not started from a shell finds it too. For a project the name alone: others have it elsewhere.
    fn find(scope: Scope, context: &Context) -> Result<Self, Problem> {
        if scope == Scope::Project {
            return Ok(Self(vec![NAME.to_owned()]));
        }
        let own = entry::executable()?;
        let path = context.surroundings.get("PATH").unwrap_or_default();
        let same = |found: &PathBuf| {
            let real = |path: &Path| std::fs::canonicalize(path).ok();
            found.is_absolute() && real(found).is_some_and(|found| Some(found) == real(&own))
        };
        let found = std::env::split_paths(path).map(|folder| folder.join(NAME)).find(same);
        let place = found.unwrap_or(own);
        // What was written is known by that name: under another, nothing would ever be found again.
        if place.file_name().is_none_or(|name| name != NAME) {
            let detail =
                format!("this program is called {}, and agents are to call `{NAME}`", place.display());
            let advice =
                format!("Put a link to it, or the program itself, on your PATH under the name `{NAME}`.");
            return Err(Problem { advice, ..Problem::new(Code::AgentConfig, detail) });
        }
        let mut words = vec![text(&place)?];
        // Not every agent hands the variable on to what it starts.
        let chosen = context.home_flag.is_some() || context.surroundings.get("HOMING_HOME").is_some();
        if chosen {
            words.extend(["--home".to_owned(), text(&context.home)?]);
        }
        Ok(Self(words))
    }

    fn with(&self, more: &[&str]) -> Vec<String> {
        self.0.iter().cloned().chain(more.iter().map(|word| (*word).to_owned())).collect()
    }

    /// A hook's command line.
    fn hook(&self, agent: Agent, event: &str) -> String {
        let words = self.with(&["hook", agent.as_str(), event]);
        shell::join(words.iter().map(|word| Cow::Borrowed(word.as_str())))
    }

    /// Program and arguments of the MCP server.
    fn server(&self) -> (String, Vec<String>) {
        let mut words = self.with(&["mcp"]).into_iter();
        (words.next().unwrap_or_default(), words.collect())
    }
}

fn text(path: &Path) -> Result<String, Problem> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Problem::new(Code::AgentConfig, format!("the path {} cannot be written as text", path.display()))
    })
}

/// The folder that a variable names, if it does.
fn named(surroundings: &Surroundings, name: &str) -> Option<PathBuf> {
    surroundings.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// What is to be done for an agent.
pub(super) fn wiring(agent: Agent, scope: Scope, context: &Context) -> Result<Wiring, Problem> {
    let program = Program::find(scope, context)?;
    let here = match scope {
        Scope::Project => std::env::current_dir().map_err(|error| {
            Problem::new(Code::AgentFiles, format!("the working directory cannot be found: {error}"))
        })?,
        Scope::User => named(&context.surroundings, "HOME").ok_or_else(|| {
            let mut problem =
                Problem::new(Code::AgentFiles, "HOME is not set, so the agent's files cannot be found");
            problem.advice = "Set HOME, or use `--project` in the folder that it is for.".to_owned();
            problem
        })?,
    };
    let (edits, note) = match agent {
        Agent::Claude => claude(&program, scope, &here, &context.surroundings),
        Agent::Codex => codex(&program, scope, &here, &context.surroundings),
        Agent::Gemini => gemini(&program, scope, &here, &context.surroundings),
        Agent::Opencode => opencode(&program, scope, &here, &context.surroundings),
    };
    let shelf = match scope {
        Scope::User => Shelf::Beside,
        Scope::Project => Shelf::Home(context.home.clone()),
    };
    let project = (scope == Scope::Project).then_some(here);
    Ok(Wiring { edits, note, shelf, project })
}

/// What is done for an agent, and what the user has to know.
type Plan = (Vec<Edit>, &'static str);

/// The agent's skill, in the folder of skills below this one. What each agent is taught is what works in it.
fn skill(agent: Agent, folder: &Path) -> Edit {
    let content = match agent {
        Agent::Claude => include_str!("../../../assets/skills/claude.md"),
        Agent::Codex => include_str!("../../../assets/skills/codex.md"),
        Agent::Gemini => include_str!("../../../assets/skills/gemini.md"),
        Agent::Opencode => include_str!("../../../assets/skills/opencode.md"),
    };
    Edit::Own(Own { path: folder.join("skills").join(NAME).join("SKILL.md"), content })
}

/// A group of hooks with one command.
fn group(handlers: &[Value]) -> Value {
    json!({ "hooks": handlers })
}

fn claude(program: &Program, scope: Scope, here: &Path, surroundings: &Surroundings) -> Plan {
    let chosen = named(surroundings, "CLAUDE_CONFIG_DIR").filter(|_| scope == Scope::User);
    let servers = match (scope, &chosen) {
        (Scope::Project, _) => here.join(".mcp.json"),
        (Scope::User, Some(folder)) => folder.join(".claude.json"),
        (Scope::User, None) => here.join(".claude.json"),
    };
    let root = chosen.unwrap_or_else(|| here.join(".claude"));
    let (command, args) = program.server();
    let handler = |event: &str| json!({ "type": "command", "command": program.hook(Agent::Claude, event), "timeout": SECONDS });
    let waiter = json!({
        "type": "command", "command": program.hook(Agent::Claude, "rewake"), "asyncRewake": true, "timeout": WAITER,
    });
    let hooks = vec![
        ("SessionStart", group(&[handler("SessionStart")])),
        ("UserPromptSubmit", group(&[handler("UserPromptSubmit")])),
        ("Stop", group(&[handler("Stop"), waiter])),
        ("SessionEnd", group(&[handler("SessionEnd")])),
    ];
    let server = json!({ "type": "stdio", "command": command, "args": args, "env": {} });
    let edits = vec![
        Edit::Members(Members {
            path: servers,
            agent: Agent::Claude,
            members: vec![(&["mcpServers", NAME], server)],
            hooks: Vec::new(),
        }),
        Edit::Members(Members {
            path: root.join("settings.json"),
            agent: Agent::Claude,
            members: Vec::new(),
            hooks,
        }),
        skill(Agent::Claude, &root),
    ];
    (edits, "Sessions of Claude Code that run now know of it after a restart (`claude --continue`).")
}

fn codex(program: &Program, scope: Scope, here: &Path, surroundings: &Surroundings) -> Plan {
    let chosen = named(surroundings, "CODEX_HOME").filter(|_| scope == Scope::User);
    let root = chosen.unwrap_or_else(|| here.join(".codex"));
    let (command, args) = program.server();
    let handler = |event: &str, seconds: u64| {
        group(&[
            json!({ "type": "command", "command": program.hook(Agent::Codex, event), "timeout": seconds }),
        ])
    };
    let hooks = vec![
        ("SessionStart", handler("SessionStart", SECONDS)),
        ("UserPromptSubmit", handler("UserPromptSubmit", SECONDS)),
        ("Stop", handler("Stop", SECONDS)),
        ("SessionEnd", handler("SessionEnd", CODEX_END)),
    ];
    // Texts and lists of texts are written alike in JSON and TOML, as far as paths go.
    let block = format!(
        "[mcp_servers.{NAME}]\ncommand = {}\nargs = {}\ntool_timeout_sec = {TOOL}\n",
        Value::from(command),
        Value::from(args)
    );
    let skills = if scope == Scope::Project { here.join(".agents") } else { root.clone() };
    let edits = vec![
        Edit::Block(Block { path: root.join("config.toml"), table: &["mcp_servers", NAME], block }),
        Edit::Members(Members {
            path: root.join("hooks.json"),
            agent: Agent::Codex,
            members: Vec::new(),
            hooks,
        }),
        skill(Agent::Codex, &skills),
    ];
    let note = "Codex asks once whether it may run new hooks (\"Hooks need review\", or `/hooks`): trust them, or it leaves them out.";
    (edits, note)
}

fn gemini(program: &Program, scope: Scope, here: &Path, surroundings: &Surroundings) -> Plan {
    let chosen = named(surroundings, "GEMINI_CLI_HOME").filter(|_| scope == Scope::User);
    let root = chosen.as_deref().unwrap_or(here).join(".gemini");
    let (command, args) = program.server();
    let handler = |event: &str| {
        let millis = SECONDS * 1_000;
        let command = program.hook(Agent::Gemini, event);
        group(&[json!({ "name": NAME, "type": "command", "command": command, "timeout": millis })])
    };
    let events = ["SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"];
    let edits = vec![
        Edit::Members(Members {
            path: root.join("settings.json"),
            agent: Agent::Gemini,
            members: vec![(&["mcpServers", NAME], json!({ "command": command, "args": args }))],
            hooks: events.map(|event| (event, handler(event))).to_vec(),
        }),
        skill(Agent::Gemini, &root),
    ];
    let note = "Gemini CLI is told at the end of a turn and when a session goes on; nothing wakes it while it is idle.";
    (edits, note)
}

fn opencode(program: &Program, scope: Scope, here: &Path, surroundings: &Surroundings) -> Plan {
    let root = match scope {
        Scope::Project => here.join(".opencode"),
        Scope::User => named(surroundings, "OPENCODE_CONFIG_DIR").unwrap_or_else(|| {
            named(surroundings, "XDG_CONFIG_HOME").unwrap_or_else(|| here.join(".config")).join("opencode")
        }),
    };
    let folder = if scope == Scope::Project { here } else { &root };
    let there = ["opencode.jsonc", "opencode.json"].map(|name| folder.join(name));
    let path = there.into_iter().find(|path| path.exists()).unwrap_or_else(|| folder.join("opencode.json"));
    let server = json!({ "type": "local", "command": program.with(&["mcp"]), "enabled": true });
    let edits = vec![
        Edit::Members(Members {
            path,
            agent: Agent::Opencode,
            members: vec![(&["mcp", NAME], server)],
            hooks: Vec::new(),
        }),
        Edit::Own(Own { path: root.join("plugin").join("homing.js"), content: PLUGIN }),
        skill(Agent::Opencode, &root),
    ];
    (edits, "opencode loads the plugin when it starts: restart it, and results start turns in its sessions.")
}
