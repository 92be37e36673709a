//! When the machine gives out: a clear error or `lost`, and the daemon lives.
//!
//! A disk, a limit or a cgroup of one's own can only be had by root; where the tests run as somebody else, those that need one say so and pass.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use homing_engine::{Caller, Clock, Engine, SystemClock, WaitMode};
use homing_model::{Spec, Status, Timestamp};
use homing_testkit::{Home, Output, alive, drift, freeze, gate, left_out, thaw, wait_for};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

/// A home on a disk of its own.
fn small_disk() -> Option<Home> {
    let home = Home::on_tmpfs(env!("CARGO_BIN_EXE_homing"), 4 << 20);
    if home.is_none() {
        left_out("no disk can be mounted here");
    }
    home
}

fn fill(home: &Home) {
    let _ = Command::new("cp").arg("/dev/zero").arg(home.path().join("ballast")).output().unwrap();
}

fn is_refused(output: &Output, codes: &[&str]) -> bool {
    [1, 69].contains(&output.code)
        && codes.iter().any(|code| output.stderr.contains(code))
        && output.stderr.contains("next:")
}

/// Waits for a submit that is accepted again.
fn works_again(home: &Home) {
    wait_for("a submit that works", || (home.cli(["run", "--wait", "-c", "exit 3"]).code == 3).then_some(()));
}

#[test]
fn p2_a_full_disk_costs_output_and_new_tasks_but_no_exit_code() {
    let Some(home) = small_disk() else { return };
    let daemon = home.daemon_pid();
    let quiet = home.submit(&["--stdin", "pipe"], "read line; exit 7");
    let loud = home
        .submit(&["--stdin", "pipe"], "echo before; read line; head -c 8000000 /dev/zero; read line; exit 8");
    let _ = home.until_status(&loud, "running");
    wait_for("its first words", || (home.output(&loud) == b"before\n").then_some(()));
    fill(&home);
    let _ = home.cli(["input", &loud, "go", "--enter"]).ok();
    let refused =
        wait_for("a refusal", || Some(home.cli(["run", "--", "true"])).filter(|output| output.code != 0));
    assert!(is_refused(&refused, &["HM0012", "HM0013"]), "{refused:?}");
    // The tasks do not notice, and what they are is still answered.
    for id in [&quiet, &loud] {
        let _ = home.cli(["input", id, "end", "--enter"]).ok();
    }
    let _ = home.cli(["list"]).ok();
    assert_eq!(home.daemon_pid(), daemon, "the daemon lives");
    wait_for("the end of both", || home.task_processes().is_empty().then_some(()));
    std::fs::remove_file(home.path().join("ballast")).unwrap();
    works_again(&home);
    for (id, code) in [(&quiet, 7), (&loud, 8)] {
        let task = wait_for("its end", || Some(home.task(id)).filter(|task| !task["ended_at"].is_null()));
        assert_eq!(
            (&task["status"], &task["outcome"]["exit_code"]),
            (&json!("failed"), &json!(code)),
            "{task}"
        );
    }
    let output = &home.task(&loud)["output"];
    assert_eq!(output["bytes"], 8_000_007);
    assert!(output["dropped"].as_u64().unwrap() > 4_000_000, "{output}");
    assert!(home.output(&loud).starts_with(b"before\n"));
}

#[test]
fn p2_a_daemon_killed_while_the_disk_is_full_still_gives_the_exit_code() {
    let Some(home) = small_disk() else { return };
    let id = home.submit(&["--stdin", "pipe"], "read line; exit 7");
    let _ = home.until_status(&id, "running");
    let shim = home.shim_pid(&id);
    fill(&home);
    let _ = home.cli(["input", &id, "go", "--enter"]).ok();
    let _ = home.kill_daemon();
    wait_for("the end of the task", || home.task_processes().is_empty().then_some(()));
    std::fs::remove_file(home.path().join("ballast")).unwrap();
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&json!("failed"), &json!(7)), "{task}");
    wait_for("the shim to leave", || (!alive(shim)).then_some(()));
}

#[test]
fn p4_a_daemon_serves_on_a_disk_that_output_has_filled_to_the_brim_and_again_after_its_death() {
    let Some(home) = small_disk() else { return };
    let id = home.submit(&[], "head -c 8000000 /dev/zero; exit 4");
    let degraded =
        || home.cli(["status", "--json"]).ok().json()["daemon"]["degraded"].as_str().map(str::to_owned);
    let refused =
        || wait_for("a refusal", || Some(home.cli(["run", "--", "true"])).filter(|output| output.code != 0));
    let told = refused();
    assert!(is_refused(&told, &["HM0012", "HM0013"]), "{told:?}");
    assert!(wait_for("the daemon to say so", degraded).contains("full"));
    let killed = home.kill_daemon();
    let _ = home.next_daemon(killed);
    let told = refused();
    assert!(is_refused(&told, &["HM0012", "HM0013"]), "{told:?}");
    assert!(wait_for("the next daemon to say so", degraded).contains("full"));
    let _ = home.cli(["list"]).ok();
    std::fs::remove_file(home.path().join("tasks").join(&id).join("output.log")).unwrap();
    works_again(&home);
    let task = home.ended(&id);
    assert_eq!((&task["status"], &task["outcome"]["exit_code"]), (&json!("failed"), &json!(4)), "{task}");
}

#[test]
fn a_read_only_home_is_a_clear_error_at_once() {
    let Some(home) = small_disk() else { return };
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(home.path()).status().unwrap();
    assert!(remounted.success());
    for (arguments, code) in [(&["run", "--", "true"][..], 69), (&["list"], 69), (&["status"], 69)] {
        let refused = home.cli(arguments);
        assert!(
            refused.stderr.contains("Read-only file system") && refused.stderr.contains("next:"),
            "{refused:?}"
        );
        assert!(refused.code == code || refused.code == 1, "{refused:?}");
    }
    assert_eq!(home.all_processes(), []);
}

/// The limit that leaves a process so many descriptors more than it has, once it has the same ones for a while. A limit is one of numbers, and
/// below the highest that is in use others may be free.
fn limit_for(pid: u32, more: usize) -> u64 {
    let mut seen = Vec::new();
    let open = wait_for("descriptors to come and go no more", || {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let open: BTreeSet<u64> =
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        seen.push(open);
        let last = seen.last_chunk::<8>()?;
        last.iter().all(|open| *open == last[0]).then(|| last[0].clone())
    });
    (0..).filter(|number| !open.contains(number)).nth(more).unwrap()
}

#[test]
fn p1_too_few_descriptors_are_a_clear_error_and_what_was_accepted_still_ends() {
    let home = super::home();
    let started =
        home.command().env("HOMING_RECONCILE_INTERVAL", "200ms").args(["daemon", "start"]).status().unwrap();
    assert!(started.success());
    let kept = home.submit(&["--stdin", "pipe"], "read line; exit 7");
    let _ = home.until_status(&kept, "running");
    let daemon = home.daemon_pid();
    let pid = Pid::from_raw(i32::try_from(daemon).unwrap());
    let own = rustix::process::getrlimit(Resource::Nofile);
    let (mut refused, mut accepted) = (0, Vec::new());
    // Enough to hear the request and not to judge the caller, not to make a folder, not to hold the shim's line; then enough.
    for more in 1..=6 {
        let tight = Rlimit { current: Some(limit_for(daemon, more)), ..own };
        prlimit(pid, Resource::Nofile, tight).unwrap();
        let answer = home.cli(["run", "-c", "exit 3"]);
        if answer.code == 0 {
            accepted.push(answer.text());
        } else {
            assert!(is_refused(&answer, &["HM0030"]), "{more} more: {answer:?}");
            refused += 1;
        }
    }
    assert!(refused > 0, "one more was enough");
    prlimit(pid, Resource::Nofile, own).unwrap();
    works_again(&home);
    for id in accepted {
        let task = home.ended(&id);
        let reason = task["outcome"]["reason"].as_str().unwrap_or_default();
        assert!(task["outcome"]["exit_code"] == 3 || reason.contains("Too many open files"), "{task}");
    }
    let _ = home.cli(["input", &kept, "go", "--enter"]).ok();
    assert_eq!(home.ended(&kept)["outcome"]["exit_code"], 7);
    assert_eq!(home.daemon_pid(), daemon);
}

#[test]
fn p4_a_daemon_that_begins_what_the_last_one_accepted_serves_while_that_runs() {
    let home = super::home();
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    freeze(keeper);
    let id = home.submit(&[], "echo ran >> runs; exec sleep 1000");
    home.kill_at_once(&[daemon, keeper]);
    let running = home.until_status(&id, "running");
    assert_eq!((home.told("runs").as_str(), &running["attempt"]), ("ran", &json!(1)));
}

/// A group in which only so many processes may be; gone when dropped.
struct Crowd(PathBuf);

impl Crowd {
    fn of(processes: &[u32]) -> Option<Self> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/pids/homing-test-{}", std::process::id()));
        if std::fs::create_dir(&path).is_err() {
            left_out("no cgroup with a limit of processes can be made here");
            return None;
        }
        for pid in processes {
            std::fs::write(path.join("cgroup.procs"), pid.to_string()).unwrap();
        }
        Some(Self(path))
    }

    /// Room for this many; none: any number.
    fn limit(&self, most: Option<u32>) {
        let text = most.map_or_else(|| "max".to_owned(), |most| most.to_string());
        std::fs::write(self.0.join("pids.max"), text).unwrap();
    }

    fn is_alone(&self) -> bool {
        std::fs::read_to_string(self.0.join("pids.current")).unwrap().trim() == "1"
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for pid in std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = std::fs::write("/sys/fs/cgroup/pids/cgroup.procs", pid);
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn too_many_processes_are_a_start_that_failed_with_its_reason_and_pass() {
    let home = super::home();
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    let Some(crowd) = Crowd::of(&[keeper]) else { return };
    // No room for the shim; then room for the shim and not for the command.
    for most in [1, 2] {
        wait_for("the keeper alone", || crowd.is_alone().then_some(()));
        crowd.limit(Some(most));
        let id = home.submit(&[], "true");
        let task = home.ended(&id);
        assert_eq!(task["status"], "start_failed", "{task}");
        let reason = task["outcome"]["reason"].as_str().unwrap();
        assert!(reason.contains("temporarily unavailable"), "{reason}");
        crowd.limit(None);
        works_again(&home);
    }
    assert_eq!((home.daemon_pid(), home.keeper_pid()), (daemon, keeper));
}

/// The database of a home whose daemon has left.
fn closed_database(home: &Home) -> PathBuf {
    let _ = home.cli(["run", "--wait", "--", "true"]).ok();
    let _ = home.cli(["daemon", "stop"]).ok();
    wait_for("everybody to leave", || home.all_processes().is_empty().then_some(()));
    home.path().join("homing.db")
}

/// Asks for the daemon, which must refuse the database with this code and leave it as it is.
fn refuses(home: &Home, database: &Path, code: &str, advice: &str) {
    let before = std::fs::read(database).unwrap();
    for arguments in [&["status"][..], &["run", "--", "true"]] {
        let refused = home.cli(arguments);
        assert_ne!(refused.code, 0);
        assert!(refused.stderr.contains(code) && refused.stderr.contains(advice), "{refused:?}");
    }
    assert!(std::fs::read(database).unwrap() == before, "it was left as it is");
}

#[test]
fn a_damaged_database_is_refused_with_advice_and_left_alone() {
    for damage in [|file: &Path| std::fs::write(file, "no database").unwrap(), truncate, empty] {
        let home = super::home();
        let database = closed_database(&home);
        damage(&database);
        refuses(&home, &database, "HM0014", "move homing.db");
        std::fs::remove_file(&database).unwrap();
        works_again(&home);
    }
}

fn empty(file: &Path) {
    std::fs::write(file, "").unwrap();
}

fn truncate(file: &Path) {
    let open = std::fs::File::options().write(true).open(file).unwrap();
    open.set_len(open.metadata().unwrap().len() / 2 + 100).unwrap();
}

#[test]
fn a_database_of_a_later_release_is_refused_with_advice_and_left_alone() {
    let home = super::home();
    let database = closed_database(&home);
    let file = std::fs::File::options().write(true).open(&database).unwrap();
    // `PRAGMA user_version`, where SQLite keeps it.
    file.write_all_at(&9_999_u32.to_be_bytes(), 60).unwrap();
    refuses(&home, &database, "HM0015", "Run that release");
}

#[test]
fn p2_a_task_whose_folder_is_taken_away_ends_with_the_truth() {
    let home = super::home();
    let kill_too = [false, true];
    for kill in kill_too {
        let id = home.submit(&["--stdin", "pipe"], "echo words; read line; exit 7");
        let _ = home.until_status(&id, "running");
        let shim = home.shim_pid(&id);
        // With its first words the shim makes one more file, which would keep the folder from going.
        wait_for("its words", || (home.output(&id) == b"words\n").then_some(()));
        std::fs::remove_dir_all(home.path().join("tasks").join(&id)).unwrap();
        if kill {
            let _ = home.kill_daemon();
        }
        let _ = home.cli(["input", &id, "go", "--enter"]);
        wait_for("the shim's end", || (!alive(shim)).then_some(()));
        let task = home.ended(&id);
        let honest = match task["status"].as_str().unwrap() {
            "failed" => task["outcome"]["exit_code"] == 7,
            "lost" => task["outcome"]["exit_code"].is_null() && task["outcome"]["reason"].is_string(),
            _ => false,
        };
        assert!(honest, "{task}");
        let _ = home.cli(["output", &id]);
        works_again(&home);
    }
}

#[test]
fn an_unknown_or_broken_setting_is_named_with_its_line_and_the_last_good_ones_hold() {
    let home = super::home();
    let daemon = home.daemon_pid();
    let config = home.path().join("config.toml");
    std::fs::write(&config, "[reconcile]\ninterval = \"3s\"\n").unwrap();
    let _ = home.cli(["config", "--check"]).ok();
    let _ = home.cli(["daemon", "restart"]).ok();
    assert_eq!(home.cli(["status", "--json"]).ok().json()["reconcile"]["interval_ms"], 3000);
    // Whole at once: for a moment it would be an empty one, which is sound, and is kept as the last good one by whoever reads it then.
    let draft = home.path().join("config.draft");
    std::fs::write(&draft, "[reconcile]\ninterval = \"3s\"\n\n[output]\nmaximum = 3\n").unwrap();
    std::fs::rename(&draft, &config).unwrap();
    let broken = home.cli(["config", "--check"]);
    assert_eq!(broken.code, 1);
    assert!(broken.stderr.contains("line 5") && broken.stderr.contains("maximum"), "{}", broken.stderr);
    assert!(broken.stderr.contains("HM0022"), "{}", broken.stderr);
    let _ = home.cli(["daemon", "restart"]).ok();
    assert_ne!(home.daemon_pid(), daemon);
    assert_eq!(home.cli(["status", "--json"]).ok().json()["reconcile"]["interval_ms"], 3000);
}

/// The machine's clock, moved.
struct Moved(AtomicI64);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus_millis(self.0.load(Ordering::Relaxed))
    }
}

#[tokio::test]
async fn p2_a_clock_that_jumps_changes_no_outcome_and_no_duration() {
    const DAYS: i64 = 30 * 86_400_000;
    for jump in [-DAYS, DAYS] {
        let home = super::home();
        let clock = Arc::new(Moved(AtomicI64::new(0)));
        let engine = Engine::builder(home.path()).helper(home.program().to_owned()).clock(clock.clone());
        let engine = engine.open().await.unwrap();
        let submit = |line: &str, timeout_ms| {
            let spec = Spec { shell: Some(line.into()), timeout_ms, ..Spec::default() };
            engine.submit(spec, Caller::default(), None)
        };
        let plain = submit("sleep 0.2; exit 5", None).await.unwrap().task.id;
        let limited = submit("sleep 1000", Some(300)).await.unwrap().task.id;
        let patient = submit("sleep 0.2", Some(60_000)).await.unwrap().task.id;
        clock.0.store(jump, Ordering::Relaxed);
        let ended = engine.wait(&[plain, limited, patient], WaitMode::All, None).await.unwrap().items;
        let statuses: Vec<_> = ended.iter().map(|task| task.status).collect();
        assert_eq!(statuses, [Status::Failed, Status::TimedOut, Status::Succeeded]);
        for task in &ended {
            let took = task.duration_ms.unwrap();
            assert!((150..20_000).contains(&took), "{took} after a jump of {jump}");
            assert!(task.ended_at >= task.started_at, "{:?} {:?}", task.started_at, task.ended_at);
        }
        assert_eq!(ended[0].outcome.as_ref().unwrap().exit_code, Some(5));
    }
}

#[test]
fn p10_a_shortage_of_descriptors_costs_an_accepted_task_none_of_its_secrets() {
    let home = super::home();
    let started =
        home.command().env("HOMING_RECONCILE_INTERVAL", "200ms").args(["daemon", "start"]).status().unwrap();
    assert!(started.success());
    let daemon = home.daemon_pid();
    let pid = Pid::from_raw(i32::try_from(daemon).unwrap());
    let own = rustix::process::getrlimit(Resource::Nofile);
    let open = std::fs::read_dir(format!("/proc/{daemon}/fd")).unwrap().count() as u64;
    let mut accepted = Vec::new();
    // At some of these the task can be accepted, and not be handed to a shim.
    for more in 1..=8 {
        prlimit(pid, Resource::Nofile, Rlimit { current: Some(open + more), ..own }).unwrap();
        let answer = home.cli(["run", "--secret", "CODE=3", "-c", "exit $CODE"]);
        if answer.code == 0 {
            accepted.push(answer.text());
        }
        drift(Duration::from_millis(300));
    }
    prlimit(pid, Resource::Nofile, own).unwrap();
    assert!(!accepted.is_empty());
    for id in accepted {
        let task = home.ended(&id);
        assert_eq!(task["outcome"]["exit_code"], 3, "{task}");
    }
}

#[test]
fn p2_a_record_that_could_not_be_written_is_written_when_it_can_be_and_nobody_else_is_there() {
    let home = super::home();
    let id = home.submit(&[], &format!("{}; exit 7", gate("go")));
    let _ = home.until_status(&id, "running");
    let (shim, daemon, keeper) = (home.shim_pid(&id), home.daemon_pid(), home.keeper_pid());
    // The record is a second name of the marker; while that is elsewhere it cannot be made.
    let folder = home.path().join("tasks").join(&id);
    std::fs::rename(folder.join("started"), folder.join("elsewhere")).unwrap();
    for pid in [keeper, daemon] {
        freeze(pid);
    }
    home.open("go");
    wait_for("the end of the task", || home.task_processes().is_empty().then_some(()));
    drift(Duration::from_millis(300));
    home.kill_at_once(&[daemon]);
    std::fs::rename(folder.join("elsewhere"), folder.join("started")).unwrap();
    wait_for("the record", || folder.join("exit").exists().then_some(()));
    thaw(keeper);
    wait_for("the shim to leave", || (!alive(shim)).then_some(()));
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 7);
}
