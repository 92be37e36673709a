//! Agents that are made to know of homing, and to forget it: their files hold ours beside everything else, and are then as they were.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use homing_testkit::{Home, Output, copy_program};
use serde_json::Value;

const AGENTS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "qwen"];

/// A user's own folder, beside the home.
fn user(home: &Home) -> PathBuf {
    let folder = home.scratch().join("user");
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn install(home: &Home, words: &[&str]) -> Output {
    install_in(home, &user(home), words)
}

fn install_in(home: &Home, folder: &Path, words: &[&str]) -> Output {
    let mut command = home.command();
    // As for most people: the home is where nobody has to name it.
    command.env_remove("HOMING_HOME").env("HOME", user(home)).current_dir(folder);
    for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "GEMINI_CLI_HOME"] {
        command.env_remove(name);
    }
    let output = command.arg("install").args(words).output().expect("it runs");
    Output {
        code: output.status.code().expect("a code"),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Everything below a folder: files with what they say and who may read them, links with where they lead, folders.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
        let says = if kind.is_symlink() {
            format!("-> {}", fs::read_link(&path).expect("a link").display())
        } else if kind.is_dir() {
            found.extend(tree(&path));
            "folder".to_owned()
        } else {
            let mode = entry.metadata().expect("a mode").permissions().mode() & 0o777;
            format!("{mode:o} {}", fs::read_to_string(&path).expect("a text"))
        };
        found.insert(path, says);
    }
    found
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON")
}

#[test]
fn a_program_of_another_name_says_what_to_do_and_writes_nothing() {
    let home = super::home();
    let user = user(&home);
    let other = home.scratch().join("homing-0.1");
    copy_program(home.program(), &other);
    for agent in AGENTS {
        let mut command = std::process::Command::new(&other);
        command.env_clear().env("HOME", &user).env("HOMING_HOME", home.path()).args(["install", agent]);
        let refused = Home::finish(command.env("PATH", "/usr/bin:/bin").current_dir(&user));
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("HM0066") && refused.stderr.contains("under the name `homing`"),
            "{}",
            refused.stderr
        );
        assert!(tree(&user).is_empty(), "{agent}");
    }
}

#[test]
fn what_was_not_there_is_made_and_is_gone_afterwards() {
    let home = super::home();
    let user = user(&home);
    for agent in AGENTS {
        let shown = install(&home, &[agent, "--dry-run"]).ok();
        assert!(tree(&user).is_empty(), "{agent}: {:?}", tree(&user));
        let done = install(&home, &[agent]).ok();
        let announced = shown
            .text()
            .lines()
            .filter_map(|line| line.strip_suffix(" (create)"))
            .fold(String::new(), |text, path| text + "wrote " + path + "\n");
        assert_eq!(
            done.text().trim_end(),
            announced.trim_end(),
            "{agent}: what was announced is what was done"
        );
        let installed = tree(&user);
        let again = install(&home, &[agent]).ok();
        assert_eq!((again.text().as_str(), tree(&user)), ("", installed), "{agent}: twice is once");
        assert!(again.stderr.contains("already"), "{}", again.stderr);
        let gone = install(&home, &[agent, "--uninstall"]).ok();
        assert!(gone.text().lines().all(|line| line.starts_with("removed /")), "{}", gone.text());
        assert!(tree(&user).is_empty(), "{agent}: {:?}", tree(&user));
        let _ = install(&home, &[agent, "--uninstall"]).ok();
    }
}

#[test]
fn files_with_comments_odd_blanks_links_and_modes_are_as_they_were() {
    let home = super::home();
    let user = user(&home);
    put(
        &user.join(".claude.json"),
        "{\"numStartups\":7,\"mcpServers\":{},\"projects\":{\"/x\":{\"a\":[ ]}}}",
    );
    put(
        &user.join("dotfiles/claude.json"),
        "{ // mine\n\t\"hooks\" : { \"Stop\": [\n\n] , \"Other\":[]},\r\n\t\"env\":{\"A_TOKEN\": \"hunter2\"}, }",
    );
    fs::set_permissions(user.join("dotfiles/claude.json"), fs::Permissions::from_mode(0o640))
        .expect("a mode");
    fs::create_dir_all(user.join(".claude/skills")).expect("a folder");
    symlink("../dotfiles/claude.json", user.join(".claude/settings.json")).expect("a link");
    put(
        &user.join(".codex/config.toml"),
        "# mine\nmodel = \"o\"   # why not\n\n[mcp_servers.other]\ncommand = 'x'",
    );
    put(&user.join(".codex/hooks.json"), "{}");
    put(&user.join(".gemini/settings.json"), "");
    put(&user.join(".config/opencode/opencode.jsonc"), "// only a comment\n");
    let before = tree(&user);
    for agent in AGENTS {
        let shown = install(&home, &[agent, "--dry-run"]).ok();
        assert!(!shown.text().contains("hunter2"), "{}", shown.text());
        let _ = install(&home, &[agent]).ok();
        assert_ne!(tree(&user), before, "{agent}");
    }
    let servers = json(&user.join(".claude.json"));
    assert_eq!(
        (&servers["numStartups"], &servers["mcpServers"]["homing"]["args"]),
        (&7.into(), &serde_json::json!(["mcp"]))
    );
    let settings = fs::read_to_string(user.join("dotfiles/claude.json")).expect("there");
    assert!(settings.starts_with("{ // mine\n\t\"hooks\"") && settings.contains("asyncRewake"), "{settings}");
    let config: toml::Table =
        toml::from_str(&fs::read_to_string(user.join(".codex/config.toml")).expect("there")).expect("TOML");
    assert_eq!(config["mcp_servers"]["other"]["command"].as_str(), Some("x"));
    assert!(
        config["mcp_servers"]["homing"]["command"].as_str().is_some_and(|path| path.ends_with("/homing"))
    );
    for agent in AGENTS {
        let gone = install(&home, &[agent, "--uninstall"]).ok();
        assert!(gone.stderr.contains("is gone; its files are as they were"), "{}", gone.stderr);
    }
    assert_eq!(tree(&user), before);
}

#[test]
fn what_others_wrote_meanwhile_stays_and_only_ours_goes() {
    let home = super::home();
    let path = user(&home).join(".claude/settings.json");
    put(&path, "{\n  \"model\": \"x\" // mine\n}\n");
    let _ = install(&home, &["claude"]).ok();
    let text = fs::read_to_string(&path).expect("there");
    fs::write(&path, text.replace("\"model\": \"x\"", "\"model\": \"y\"")).expect("written");
    let gone = install(&home, &["claude", "--uninstall"]).ok();
    assert!(gone.stderr.ends_with("what homing wrote for Claude Code is gone\n"), "{}", gone.stderr);
    assert_eq!(fs::read_to_string(&path).expect("there"), "{\n  \"model\": \"y\" // mine\n}\n");
    assert!(!path.with_file_name("settings.json.homing-backup").exists());
}

#[test]
fn what_changes_in_a_file_of_one_line_is_shown_without_its_secrets() {
    let home = super::home();
    let filler = "x".repeat(500);
    put(
        &user(&home).join(".claude/settings.json"),
        &format!("{{\"env\":{{\"A_TOKEN\":\"hunter2\",\"B\":\"{filler}\"}}}}"),
    );
    let shown = install(&home, &["claude", "--dry-run"]).ok().text();
    assert!(shown.contains("homing hook claude SessionEnd") && shown.contains("asyncRewake"), "{shown}");
    assert!(!shown.contains("hunter2") && !shown.contains(&filler), "{shown}");
}

#[test]
fn without_a_backup_nobody_says_that_a_file_is_as_it_was() {
    let home = super::home();
    let path = user(&home).join(".codex/config.toml");
    put(&path, "a = 1\n");
    let _ = install(&home, &["codex"]).ok();
    fs::remove_file(path.with_file_name("config.toml.homing-backup")).expect("removed");
    let gone = install(&home, &["codex", "--uninstall"]).ok();
    assert!(gone.stderr.ends_with("what homing wrote for Codex is gone\n"), "{}", gone.stderr);
    assert_eq!(fs::read_to_string(&path).expect("there"), "a = 1\n");
}

#[test]
fn what_cannot_be_parsed_or_is_somebody_elses_stops_everything() {
    let home = super::home();
    let user = user(&home);
    for (agent, path, text, says) in [
        ("claude", ".claude/settings.json", "{\n  \"a\": 1\n  \"b\": 2 }", "line 3, column 3"),
        ("claude", ".claude/settings.json", "{\"hooks\": []}", "`hooks` is not an object"),
        ("claude", ".claude/skills/homing/SKILL.md", "my own", "homing did not write it"),
        ("codex", ".codex/config.toml", "a = ", "config.toml"),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.homing]\ncommand = \"mine\"\n",
            "homing did not write it",
        ),
        (
            "claude",
            ".claude.json",
            "{\"mcpServers\":{\"homing\":{\"command\":\"mine\",\"args\":[\"--x\"]}}}",
            "`mcpServers.homing` is there already, and homing did not write it",
        ),
        (
            "claude",
            ".claude.json",
            "{\"mcpServers\":{\"homing\":{\"type\":\"http\",\"url\":\"http://x/homing\"}}}",
            "homing did not write it",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "{\"mcpServers\":{\"homing\":{\"command\":\"homing\",\"args\":[\"serve\"]}}}",
            "homing did not write it",
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            "{\"mcp\":{\"homing\":{\"command\":[\"mine\",\"mcp\"]}}}",
            "`mcp.homing` is there already",
        ),
        ("gemini", ".gemini/settings.json", "nonsense", "line 1, column 1"),
        ("opencode", ".config/opencode/opencode.json", "[]", "is not an object"),
    ] {
        put(&user.join(path), text);
        let before = tree(&user);
        let refused = install(&home, &[agent]);
        assert_eq!(refused.code, 1, "{path}: {}", refused.stderr);
        assert!(refused.stderr.contains(says) && refused.stderr.contains("HM0066"), "{}", refused.stderr);
        assert_eq!(tree(&user), before, "{path}");
        let _ = install(&home, &[agent, "--uninstall"]);
        assert_eq!(tree(&user), before, "{path}: nor is it taken out");
        fs::remove_file(user.join(path)).expect("removed");
    }
}

#[test]
fn a_server_that_calls_homing_already_stays_as_it_is() {
    let home = super::home();
    let user = user(&home);
    for (agent, path, text) in [
        // As `claude mcp add homing -- homing mcp` writes it.
        (
            "claude",
            ".claude.json",
            r#"{"mcpServers":{"homing":{"type":"stdio","command":"homing","args":["mcp"],"env":{}}}}"#,
        ),
        (
            "gemini",
            ".gemini/settings.json",
            r#"{"mcpServers":{"homing":{"args":["--home","/h","mcp"],"command":"/opt/homing"}}}"#,
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            r#"{"mcp":{"homing":{"command":["homing","mcp"],"enabled":false}}}"#,
        ),
    ] {
        put(&user.join(path), text);
        let before = tree(&user);
        let done = install(&home, &[agent]).ok();
        assert!(done.stderr.contains("calls homing already; it is left as it is"), "{}", done.stderr);
        assert!(fs::read_to_string(user.join(path)).expect("there").starts_with(&text[..text.len() - 1]));
        let installed = tree(&user);
        let _ = install(&home, &[agent]).ok();
        assert_eq!(tree(&user), installed, "{agent}: twice is once");
        let gone = install(&home, &[agent, "--uninstall"]).ok();
        assert_eq!(tree(&user), before, "{agent}");
        assert!(gone.stderr.contains("stays in"), "{}", gone.stderr);
        let _ = install(&home, &[agent, "--uninstall"]).ok();
        assert_eq!(tree(&user), before, "{agent}: nor if nothing else is left");
    }
}

#[test]
fn a_server_of_ours_is_brought_up_to_date_and_goes_also_from_a_file_that_was_edited() {
    let home = super::home();
    let path = user(&home).join(".claude.json");
    put(&path, "{\n  \"a\": 1\n}\n");
    let _ = install(&home, &["claude"]).ok();
    let ours = json(&path)["mcpServers"]["homing"]["command"].as_str().expect("a program").to_owned();
    let text = fs::read_to_string(&path).expect("there");
    fs::write(&path, text.replace(&ours, "/old/homing").replace("\"a\": 1", "\"a\": 2")).expect("written");
    let _ = install(&home, &["claude"]).ok();
    assert_eq!(json(&path)["mcpServers"]["homing"]["command"].as_str(), Some(ours.as_str()));
    let _ = install(&home, &["claude", "--uninstall"]).ok();
    assert_eq!(fs::read_to_string(&path).expect("there"), "{\n  \"a\": 2\n}\n");
}

#[test]
fn a_project_gets_files_that_hold_for_everybody() {
    let home = super::home();
    let project = user(&home).join("project");
    fs::create_dir(&project).expect("a folder");
    for agent in AGENTS {
        let _ = install_in(&home, &project, &[agent, "--project"]).ok();
    }
    assert!(
        !tree(&project).keys().any(|path| path.to_string_lossy().contains("backup")),
        "{:?}",
        tree(&project)
    );
    assert_eq!(json(&project.join(".mcp.json"))["mcpServers"]["homing"]["command"], "homing");
    let hooks = json(&project.join(".claude/settings.json"));
    assert_eq!(hooks["hooks"]["Stop"][0]["hooks"][0]["command"], "homing hook claude Stop");
    assert!(
        project.join(".agents/skills/homing/SKILL.md").exists() && project.join("opencode.json").exists()
    );
    for agent in AGENTS {
        let _ = install_in(&home, &project, &[agent, "--project", "--uninstall"]).ok();
    }
    assert!(tree(&project).is_empty(), "{:?}", tree(&project));
    assert!(!user(&home).join(".local/state/homing/backups").exists(), "nothing is kept any longer");
}

#[test]
fn p11_a_project_is_not_left_by_a_link_and_nothing_is_done_by_half() {
    let home = super::home();
    let (project, outside) = (user(&home).join("project"), user(&home).join("outside"));
    put(&outside.join("servers.json"), "{}");
    fs::create_dir(outside.join("claude")).expect("a folder");
    let attempts: [&[(&str, &str)]; 4] = [
        &[("../outside/servers.json", ".mcp.json")],
        &[("../outside/claude", ".claude")],
        &[("../outside/none", ".claude")],
        &[("../outside/servers.json", ".mcp.json"), ("../../outside/servers.json", ".claude/settings.json")],
    ];
    for links in attempts {
        for (target, link) in links {
            let link = project.join(link);
            fs::create_dir_all(link.parent().expect("a folder")).expect("made");
            symlink(target, link).expect("a link");
        }
        let before = tree(&user(&home));
        for words in [&["claude", "--project"][..], &["claude", "--project", "--uninstall"]] {
            let refused = install_in(&home, &project, words);
            assert!(refused.code != 0 && refused.stderr.contains("HM0066"), "{links:?}: {refused:?}");
            assert!(refused.stderr.contains("is a link"), "{links:?}: {refused:?}");
        }
        assert_eq!(tree(&user(&home)), before, "{links:?}");
        fs::remove_dir_all(&project).expect("removed");
    }
    // A user's own links are followed, but not two to one file.
    put(&user(&home).join("one.json"), "{}");
    fs::create_dir(user(&home).join(".claude")).expect("a folder");
    symlink("one.json", user(&home).join(".claude.json")).expect("a link");
    symlink("../one.json", user(&home).join(".claude/settings.json")).expect("a link");
    let before = tree(&user(&home));
    let refused = install(&home, &["claude"]);
    assert!(refused.stderr.contains("HM0066") && refused.stderr.contains("are one file"), "{refused:?}");
    assert_eq!(tree(&user(&home)), before);
}

#[test]
fn what_a_project_had_is_restored_from_the_home_and_from_where_earlier_releases_kept_it() {
    let home = super::home();
    let project = user(&home).join("project");
    put(&project.join(".mcp.json"), "{ \"mcpServers\" : { } } // ours\n");
    put(&project.join(".claude/settings.json"), "{\"model\":\t\"x\"}");
    let before = tree(&project);
    for earlier in [false, true] {
        let _ = install_in(&home, &project, &["claude", "--project"]).ok();
        assert_ne!(tree(&project), before);
        let kept = user(&home).join(".local/state/homing/backups");
        assert_eq!(fs::read_dir(&kept).expect("kept").count(), 3);
        if earlier {
            fs::remove_dir_all(&kept).expect("removed");
            for (path, text) in [
                (".mcp.json", "{ \"mcpServers\" : { } } // ours\n"),
                (".claude/settings.json", "{\"model\":\t\"x\"}"),
            ] {
                put(&project.join(format!("{path}.homing-backup")), text);
            }
            let absent = "homing: there was no such file; missing folders: 2\n";
            put(&project.join(".claude/skills/homing/SKILL.md.homing-backup"), absent);
        }
        let gone = install_in(&home, &project, &["claude", "--project", "--uninstall"]).ok();
        assert!(gone.stderr.contains("its files are as they were"), "{}", gone.stderr);
        assert_eq!(tree(&project), before, "earlier: {earlier}");
    }
}

#[test]
fn a_project_that_was_moved_loses_what_was_made_for_homing_and_nothing_else() {
    let home = super::home();
    let (project, moved) = (user(&home).join("project"), user(&home).join("moved"));
    put(&project.join("src/main.rs"), "fn main() {}\n");
    put(&project.join(".gemini/notes.md"), "theirs\n");
    put(&project.join(".codex/config.toml"), "model = \"x\"\n");
    let before = tree(&project);
    for agent in AGENTS {
        let _ = install_in(&home, &project, &[agent, "--project"]).ok();
    }
    fs::rename(&project, &moved).expect("moved");
    for agent in AGENTS {
        let _ = install_in(&home, &moved, &[agent, "--project", "--uninstall"]).ok();
    }
    fs::rename(&moved, &project).expect("moved back, so that names can be compared");
    assert_eq!(tree(&project), before);
    assert!(
        ![".claude", ".agents", ".opencode"].iter().any(|name| project.join(name).exists()),
        "empty folders"
    );
}

#[test]
fn a_server_of_ours_is_known_by_what_it_says_where_the_backup_is_gone() {
    let home = super::home();
    let path = user(&home).join(".claude.json");
    let backup = path.with_file_name(".claude.json.homing-backup");
    put(&path, "{\"a\": 1}");
    let _ = install(&home, &["claude"]).ok();
    let ours = json(&path)["mcpServers"]["homing"]["command"].as_str().expect("a program").to_owned();
    fs::remove_file(&backup).expect("removed");
    let text = fs::read_to_string(&path).expect("there");
    fs::write(&path, text.replace(&ours, "/old/place/homing")).expect("written");
    let done = install(&home, &["claude"]).ok();
    assert!(!done.stderr.contains("is left as it is"), "{}", done.stderr);
    assert_eq!(
        json(&path)["mcpServers"]["homing"]["command"].as_str(),
        Some(ours.as_str()),
        "brought up to date"
    );
    // One that says more than we would is somebody's own, whatever else is there.
    let text = fs::read_to_string(&path).expect("there");
    fs::write(&path, text.replace("\"mcp\"", "\"mcp\", \"--owner\", \"ci\"")).expect("written");
    let done = install(&home, &["claude"]).ok();
    assert!(done.stderr.contains("is left as it is"), "{}", done.stderr);
    fs::remove_file(&backup).expect("it was noted that it was there");
    fs::write(&path, text).expect("written");
    let gone = install(&home, &["claude", "--uninstall"]).ok();
    assert!(!gone.stderr.contains("stays in"), "{}", gone.stderr);
    assert_eq!(json(&path), serde_json::json!({ "a": 1 }));
}

#[test]
fn a_chosen_home_is_written_down_and_agents_folders_are_found_by_their_variables() {
    let home = super::home();
    let folder = home.scratch().join("elsewhere");
    let mut command = home.command();
    command.env("HOME", user(&home)).env("CLAUDE_CONFIG_DIR", &folder).args(["install", "claude", "--json"]);
    let output = command.output().expect("it runs");
    assert!(output.status.success());
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["changes"].as_array().map(Vec::len), Some(3));
    assert!(answer["changes"][0]["diff"].as_str().is_some_and(|diff| diff.contains("mcpServers")));
    let servers = json(&folder.join(".claude.json"));
    let wanted = serde_json::json!(["--home", home.path(), "mcp"]);
    assert_eq!(servers["mcpServers"]["homing"]["args"], wanted);
    assert!(folder.join("settings.json").exists() && tree(&user(&home)).is_empty());
}

#[test]
fn the_doctor_tells_how_far_each_agent_is_set_up() {
    let home = super::home();
    let doctor = || {
        let output =
            home.command().env("HOME", user(&home)).args(["doctor", "--json"]).output().expect("it runs");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let lines =
            answer["checks"].as_array().expect("a list").iter().filter(|check| check["name"] == "install");
        lines.map(|check| check["detail"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    assert!(doctor().iter().all(|line| line.contains("not installed")), "{:?}", doctor());
    let run = |words: &[&str]| {
        let mut command = home.command();
        assert!(command.env("HOME", user(&home)).args(words).status().expect("it runs").success());
    };
    run(&["install", "gemini"]);
    assert!(doctor().contains(&"Gemini CLI: installed".to_owned()), "{:?}", doctor());
    fs::write(
        user(&home).join(".gemini/skills/homing/SKILL.md"),
        "homing install: this file is written and taken out by it",
    )
    .expect("written");
    assert!(doctor().iter().any(|line| line.starts_with("Gemini CLI: outdated")), "{:?}", doctor());
    run(&["install", "gemini"]);
    assert!(doctor().contains(&"Gemini CLI: installed".to_owned()), "{:?}", doctor());
}

#[test]
fn what_a_skill_teaches_works_in_that_agent() {
    // What names the session in the agent's shell; in that of Gemini CLI nothing does, only its hooks have a variable.
    for (agent, skill, variable) in [
        ("claude", ".claude/skills", Some("CLAUDE_CODE_SESSION_ID")),
        ("codex", ".codex/skills", Some("CODEX_THREAD_ID")),
        ("gemini", ".gemini/skills", None),
        ("opencode", ".config/opencode/skills", Some("OPENCODE_SESSION_ID")),
    ] {
        let home = super::home();
        let _ = install(&home, &[agent]).ok();
        let text = fs::read_to_string(user(&home).join(skill).join("homing/SKILL.md")).expect("a skill");
        let runs: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("    homing run ")).collect();
        let Some(variable) = variable else {
            // Its results would come to nobody, and its inbox would be another.
            assert!(runs.is_empty() && !text.contains("    homing inbox"), "{text}");
            assert!(text.contains("no notice of it comes to you"), "{text}");
            continue;
        };
        assert!(!runs.is_empty(), "{text}");
        for run in runs {
            // The options as they are taught; the command is any.
            let options =
                run.split(" -c ").next().expect("options").split_whitespace().filter(|word| *word != "-c");
            let options: Vec<_> = options.take_while(|word| !word.starts_with('\'')).collect();
            let mut command = home.command();
            command.env(variable, "s1").arg("run").args(options).args(["-c", "true"]);
            let output = command.output().expect("it runs");
            assert!(output.status.success(), "{agent}: {run}: {}", String::from_utf8_lossy(&output.stderr));
            let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let task = home.task(&id);
            assert_eq!(task["owner"], format!("{agent}:s1"), "{run}: the result comes to the session");
            assert_eq!(task["notify"]["on"], "always", "{run}");
        }
    }
}

#[test]
fn what_codex_writes_between_our_marks_stays() {
    let home = super::home();
    let config = user(&home).join(".codex/config.toml");
    put(&config, "model = \"x\"\n");
    let _ = install(&home, &["codex"]).ok();
    let theirs = "\n[projects.\"/here\"]\ntrust_level = \"trusted\"\n";
    let written = fs::read_to_string(&config).expect("there");
    let below = "\n[mcp_servers.homing.env]\nA = \"1\"\n";
    put(&config, &written.replace("# homing: end\n", &format!("{below}{theirs}# homing: end\n")));
    let _ = install(&home, &["codex"]).ok();
    let again = fs::read_to_string(&config).expect("there");
    assert!(again.contains(theirs) && again.matches("[mcp_servers.homing]").count() == 1, "{again}");
    let _ = install(&home, &["codex", "--uninstall"]).ok();
    let left = fs::read_to_string(&config).expect("there");
    assert!(left.starts_with("model = \"x\"\n") && left.ends_with(theirs), "{left}");
    assert!(!left.contains("homing"), "{left}");
}
