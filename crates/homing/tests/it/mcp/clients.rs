//! What others run: the official conformance suite, the Inspector and the Python SDK, against the real server.
//!
//! `cargo xtask test` installs them. Where they are missing the tests say so and skip, except under CI, where they fail.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use homing_testkit::{Home, left_out};
use serde_json::{Value, json};

/// Where `cargo xtask test` puts them: beside what cargo builds.
fn installed(what: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
    let path = target.join("verifiers").join(what);
    if path.exists() {
        return Some(path);
    }
    let ci = std::env::vars_os().any(|(name, value)| name == "CI" && !value.is_empty());
    assert!(!ci, "{} is not there; `cargo xtask test` installs it", path.display());
    left_out(&format!("{} is not there; `cargo xtask test` installs it", path.display()));
    None
}

/// homing's handler with the suite's fixtures, on a port of its own.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn new(home: &Home) -> Self {
        let _ = home.daemon_pid();
        let program = home.program().parent().expect("a folder").join("examples/conformance");
        let mut command = Command::new(program);
        command.arg(home.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the example runs");
        let mut url = String::new();
        let output = child.stdout.take().expect("its output");
        let _ = BufReader::new(output).read_line(&mut url).expect("an address");
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// A program of Node, of the Node that was installed with it.
fn node(folder: &Path, script: &str) -> Command {
    let modules = folder.join("node_modules");
    let mut command = Command::new(modules.join("node/bin/node"));
    command.arg(modules.join(script)).stdin(Stdio::null());
    command
}

/// Scenarios about what homing does not offer and does not declare, by the reason.
const NOT_APPLICABLE: &[(&str, &[&str])] = &[
    ("no logging, which the protocol gave up", &["logging-set-level", "tools-call-with-logging"]),
    (
        "nothing is asked of a client of an earlier protocol: it has no session",
        &[
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
    ),
    ("no subscriptions", &["resources-subscribe", "resources-unsubscribe"]),
];

/// Passed and failed checks of each scenario.
fn suite(folder: &Path, server: &Server, revision: &str) -> BTreeMap<String, (u32, u32)> {
    let mut command = node(folder, "@modelcontextprotocol/conformance/dist/index.js");
    let output = command
        .args(["server", "--url", &server.url, "--requirements", revision])
        .output()
        .expect("node runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, summary) = text.split_once("=== SUMMARY ===").unwrap_or_else(|| panic!("no summary: {text}"));
    let lines = summary.lines().filter_map(|line| {
        let (name, counts) = line.trim_start_matches(['✓', '✗', '~', ' ']).split_once(": ")?;
        let mut numbers = counts.split(' ').filter_map(|word| word.parse().ok());
        Some((name.to_owned(), (numbers.next()?, numbers.next()?)))
    });
    lines.filter(|(name, _)| name != "Total").collect()
}

#[test]
fn the_official_conformance_suite_passes() {
    let Some(folder) = installed("mcp-node") else { return };
    let home = crate::home();
    let server = Server::new(&home);
    let excused: Vec<&str> = NOT_APPLICABLE.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let mut passed = 0;
    for (revision, least) in [("2026-07-28", 47), ("2025-11-25", 20)] {
        let results = suite(&folder, &server, revision);
        let applicable = results.iter().filter(|(name, _)| !excused.contains(&name.as_str()));
        let failing: Vec<_> = applicable.clone().filter(|(_, (_, failed))| *failed > 0).collect();
        assert!(failing.is_empty(), "{revision}: {failing:?}");
        let working = applicable.filter(|(_, (passed, _))| *passed > 0).count();
        assert!(working >= least, "{revision}: only {working} scenarios ran: {results:?}");
        passed +=
            results.iter().filter(|(name, (passed, _))| name.starts_with("tasks-") && *passed > 0).count();
    }
    assert_eq!(passed, 9, "every scenario about tasks that the suite itself does not skip");
}

/// What the Inspector prints of a call.
fn inspect(folder: &Path, home: &Home, target: &[&str], era: &str, method: &[&str]) -> Value {
    let mut command = node(folder, "@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    command.env("HOMING_HOME", home.path()).env("HOME", home.scratch()).current_dir(home.scratch());
    command.arg("--cli").args(target).args(["--protocol-era", era, "--format", "json"]).args(method);
    let output = command.output().expect("node runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = text.find('{').and_then(|at| text.get(at..)).unwrap_or_default();
    let answer: Value = serde_json::from_str(json.trim())
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    answer.get("result").cloned().unwrap_or(answer)
}

#[test]
fn the_inspector_lists_runs_waits_and_follows_a_task_to_its_end() {
    let Some(folder) = installed("mcp-node") else { return };
    let home = crate::home();
    let url = home.cli(["mcp", "--http"]).ok().text();
    assert_eq!(home.cli(["mcp", "--http", "--json"]).ok().json()["url"], url.as_str(), "it is there already");
    let token = format!("Authorization: Bearer {}", home.cli(["token", "show"]).ok().text());
    let program = home.program().to_str().expect("text").to_owned();
    let stdio: &[&str] = &[&program, "mcp"];
    let http: &[&str] = &[&url, "--transport", "http", "--header", &token];
    std::thread::scope(|scope| {
        for (target, era) in [(stdio, "legacy"), (stdio, "modern"), (http, "legacy"), (http, "modern")] {
            let (folder, home) = (&folder, &home);
            scope.spawn(move || inspect_all(folder, home, target, era));
        }
    });
}

fn inspect_all(folder: &Path, home: &Home, target: &[&str], era: &str) {
    let call = |tool: &str, arguments: &Value| {
        let arguments = arguments.to_string();
        let method = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments];
        inspect(folder, home, target, era, &method)
    };
    let listed = inspect(folder, home, target, era, &["--method", "tools/list"]);
    let names: Vec<_> = listed["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("run")) && names.contains(&&json!("inbox")), "{era}: {names:?}");
    let begun = call("run", &json!({ "command": "sleep 0.2; echo over", "background": true }));
    let id = begun["structuredContent"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{era}: {begun}"));
    let waited = call("wait", &json!({ "ids": [id] }));
    assert_eq!(waited["structuredContent"]["tasks"][0]["output"]["text"], "over\n", "{era}: {waited}");
    // To a client that has tasks this is one, which it polls until it has the result.
    let told = call("run", &json!({ "command": "sleep 1; echo done", "notify_on_complete": true }));
    assert_eq!(told["structuredContent"]["output"]["text"], "done\n", "{era}: {told}");
}

/// Lists, runs, waits and reads, over stdio; checks what comes against the schemas, as the SDK does by itself.
const PYTHON: &str = r#"
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(program, home):
    server = StdioServerParameters(command=program, args=["mcp"], env={"HOMING_HOME": home, "PATH": "/usr/bin:/bin"})
    async with stdio_client(server) as (reader, writer):
        async with ClientSession(reader, writer) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            async def call(name, **arguments):
                result = await session.call_tool(name, arguments)
                return result.structured_content, result.is_error
            ran, _ = await call("run", command="echo hello")
            failed, is_error = await call("run", command="exit 3")
            begun, _ = await call("run", command="sleep 0.2; echo over", background=True, notify_on_complete=True)
            id = begun["task"]["id"]
            waited, _ = await call("wait", ids=[id])
            listed, _ = await call("list")
            shown, _ = await call("list", id=id)
            printed, _ = await call("output", id=id)
            found, _ = await call("output", id=id, grep="over")
            stopped, _ = await call("stop", id=id)
            inbox, _ = await call("inbox")
            reading, _ = await call("run", command="cat", stdin=True, background=True)
            written, _ = await call("input", id=reading["task"]["id"], text="x", eof=True)
            uri = f"homing://tasks/{id}/output"
            resource = await session.read_resource(uri)
            print(json.dumps({
                "names": names, "hello": ran["output"]["text"], "code": failed["task"]["exit_code"], "is_error": is_error,
                "waited": waited["tasks"][0]["output"]["text"], "listed": len(listed["tasks"]), "shown": shown["tasks"][0]["id"] == id,
                "printed": printed["output"]["text"], "found": found["matches"][0]["line"], "stopped": stopped["stopping"],
                "inbox": len(inbox["notices"]), "written": written["written"], "resource": "over" in resource.contents[0].text,
            }))

asyncio.run(main(*sys.argv[1:]))
"#;

#[test]
fn the_python_sdk_lists_runs_waits_and_finds_every_result_as_its_schema_says() {
    let Some(folder) = installed("mcp-python") else { return };
    let home = crate::home();
    let mut command = Command::new(folder.join("bin/python"));
    command.args(["-c", PYTHON]).arg(home.program()).arg(home.path()).stdin(Stdio::null());
    let output = command.output().expect("python runs");
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(said["names"], json!(["run", "ask", "list", "output", "wait", "stop", "input", "inbox"]));
    let expected = json!({
        "names": said["names"], "hello": "hello\n", "code": 3, "is_error": true, "waited": "over\n", "listed": 3, "shown": true,
        "printed": "over\n", "found": "over", "stopped": false, "inbox": 0, "written": 1, "resource": true,
    });
    assert_eq!(said, expected);
}
