//! What is in force, where it comes from, and a file that is not in force.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use homing_testkit::{Home, drift, wait_for};

/// Whole at once: a file that is emptied and then written is for a moment an empty one, which is sound, and whoever reads it then has it in force.
fn write(home: &Home, text: &str) {
    let draft = home.path().join("config.draft");
    std::fs::write(&draft, text).expect("the home is there");
    std::fs::rename(&draft, home.path().join("config.toml")).expect("the home is there");
}

/// The line of a key, with its origin.
fn line(text: &str, key: &str) -> String {
    let found = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the doctor says of it.
fn doctor(home: &Home) -> (String, String) {
    let answer = home.cli(["doctor", "--json"]).json();
    let check = answer["checks"].as_array().expect("a list").iter().find(|check| check["name"] == "config");
    let text = |name: &str| check.expect("a check")[name].as_str().expect("a text").to_owned();
    (text("state"), text("detail"))
}

/// Waits until the daemon goes by this value.
fn until_depth(home: &Home, depth: u64) {
    wait_for(&format!("depth {depth} to be in force"), || {
        let status = home.cli(["status", "--json"]).ok().json();
        (status["configuration"]["values"]["nested"]["depth"] == depth).then_some(())
    });
}

#[test]
fn the_configuration_in_force_is_shown_and_a_changed_file_takes_effect_by_itself() {
    let home = super::home();
    let shown = home.cli(["config"]).ok();
    assert!(shown.text().contains("no daemon runs"), "{}", shown.text());
    assert!(!home.path().join("homing.sock").exists(), "nobody was started");
    let daemon = home.daemon_pid();
    assert!(home.cli(["status"]).ok().text().contains("config      defaults\n"));
    std::fs::write(home.path().join("config.toml"), "[nested]\ndepth = 7\n").unwrap();
    until_depth(&home, 7);
    let shown = home.cli(["config"]).ok();
    assert_eq!((line(&shown.text(), "depth"), shown.stderr.as_str()), ("depth = 7 # config.toml".into(), ""));
    assert_eq!(line(&shown.text(), "grace"), "grace = \"5s\" # default");
    assert_eq!(doctor(&home).0, "ok");
    // As editors do it: another file takes its name.
    let draft = home.path().join("config.toml~");
    std::fs::write(&draft, "[nested]\ndepth = 8\n").unwrap();
    std::fs::rename(&draft, home.path().join("config.toml")).unwrap();
    until_depth(&home, 8);
    std::fs::remove_file(home.path().join("config.toml")).unwrap();
    until_depth(&home, 3);
    assert_eq!(home.daemon_pid(), daemon, "it is the same daemon");
}

#[test]
fn a_broken_file_changes_nothing_until_it_is_mended_and_a_reload_says_why() {
    let home = super::home();
    let daemon = home.daemon_pid();
    write(&home, "[nested]\ndepth = 7\n");
    let done = home.cli(["config", "reload"]).ok();
    assert!(done.text().ends_with("config.toml is in force"), "{done:?}");
    until_depth(&home, 7);
    write(&home, "[nested]\ndepth = 8\nnonsense = 1\n");
    let refused = home.cli(["config", "reload"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("line 3") && refused.stderr.contains("(HM0022)"),
        "{refused:?}"
    );
    let json = home.cli(["config", "reload", "--json"]);
    assert!(json.code == 1 && json.stderr.contains("\"HM0022\""), "{json:?}");
    until_depth(&home, 7);
    let (state, told) = doctor(&home);
    assert!(state == "fail" && told.contains("line 3"), "{state}: {told}");
    let told = wait_for("the log to tell of it", || {
        let log = std::fs::read_to_string(home.path().join("daemon.log")).unwrap();
        let lines = log.lines().filter(|line| line.contains("the configuration is broken")).count();
        (lines > 0).then_some(lines)
    });
    assert_eq!(told, 1, "it is told once, however often it is looked at");
    let metrics = String::from_utf8(home.get("/metrics").body).unwrap();
    assert!(metrics.contains("\nhoming_config_in_force 0\n"), "{metrics}");
    write(&home, "[nested]\ndepth = 8\n");
    until_depth(&home, 8);
    assert_eq!((doctor(&home).0.as_str(), home.daemon_pid()), ("ok", daemon));
    home.stop_daemon();
    let nobody = home.cli(["config", "reload"]);
    assert!(nobody.code == 69 && nobody.stderr.contains("HM0019"), "{nobody:?}");
    assert!(home.find_daemon().is_none(), "nobody was started for it");
}

#[test]
fn the_default_file_is_sound_and_changes_nothing_and_every_key_of_it_is_explained() {
    let home = super::home();
    let text = home.cli(["config", "default"]).ok().stdout;
    assert_eq!(text, home.cli(["config", "--default"]).ok().stdout);
    let _ = home.daemon_pid();
    std::fs::write(home.path().join("config.toml"), &text).unwrap();
    assert_eq!(home.cli(["config", "check"]).ok().code, 0);
    home.does(["config", "reload"]);
    let shown = home.cli(["config"]).ok().text();
    assert!(
        shown.lines().filter(|line| line.contains(" = ")).all(|line| line.ends_with("# default")),
        "{shown}"
    );
    let one = home.cli(["config", "explain", "retention.age"]).ok().text();
    assert!(
        one.starts_with("[retention]\nHow long")
            && one.contains("\n\nretention.age\n")
            && one.contains("default \"7d\", which is in force"),
        "{one}"
    );
    let all = home.cli(["config", "explain", "log", "--json"]).ok().json();
    assert_eq!(all["items"].as_array().unwrap().len(), 3, "{all}");
    let slip = home.cli(["config", "explain", "retention.agee"]);
    assert!(slip.code == 2 && slip.stderr.contains("did you mean `retention.age`?"), "{slip:?}");
    assert_eq!(
        home.cli(["config", "path"]).ok().text(),
        home.path().join("config.toml").display().to_string()
    );
}

#[test]
fn a_broken_file_is_shown_with_what_is_in_force_instead() {
    let home = super::home();
    let _ = home.daemon_pid();
    write(&home, "[nested]\ndepth = 7\n");
    until_depth(&home, 7);
    write(&home, "[nested]\ndept = 8\n");
    let broken = |how: &str, origin: &str| {
        let shown = home.cli(["config"]);
        assert_eq!(shown.code, 1);
        assert_eq!(line(&shown.text(), "depth"), format!("depth = 7 # {origin}"));
        assert!(shown.text().contains(&format!("config.toml (broken: {how} applies)")), "{}", shown.text());
        assert!(
            shown.stderr.contains("config.toml, line 2") && shown.stderr.contains("(HM0022)"),
            "{}",
            shown.stderr
        );
        let status = home.cli(["status"]).ok().text();
        assert!(status.contains(&format!("config      broken, {how} is in force: ")), "{status}");
        let (state, told) = doctor(&home);
        assert!(state == "fail" && told.contains("line 2"), "{state}: {told}");
        assert!(told.ends_with("the daemon goes by what was good before"), "{told}");
        let status = home.cli(["status", "--json"]).ok().json();
        assert!(status["configuration"]["problem"].as_str().unwrap().contains("line 2"), "{status}");
        assert_eq!(status["configuration"]["values"]["nested"]["depth"], 7);
    };
    broken("what was read before", "an earlier config.toml");
    let restarted = home.cli(["daemon", "restart"]).ok();
    assert!(restarted.stderr.contains("HM0022"), "{}", restarted.stderr);
    broken("the last good one", "config.last-good.toml");
    home.stop_daemon();
    let shown = home.cli(["config"]);
    assert_eq!((shown.code, line(&shown.text(), "depth")), (1, "depth = 7 # config.last-good.toml".into()));
}

#[test]
fn a_variable_that_is_no_interval_is_ignored_and_that_is_said() {
    let home = super::home();
    let set = |value: &str, words: &[&str]| {
        let output = home.command().env("HOMING_RECONCILE_INTERVAL", value).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (_, told) = set("soon", &["daemon", "start"]);
    assert!(
        told.starts_with("homing: HOMING_RECONCILE_INTERVAL is ignored: `soon` is not a duration"),
        "{told}"
    );
    let status = home.cli(["status"]).ok().text();
    assert!(status.contains("config      HOMING_RECONCILE_INTERVAL is ignored: `soon`"), "{status}");
    assert!(status.contains("every 10.0s"), "{status}");
    let log = std::fs::read_to_string(home.path().join("daemon.log")).unwrap();
    assert!(log.contains("HOMING_RECONCILE_INTERVAL is ignored"), "{log}");
    home.stop_daemon();
    let (shown, told) = set("2s", &["config"]);
    assert_eq!(
        (line(&shown, "interval"), told.as_str()),
        ("interval = \"2s\" # HOMING_RECONCILE_INTERVAL".into(), "")
    );
}

#[test]
fn a_pipe_in_the_place_of_the_file_keeps_nobody_waiting() {
    let home = super::home();
    let _ = home.daemon_pid();
    let made = std::process::Command::new("mkfifo").arg(home.path().join("config.toml")).status();
    assert!(made.expect("mkfifo runs").success());
    let shown = home.cli(["config"]);
    assert!(shown.text().contains("[retention]"), "{} {}", shown.code, shown.stderr);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "for how long it may be away is by the real clock")]
fn a_file_that_is_away_for_a_moment_changes_nothing_and_one_that_stays_away_was_removed() {
    let home = super::home();
    let _ = home.daemon_pid();
    let (file, kept) = (home.path().join("config.toml"), home.path().join("config.last-good.toml"));
    let aside = home.path().join("config.toml~");
    // As some editors do it: the old one is put aside before there is a new one. What is seen later than two seconds after that says nothing.
    wait_for("a look that was quick enough", || {
        write(&home, "[nested]\ndepth = 7\n");
        until_depth(&home, 7);
        let began = Instant::now();
        std::fs::rename(&file, &aside).unwrap();
        drift(Duration::from_millis(600));
        let depth =
            home.cli(["status", "--json"]).ok().json()["configuration"]["values"]["nested"]["depth"].clone();
        let text = std::fs::read_to_string(&kept).unwrap();
        if began.elapsed() >= Duration::from_secs(2) {
            return None;
        }
        assert_eq!(depth, 7);
        assert!(text.contains("depth = 7"), "the last good one is kept: {text}");
        Some(())
    });
    write(&home, "[nested]\ndepth = 9\n");
    until_depth(&home, 9);
    assert!(std::fs::read_to_string(&kept).unwrap().contains("depth = 9"));
    std::fs::remove_file(&file).unwrap();
    until_depth(&home, 3);
}

/// A home whose first daemon finds this configuration.
fn begun_with(text: &str) -> Home {
    let home = super::home();
    std::fs::create_dir(home.path()).expect("a folder");
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).expect("it is ours");
    write(&home, text);
    home
}

#[test]
fn a_changed_interval_ends_the_wait_that_has_begun() {
    let home = begun_with("[reconcile]\ninterval = \"1d\"\n");
    let _ = home.daemon_pid();
    let passes = || home.cli(["status", "--json"]).ok().json()["reconcile"]["passes"].as_u64();
    assert_eq!(passes(), Some(0));
    write(&home, "[reconcile]\ninterval = \"100ms\"\n");
    wait_for("passes by the new interval", || (passes() > Some(1)).then_some(()));
}

#[test]
fn a_changed_retention_is_applied_at_once() {
    let home = begun_with("[reconcile]\ninterval = \"1d\"\n");
    let ids: Vec<_> = (0..3).map(|_| home.submit(&["--notify-on", "never"], "true")).collect();
    for id in &ids {
        let _ = home.ended(id);
    }
    for kept in [1, 0] {
        write(&home, &format!("[reconcile]\ninterval = \"1d\"\n[retention]\ncount = {kept}\n"));
        let left = || ids.iter().filter(|id| home.task(id)["forgotten"] == false).count();
        wait_for("retention", || (left() == kept).then_some(()));
    }
}

#[test]
fn a_changed_grace_holds_for_tasks_that_run() {
    let home = begun_with("[stop]\ngrace = \"1d\"\n");
    let id = home.submit(&[], "trap '' TERM; echo ready > ready; while :; do sleep 0.1; done");
    assert_eq!(home.told("ready"), "ready");
    write(&home, "[stop]\ngrace = \"100ms\"\n");
    home.does(["config", "reload"]);
    home.does(["stop", &id]);
    assert_eq!(home.ended(&id)["status"], "stopped");
}

#[test]
fn a_changed_grace_holds_for_ends_that_the_shim_decides() {
    for restarted in [false, true] {
        let home = begun_with("[stop]\ngrace = \"1d\"\n");
        let line = "(trap '' TERM; echo up > up; while :; do sleep 0.1; done) & until [ -e go ]; do sleep 0.01; done";
        let id = home.submit(&["--on-exit", "kill"], line);
        assert_eq!(home.told("up"), "up");
        write(&home, "[stop]\ngrace = \"100ms\"\n");
        home.does(if restarted { ["daemon", "restart"] } else { ["config", "reload"] });
        // The shim answers these after it took the new grace.
        home.does(["pause", &id]);
        home.does(["resume", &id]);
        std::fs::write(home.scratch().join("go"), "").expect("a file");
        assert_eq!(home.ended(&id)["status"], "succeeded");
    }
}
