//! The daemon as a service: the unit, what watches over the daemon, and a real service manager where one can be had.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use homing_testkit::{Home, Output, alive, copy_program, gate, left_out, wait_for};
use rustix::process::{Pid, Signal, kill_process};

use super::home;

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// A call with a folder of its own for configuration, and without a service manager.
fn alone(home: &Home, arguments: &[&str]) -> Output {
    let mut command = home.command();
    command.args(arguments).env("XDG_CONFIG_HOME", home.scratch().join("config"));
    Home::finish(command.env("XDG_RUNTIME_DIR", home.scratch()))
}

/// Where the unit is, by the word of a dry run.
fn unit_of(home: &Home) -> PathBuf {
    let planned = alone(home, &["daemon", "install", "--dry-run", "--json"]).ok().json();
    PathBuf::from(planned["path"].as_str().unwrap())
}

#[test]
fn without_a_service_manager_nothing_is_written_and_what_to_do_is_said() {
    let home = home();
    let refused = alone(&home, &["daemon", "install"]);
    assert!(refused.code == 1 && refused.stderr.contains("(HM0400)"), "{refused:?}");
    assert!(refused.stderr.contains("homing daemon run") || refused.stderr.contains("linger"), "{refused:?}");
    let shown = alone(&home, &["daemon", "install", "--dry-run"]).ok();
    for line in ["+ KillMode=process", "+ Delegate=yes", "would run systemctl --user enable --now homing-"] {
        assert!(shown.text().contains(line), "{line}: {}", shown.text());
    }
    let home_line = format!("+ Environment=\"HOMING_HOME={}\"", home.path().display());
    assert!(shown.text().contains(&home_line), "{}", shown.text());
    assert!(!home.scratch().join("config").exists(), "nothing was written");
    assert!(!home.path().exists(), "and nobody was started");
}

#[test]
fn a_unit_that_somebody_else_wrote_is_left_alone() {
    let home = home();
    let unit = unit_of(&home);
    std::fs::create_dir_all(unit.parent().unwrap()).unwrap();
    std::fs::write(&unit, "[Service]\nExecStart=/usr/bin/true\n").unwrap();
    for arguments in [&["daemon", "install"][..], &["daemon", "install", "--uninstall"]] {
        let refused = alone(&home, arguments);
        assert!(refused.code == 1 && refused.stderr.contains("(HM0401)"), "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(&unit).unwrap(), "[Service]\nExecStart=/usr/bin/true\n");
    let doctor = alone(&home, &["doctor", "--json"]).json();
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == "service").unwrap();
    assert_eq!(check["state"], "warn", "{check}");
}

#[test]
fn systemd_itself_finds_nothing_wrong_with_the_unit() {
    if !is_there("systemd-analyze") {
        return left_out("systemd-analyze is not there (package systemd)");
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["plain", "a $dollar 50%", "it's \"quoted\"", "back\\slash $x"] {
        let program = folder.path().join(name).join("homing");
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        copy_program(home().program(), &program);
        verify(&Home::new(&program));
    }
}

fn verify(home: &Home) {
    let planned = alone(home, &["daemon", "install", "--dry-run", "--json"]).ok().json();
    let text: String =
        planned["diff"].as_str().unwrap().lines().filter_map(|line| line.strip_prefix("+ ")).fold(
            String::new(),
            |mut text, line| {
                text.push_str(line);
                text.push('\n');
                text
            },
        );
    let unit = home.scratch().join("homing-verified.service");
    std::fs::write(&unit, text).unwrap();
    let runtime = home.scratch().join("runtime");
    std::fs::create_dir(&runtime).unwrap();
    let mut command = Command::new("systemd-analyze");
    command
        .args(["--user", "verify"])
        .arg(&unit)
        .env("XDG_RUNTIME_DIR", &runtime)
        .env("HOME", home.scratch());
    let verified = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    // What other units of this machine lack is not ours.
    assert!(!said.contains("homing-verified"), "{said}");
    assert!(verified.status.success(), "{said}");
}

/// `daemon run --service`, and the socket by which it tells its manager.
struct Watch {
    child: Child,
    told: UnixDatagram,
}

impl Watch {
    fn begin(home: &Home) -> Self {
        let socket = home.scratch().join("notify");
        let _ = std::fs::remove_file(&socket);
        let told = UnixDatagram::bind(&socket).unwrap();
        told.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut command = home.command();
        command.args(["daemon", "run", "--service"]).env("NOTIFY_SOCKET", &socket).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap(), told }
    }

    /// Waits until it says that a daemon serves; answers the daemon's pid.
    fn ready(&self) -> u32 {
        let mut buffer = [0; 512];
        loop {
            let count = self.told.recv(&mut buffer).expect("it tells in time");
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            if let Some((_, rest)) = text.split_once("READY=1\nSTATUS=The daemon is process ") {
                return rest.trim_end_matches('.').parse().unwrap();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), signal).unwrap();
    }

    fn code(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn p4_under_a_service_the_keeper_restarts_the_daemon_and_the_watch_stays() {
    let home = home();
    let mut watch = Watch::begin(&home);
    let first = watch.ready();
    assert_eq!(home.daemon_pid(), first);
    let id = home.submit(&[], &format!("{}; exit 6", gate("go")));
    let _ = home.until_status(&id, "running");
    home.kill(first);
    let second = watch.ready();
    assert_ne!(first, second);
    assert!(watch.child.try_wait().unwrap().is_none());
    // Both, and nobody asks: it is the watch, or the shim, that brings them back; one daemon serves either way.
    home.kill_at_once(&[second, home.keeper_pid()]);
    let third = watch.ready();
    assert_eq!(home.daemon_pid(), third);
    // A restart is no stop.
    home.does(["daemon", "restart"]);
    let fourth = watch.ready();
    assert!(fourth != third && home.daemon_pid() == fourth);
    // The watch itself may die: nothing changes by that, and the next one takes over what it finds.
    watch.signal(Signal::KILL);
    let _ = watch.child.wait().unwrap();
    assert_eq!(home.daemon_pid(), fourth);
    let watch = Watch::begin(&home);
    assert_eq!(watch.ready(), fourth);
    // A stop is one.
    home.stop_daemon();
    assert_eq!(watch.code(), 0);
    assert!(home.path().join("stopped").exists());
    home.open("go");
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 6);
}

#[test]
fn a_service_that_is_stopped_stops_the_daemon_on_purpose_and_tasks_run_on() {
    let home = home();
    let watch = Watch::begin(&home);
    let daemon = watch.ready();
    let id = home.submit(&[], &format!("{}; echo end", gate("go")));
    let _ = home.until_status(&id, "running");
    let shim = home.shim_pid(&id);
    watch.signal(Signal::TERM);
    assert_eq!(watch.code(), 0);
    wait_for("the daemon to leave", || (!alive(daemon)).then_some(()));
    assert!(home.path().join("stopped").exists() && alive(shim));
    home.open("go");
    wait_for("the shim to leave", || (!alive(shim)).then_some(()));
    assert!(home.find_daemon().is_none(), "nobody revives what was stopped");
    assert_eq!(home.ended(&id)["outcome"]["exit_code"], 0);
}

#[test]
fn a_service_that_waits_for_a_restart_to_be_over_is_stopped_all_the_same() {
    let home = home();
    let watch = Watch::begin(&home);
    let daemon = watch.ready();
    // A restart that was suspended half-way, say.
    let lock = std::fs::File::create(home.path().join("restart.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    home.stop_daemon();
    wait_for("the daemon to leave", || (!alive(daemon)).then_some(()));
    let pid = watch.child.id().to_string();
    wait_for("the watch to wait for the restart", || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let waits = |line: &&str| line.contains("->") && line.split_whitespace().any(|word| word == pid);
        locks.lines().find(waits).map(drop)
    });
    watch.signal(Signal::TERM);
    assert_eq!(watch.code(), 0);
}

#[test]
fn a_hang_up_of_the_service_has_the_configuration_read() {
    let home = home();
    let watch = Watch::begin(&home);
    let _ = watch.ready();
    std::fs::write(home.path().join("config.toml"), "[nested]\ndepth = 9\n").unwrap();
    watch.signal(Signal::HUP);
    wait_for("the configuration", || {
        let status = home.cli(["status", "--json"]).ok().json();
        (status["configuration"]["values"]["nested"]["depth"] == 9).then_some(())
    });
    home.stop_daemon();
    assert_eq!(watch.code(), 0);
}

/// Everything that a person does with the service, in a pid namespace with a service manager of its own: whatever is left ends with it.
const SCRIPT: &str = r#"
set -eu
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/user/0
chmod 700 /run/user/0
export XDG_RUNTIME_DIR=/run/user/0
/usr/lib/systemd/systemd --user > manager.log 2>&1 &
until [ -S /run/user/0/systemd/private ]; do sleep 0.05; done
systemctl --user is-system-running --wait > /dev/null || true
step() { echo "step: $*"; }
daemon() { "$HOMING" daemon status --json | tr -d ' \n' | sed 's/.*"daemon":{"pid":\([0-9]*\).*/\1/'; }
main() { systemctl --user show -p MainPID --value "$UNIT"; }
active() { systemctl --user is-active "$UNIT" || true; }
until_true() { n=0; until "$@"; do n=$((n + 1)); [ $n -lt 400 ] || { echo "never: $*"; exit 1; }; sleep 0.05; done; }

"$HOMING" daemon install > install.out
UNIT=$(cd "$HOME/.config/systemd/user" && ls homing-*.service)
[ "$(active)" = active ] && step installed
watch=$(main)
task=$("$HOMING" run -c 'echo begin; until [ -e go ]; do sleep 0.02; done; exit 7')
until_true sh -c "'$HOMING' show $task --json | grep -q '\"running\"'"

first=$(daemon)
kill -9 "$first"
until_true sh -c "'$HOMING' daemon status > /dev/null"
[ "$(daemon)" != "$first" ] && [ "$(main)" = "$watch" ] && [ "$(active)" = active ] && step killed

second=$(daemon)
"$HOMING" daemon restart > /dev/null
[ "$(daemon)" != "$second" ] && [ "$(main)" = "$watch" ] && [ "$(active)" = active ] && step restarted

printf '[nested]\ndepth = 9\n' > "$HOMING_HOME/config.toml"
systemctl --user reload "$UNIT"
"$HOMING" config --json | tr -d ' \n' | grep -q '"depth":9' && step reloaded

third=$(daemon)
kill -9 "$watch"
moved() { now=$(main); [ "$now" != 0 ] && [ "$now" != "$watch" ] && [ "$(active)" = active ]; }
until_true moved
[ "$(daemon)" = "$third" ] && step watched

systemctl --user restart "$UNIT"
[ "$(daemon)" != "$third" ] && [ "$(active)" = active ] && step renewed

systemctl --user stop "$UNIT"
[ "$(active)" = inactive ]
! "$HOMING" daemon status > /dev/null
[ -e "$HOMING_HOME/stopped" ] && step stopped
touch go
sleep 0.3
! "$HOMING" daemon status > /dev/null && step "not revived"
systemctl --user start "$UNIT"
code=0; "$HOMING" wait "$task" || code=$?
[ "$code" = 7 ] && step "the task ran on"

"$HOMING" daemon stop > /dev/null
inactive() { [ "$(active)" = inactive ]; }
until_true inactive
[ "$(systemctl --user is-failed "$UNIT" || true)" = inactive ] && step "a stop is no failure"

"$HOMING" daemon install > again.out
grep -q 'is as it should be' again.out && [ "$(active)" = active ] && step "twice is once"
"$HOMING" doctor --json | tr -d ' \n' | grep -q '"name":"service","state":"ok"' && step "the doctor knows"
"$HOMING" daemon install --uninstall > /dev/null
[ ! -e "$HOME/.config/systemd/user/$UNIT" ] && [ "$(active)" = inactive ] && step uninstalled
echo all
"#;

/// What it says, each if it was so.
const STEPS: [&str; 13] = [
    "installed",
    "killed",
    "restarted",
    "reloaded",
    "watched",
    "renewed",
    "stopped",
    "not revived",
    "the task ran on",
    "a stop is no failure",
    "twice is once",
    "the doctor knows",
    "uninstalled",
];

/// Cgroups that a manager makes at the top of each hierarchy, where nobody else has made them before.
fn manager_groups() -> Vec<PathBuf> {
    let hierarchies =
        std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|entry| entry.path());
    let named = ["app.slice", "background.slice", "session.slice", "init.scope", "user.slice"];
    let all = hierarchies.chain([PathBuf::from("/sys/fs/cgroup")]);
    all.flat_map(|folder| named.map(|name| folder.join(name))).filter(|folder| folder.exists()).collect()
}

fn remove_groups(folder: &Path) {
    for entry in
        std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir())
    {
        remove_groups(&entry.path());
    }
    let _ = std::fs::remove_dir(folder);
}

#[test]
fn under_a_real_service_manager_every_verb_does_what_it_says() {
    let namespaces = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--mount-proc"]).stdin(Stdio::null());
        command
    };
    let allowed = namespaces().args(["mount", "-t", "tmpfs", "tmpfs", "/run"]).output();
    if !Path::new("/usr/lib/systemd/systemd").exists() || !allowed.is_ok_and(|output| output.status.success())
    {
        return left_out("no service manager can be had (package systemd; the right to make namespaces)");
    }
    let before = manager_groups();
    let home = home();
    let user = home.scratch().join("user");
    std::fs::create_dir(&user).unwrap();
    let mut command = namespaces();
    command.args(["sh", "-c", SCRIPT]).current_dir(home.scratch());
    command.env("HOMING", home.program()).env("HOMING_HOME", home.path()).env("HOME", &user);
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME").env_remove("DBUS_SESSION_BUS_ADDRESS");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    for group in manager_groups().iter().filter(|group| !before.contains(group)) {
        remove_groups(group);
    }
    let log = std::fs::read_to_string(home.scratch().join("manager.log")).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.ends_with("all\n"), "{said}\n{errors}\n{log}");
    let steps: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("step: ")).collect();
    assert_eq!(steps, STEPS, "{said}\n{errors}\n{log}");
}
