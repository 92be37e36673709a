//! `daemon.log`: bounded whatever happens, with the ids of tasks in it.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use homing_testkit::{Home, wait_for};

const MAX: u64 = 64 << 10;

/// A home whose daemon logs this, in small files.
fn logging(text: &str) -> Home {
    let home = super::home();
    std::fs::create_dir(home.path()).unwrap();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(home.path().join("config.toml"), text).unwrap();
    home
}

fn sizes(home: &Home) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(home.path()).unwrap().flatten();
    let logs = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("daemon.log"));
    // One that turns meanwhile is gone by this name.
    let sized = |entry: std::fs::DirEntry| {
        Some((entry.file_name().to_string_lossy().into_owned(), entry.metadata().ok()?.len()))
    };
    let mut sizes: Vec<_> = logs.filter_map(sized).collect();
    sizes.sort();
    sizes
}

#[test]
fn the_log_stays_within_its_limits_through_kills_and_restarts() {
    let home = logging("[log]\nlevel = \"debug\"\nmax = \"64KiB\"\nkeep = 2\n");
    for round in 0..4 {
        let daemon = home.daemon_pid();
        for _ in 0..500 {
            let long = format!("/nowhere/{}", "x".repeat(150));
            assert_eq!(home.get(&long).status, 404);
        }
        let sizes = sizes(&home);
        assert!(sizes.len() <= 3 && sizes.iter().all(|(_, size)| *size <= MAX + 4096), "{sizes:?}");
        match round % 2 {
            0 => {
                home.kill(daemon);
                let _ = home.next_daemon(daemon);
            }
            _ => home.does(["daemon", "restart"]),
        }
    }
    // Nobody writes any more, nor turns one over that is being read.
    home.stop_daemon();
    let sizes = sizes(&home);
    assert_eq!(sizes.len(), 3, "{sizes:?}");
    for (name, _) in sizes {
        let text = std::fs::read_to_string(home.path().join(&name)).unwrap();
        for line in text.lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{name}: {line}");
        }
    }
}

#[test]
fn what_is_logged_follows_the_configuration_and_names_the_task() {
    let home = logging("");
    let quiet = home.submit(&[], "true");
    let _ = home.ended(&quiet);
    let log = || std::fs::read_to_string(home.path().join("daemon.log")).unwrap();
    assert!(!log().contains(&quiet), "nothing is said of a task that went well: {}", log());
    std::fs::write(home.path().join("config.toml"), "[log]\nlevel = \"debug\"\n").unwrap();
    home.does(["config", "reload"]);
    let loud = home.submit(&[], "exit 3");
    let _ = home.ended(&loud);
    let told = |message: &str| {
        wait_for(message, || {
            let lines: Vec<serde_json::Value> =
                log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            lines.into_iter().find(|line| line["message"] == message && line["task"] == loud.as_str())
        })
    };
    assert_eq!(told("accepted")["kind"], "command");
    assert_eq!(told("started")["attempt"], 1);
    assert_eq!((&told("ended")["status"], &told("ended")["level"]), (&"failed".into(), &"DEBUG".into()));
}

#[test]
fn a_variable_says_what_is_logged_by_module_whatever_the_file_says() {
    let home = logging("[log]\nlevel = \"error\"\n");
    let started = home
        .command()
        .env("HOMING_LOG", "warn,homing_engine=debug")
        .args(["daemon", "start"])
        .output()
        .unwrap();
    assert!(started.status.success());
    let id = home.submit(&[], "true");
    let _ = home.ended(&id);
    let log = wait_for("the end in the log", || {
        let log = std::fs::read_to_string(home.path().join("daemon.log")).unwrap();
        log.contains("\"ended\"").then_some(log)
    });
    assert!(log.contains(&id) && !log.contains("\"answered\""), "{log}");
    let config = home.cli(["config"]).ok().text();
    let level = config.lines().find(|line| line.starts_with("level = ")).unwrap();
    assert!(level.ends_with("# overridden by HOMING_LOG"), "{config}");
}

#[test]
fn p11_a_link_in_the_place_of_the_log_leads_nobody_out_of_the_home() {
    let home = super::home();
    let pid = home.daemon_pid();
    let (log, outside) = (home.path().join("daemon.log"), home.scratch().join("outside"));
    std::fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(&outside, &log).unwrap();
    let _ = home.kill_daemon();
    wait_for("the next daemon", || (home.daemon_pid() != pid).then_some(()));
    assert!(!outside.exists());
}
