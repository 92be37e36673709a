//! What is in force, where it comes from, and a file that is not in force.

use homing_testkit::Home;

fn write(home: &Home, text: &str) {
    std::fs::write(home.path().join("config.toml"), text).expect("the home is there");
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

#[test]
fn the_configuration_in_force_is_shown_and_a_file_that_has_changed_since_is_told() {
    let home = super::home();
    let shown = home.cli(["config"]).ok();
    assert!(shown.text().contains("no daemon runs"), "{}", shown.text());
    assert!(!home.path().join("homing.sock").exists(), "nobody was started");
    let _ = home.daemon_pid();
    assert!(home.cli(["status"]).ok().text().contains("config      defaults\n"));
    write(&home, "[stop]\ngrace = \"1s\"\n");
    let shown = home.cli(["config"]).ok();
    assert_eq!(line(&shown.text(), "grace"), "grace = \"5s\" # default", "the daemon has not read it");
    let told = "the file has changed since the daemon read it: stop.grace is \"5s\" in force and \"1s\" in the file\n";
    assert!(shown.stderr.contains(told), "{}", shown.stderr);
    let json = home.cli(["config", "--json"]).ok().json();
    assert_eq!((&json["changed"][0], &json["values"]["stop"]["grace"]), (&"stop.grace".into(), &"5s".into()));
    let status = home.cli(["status"]).ok().text();
    assert!(status.contains("config.toml has changed since; `homing daemon restart`"), "{status}");
    let (state, told) = doctor(&home);
    assert!(
        state == "warn" && told.contains("config.toml is not in force: it has changed"),
        "{state}: {told}"
    );
    home.does(["daemon", "restart"]);
    assert_eq!(doctor(&home).0, "ok");
    let shown = home.cli(["config"]).ok();
    assert_eq!(
        (line(&shown.text(), "grace"), shown.stderr.as_str()),
        ("grace = \"1s\" # config.toml".into(), "")
    );
    assert_eq!(line(&shown.text(), "depth"), "depth = 3 # default");
}

#[test]
fn a_broken_file_is_shown_with_what_is_in_force_instead() {
    let home = super::home();
    let _ = home.daemon_pid();
    write(&home, "[nested]\ndepth = 7\n");
    home.does(["daemon", "restart"]);
    write(&home, "[nested]\ndept = 8\n");
    let broken = |how: &str, origin: &str| {
        let shown = home.cli(["config"]);
        assert_eq!(shown.code, 1);
        assert_eq!(line(&shown.text(), "depth"), format!("depth = 7 # {origin}"));
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
