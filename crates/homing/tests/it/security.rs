//! Nobody enters where they do not belong, and nobody leaves a sandbox through us.
//!
//! Another user, a namespace or a cgroup can only be had by root; where the tests run as somebody else, those that need one say so and pass.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use homing_testkit::{Home, Output, alive, copy_program, gate, left_out, wait_for};

const NOBODY: u32 = 65534;

/// Does something as that user: on Linux a thread may be another one.
fn as_nobody<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    std::thread::spawn(|| {
        let user = rustix::process::Uid::from_raw(NOBODY);
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        work()
    })
}

/// A filter that allows everything, which is still one filter more than the daemon has.
const FILTER: &str = r"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sock_filter allow[] = {{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW }};
    struct sock_fprog program = { 1, allow };
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 99;
    execv(argv[1], argv + 1);
    return 98;
}
";

/// Whether we are root; says what is left out if not.
fn root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        left_out(&format!("only root can try {what}"));
    }
    root
}

/// A call of the command line behind other words, such as `unshare -n`.
fn behind(home: &Home, words: &[&str], arguments: &[&str]) -> Output {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(home.program()).args(arguments);
    command
        .env("HOMING_HOME", home.path())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .current_dir(home.scratch());
    let output = command.output().expect("util-linux is there");
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn filtered(home: &Home) -> String {
    let (source, program) = (home.scratch().join("filter.c"), home.scratch().join("filter"));
    std::fs::write(&source, FILTER).unwrap();
    assert!(Command::new("cc").arg("-o").args([&program, &source]).status().expect("a C compiler").success());
    program.display().to_string()
}

fn assert_confined(refused: &Output, reason: &str) {
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.stderr.contains("HM0016") && refused.stderr.contains(reason), "{refused:?}");
    assert!(refused.stderr.contains("[confined] allow"), "the setting is named: {refused:?}");
}

/// A process that waits, as a task; answers its pid.
fn waiting(home: &Home, options: &[&str]) -> u32 {
    let mut arguments = vec!["run"];
    arguments.extend(options);
    arguments.extend(["--", "sleep", "1000"]);
    let id = home.cli(arguments).ok().text();
    wait_for("sleep itself", || {
        let pid = u32::try_from(home.task(&id)["pid"].as_u64()?).ok()?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name.trim() == "sleep").then_some(pid)
    })
}

fn descriptors(pid: u32) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let named = entries.map(|entry| {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        (entry.file_name().into_string().unwrap(), target)
    });
    let mut found: Vec<_> = named.collect();
    found.sort();
    found
}

#[test]
fn p11_everything_in_the_home_is_for_its_user_alone() {
    let home = super::home();
    let id = home.submit(&["--max-output", "64KiB"], "umask 0; head -c 300000 /dev/zero");
    let _ = home.ended(&id);
    let mut folders = vec![home.path().to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let found = entry.metadata().unwrap();
            assert_eq!(found.mode() & 0o077, 0, "{}", entry.path().display());
            seen += 1;
            folders.extend(found.is_dir().then(|| entry.path()));
        }
    }
    assert!(seen > 8, "{seen}");
    assert_eq!(std::fs::metadata(home.path().join("homing.sock")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn p11_another_user_is_refused_by_the_folder_and_by_the_daemon() {
    if !root("calling as another user") {
        return;
    }
    let home = super::home();
    let _ = home.submit(&[], "true");
    // The binary where anybody can run it.
    let program = home.scratch().join("homing");
    copy_program(home.program(), &program);
    let open = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    open(home.scratch(), 0o755);
    open(&program, 0o755);
    let client = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).arg("list");
        String::from_utf8(command.env("HOMING_HOME", home.path()).output().unwrap().stderr).unwrap()
    };
    let socket = home.path().join("homing.sock");
    // The client refuses the home first; the daemon has to do it by itself.
    let by_hand = || {
        let socket = socket.clone();
        let asking = as_nobody(move || {
            let mut stream = UnixStream::connect(socket)?;
            stream.write_all(b"GET /v1/tasks HTTP/1.1\r\nHost: homing\r\nConnection: close\r\n\r\n")?;
            std::io::read_to_string(stream)
        });
        asking.join().unwrap().unwrap_or_else(|error| error.to_string())
    };
    assert!(client().contains("HM0018") && client().contains("another user"), "{}", client());
    assert!(by_hand().contains("Permission denied"), "{}", by_hand());
    // Even if somebody opens all doors on disk, the daemon asks the kernel who calls.
    open(home.path(), 0o755);
    open(&socket, 0o666);
    assert!(client().contains("HM0018"), "{}", client());
    let refused = by_hand();
    assert!(refused.contains("HM0017") && refused.contains("user 65534"), "{refused}");
    open(home.path(), 0o700);
    assert_eq!(home.cli(["list", "--json"]).ok().json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn p11_nothing_is_sent_to_a_daemon_of_another_user() {
    if !root("a daemon of another user") {
        return;
    }
    let home = super::home();
    let foreign = home.scratch().join("foreign");
    for (folder, owner) in [(home.path(), 0), (&foreign, NOBODY)] {
        std::fs::create_dir(folder).unwrap();
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();
        chown(folder, Some(owner), None).unwrap();
    }
    std::fs::set_permissions(home.scratch(), PermissionsExt::from_mode(0o755)).unwrap();
    let socket = foreign.join("homing.sock");
    let (at, heard) = (socket.clone(), Arc::new(Mutex::new(Vec::new())));
    let hearing = Arc::clone(&heard);
    let listener = as_nobody(move || UnixListener::bind(at).unwrap()).join().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut bytes = Vec::new();
            let _ = connection.unwrap().read_to_end(&mut bytes);
            hearing.lock().unwrap().push(bytes.len());
        }
    });
    let heard = || heard.lock().unwrap().clone();
    let call = |path: &Path, arguments: &[&str], input: &str| {
        let mut command = home.command();
        let file = home.scratch().join("input");
        std::fs::write(&file, input).unwrap();
        command.env("HOMING_HOME", path).args(arguments).stdin(std::fs::File::open(file).unwrap());
        Home::finish(&mut command)
    };
    let started = r#"{"session_id":"canary-1","hook_event_name":"SessionStart","source":"startup"}"#;
    let listed = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":{}}}"#;
    let asks = |path: &Path, why: &str| {
        for arguments in [&["run", "--secret", "KEY=canary", "--", "true"][..], &["list"]] {
            let refused = call(path, arguments, "");
            assert!(refused.code != 0 && refused.stderr.contains("HM0018"), "{refused:?}");
            assert!(refused.stderr.contains(why), "{arguments:?}: {refused:?}");
        }
        // A hook never stands in its agent's way: it says nothing.
        let hook = call(path, &["hook", "claude", "SessionStart"], started);
        assert_eq!((hook.code, hook.text()), (0, String::new()), "{hook:?}");
        let mcp = call(path, &["mcp", "--owner", "canary"], &format!("{}\n{listed}\n", handshake()));
        assert!(mcp.text().contains("HM0018") && mcp.text().contains(why), "{mcp:?}");
    };
    asks(&foreign, "belongs to another user (uid 65534)");
    assert_eq!(heard(), [0; 0], "the home was refused before anything was connected");
    std::fs::rename(&socket, home.path().join("homing.sock")).unwrap();
    asks(home.path(), "is served by another user (uid 65534)");
    wait_for("a connection of each, given up", || (heard().len() >= 4).then_some(()));
    assert!(heard().iter().all(|bytes| *bytes == 0), "{:?}", heard());
    let before = heard().len();
    let _ = call(home.path(), &["hook", "claude", "SessionStart"], started);
    wait_for("the connection of a hook", || (heard().len() > before).then_some(()));
    assert!(heard().iter().all(|bytes| *bytes == 0), "{:?}", heard());
}

/// What a client of MCP says first.
fn handshake() -> String {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    format!("{hello}\n{}", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
}

#[test]
fn p11_a_caller_that_is_more_confined_is_refused_with_the_reason() {
    let home = super::home();
    let _ = home.daemon_pid();
    let submit = ["run", "-c", "touch escaped"];
    assert_confined(&behind(&home, &["setpriv", "--no-new-privs"], &submit), "no_new_privs");
    if root("namespaces and seccomp filters") {
        assert_confined(&behind(&home, &[&filtered(&home)], &submit), "seccomp");
        assert_confined(&behind(&home, &["unshare", "-m"], &submit), "mount namespace");
        assert_confined(&behind(&home, &["unshare", "-n"], &submit), "network namespace");
        assert_confined(&behind(&home, &["unshare", "-p", "-f"], &submit), "pid namespace");
        assert_confined(&behind(&home, &["unshare", "-U", "-r"], &submit), "user namespace");
    }
    // Reading is refused as well: the output of others is none of their business.
    assert_confined(&behind(&home, &["setpriv", "--no-new-privs"], &["list"]), "no_new_privs");
    assert_eq!(home.cli(["list", "--all", "--json"]).ok().json()["items"], serde_json::json!([]));
    assert!(behind(&home, &["env"], &["list"]).code == 0, "anybody else is served");
}

/// A home that serves confined callers.
fn lenient() -> Home {
    let home = super::home();
    std::fs::create_dir(home.path()).unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(home.path().join("config.toml"), "[confined]\nallow = true\n").unwrap();
    let _ = home.daemon_pid();
    home
}

#[test]
fn p11_a_person_may_allow_confined_callers() {
    let home = lenient();
    let _ = behind(&home, &["setpriv", "--no-new-privs"], &["run", "--wait", "--", "true"]).ok();
}

#[test]
fn p11_confined_callers_are_cut_off_once_refused() {
    let home = lenient();
    let line = format!("echo begun; {}", gate("never"));
    let id = home.submit(&[], &line);
    let mut confined = Command::new("setpriv");
    confined.arg("--no-new-privs").arg(home.program()).args(["output", "-f", &id]);
    confined.env("HOMING_HOME", home.path()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut confined = confined.stderr(Stdio::piped()).spawn().expect("util-linux is there");
    let mut own = home.spawn(["output", "-f", &id]);
    let mut begun = [0; 6];
    for child in [&mut confined, &mut own] {
        child.stdout.as_mut().unwrap().read_exact(&mut begun).unwrap();
    }
    std::fs::write(home.path().join("config.toml"), "").unwrap();
    let refused = confined.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("no_new_privs"), "{said}");
    assert!(own.try_wait().unwrap().is_none(), "others are served on");
    own.kill().unwrap();
    own.wait().unwrap();
}

#[test]
fn p11_a_confined_process_never_starts_the_daemon() {
    let home = super::home();
    let mut cages = vec![vec!["setpriv".to_owned(), "--no-new-privs".to_owned()]];
    if root("seccomp filters") {
        cages.push(vec![filtered(&home)]);
    }
    for cage in cages {
        let words: Vec<_> = cage.iter().map(String::as_str).collect();
        for arguments in [&["run", "--", "true"][..], &["list"], &["daemon", "start"]] {
            let refused = behind(&home, &words, arguments);
            assert!(refused.code != 0 && refused.stderr.contains("HM0016"), "{arguments:?}: {refused:?}");
            assert!(refused.stderr.contains("never starts the daemon"), "{arguments:?}: {refused:?}");
        }
        // In the foreground as well; bounded, since one that did start would serve for ever.
        let refused = behind(&home, &[&["timeout", "20"], &words[..]].concat(), &["daemon", "run"]);
        assert!(refused.code == 1 && refused.stderr.contains("HM0016"), "{refused:?}");
    }
    assert_eq!(home.all_processes(), []);
    assert!(!home.path().join("homing.db").exists());
}

#[test]
fn p11_a_task_never_starts_a_daemon_in_the_background_or_in_the_foreground() {
    let (home, other) = (super::home(), super::home());
    for arguments in ["daemon start", "daemon run", "gc"] {
        let (program, path) = (home.program().display(), other.path().display());
        let line = format!("HOMING_HOME={path} timeout 20 {program} {arguments} 2>&1; echo code $?");
        let id = home.submit(&[], &line);
        let _ = home.ended(&id);
        let said = String::from_utf8(home.output(&id)).unwrap();
        assert!(said.contains("HM0021") && said.contains("code 69"), "{arguments}: {said}");
    }
    assert_eq!(other.all_processes(), []);
    assert!(!other.path().exists(), "nothing is made of a home that is not served");
}

#[test]
fn p11_a_home_that_others_could_tamper_with_is_refused_and_left_alone() {
    let refused = |home: &Home, why: &str| {
        for arguments in [&["run", "--", "true"][..], &["status"]] {
            let refused = home.cli(arguments);
            assert_ne!(refused.code, 0);
            assert!(refused.stderr.contains("HM0018") && refused.stderr.contains(why), "{refused:?}");
        }
        // Nor by the daemon itself, whoever starts it.
        let mut daemon = home.command();
        let ended = daemon.arg("__homing-daemon").arg(home.path()).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && said.contains("HM0018"), "{said}");
        assert_eq!(home.all_processes(), []);
    };
    let linked = super::home();
    let target = linked.scratch().join("target");
    std::fs::create_dir(&target).unwrap();
    std::fs::set_permissions(&target, PermissionsExt::from_mode(0o700)).unwrap();
    symlink(&target, linked.path()).unwrap();
    refused(&linked, "not a real folder");
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
    let open = super::home();
    std::fs::create_dir(open.path()).unwrap();
    std::fs::set_permissions(open.path(), PermissionsExt::from_mode(0o755)).unwrap();
    refused(&open, "open to other users");
    assert_eq!(std::fs::read_dir(open.path()).unwrap().count(), 0);
    let plain = super::home();
    std::fs::write(plain.path(), "").unwrap();
    refused(&plain, "not a real folder");
    if root("a folder of another user") {
        let foreign = super::home();
        std::fs::create_dir(foreign.path()).unwrap();
        std::fs::set_permissions(foreign.path(), PermissionsExt::from_mode(0o700)).unwrap();
        chown(foreign.path(), Some(NOBODY), None).unwrap();
        refused(&foreign, "belongs to another user");
    }
    // A slash at the end would follow the link.
    let slashed = linked.path().join("");
    let refused = linked.cli(["--home", slashed.to_str().unwrap(), "list"]);
    assert!(refused.stderr.contains("HM0018") && refused.stderr.contains("is a link"), "{refused:?}");
    for mode in ["__homing-daemon", "__homing-keeper"] {
        let ended = linked.command().arg(mode).arg(&slashed).arg("0").output().unwrap();
        assert!(!ended.status.success(), "{mode}: {ended:?}");
    }
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn p11_no_descriptor_but_the_three_reaches_a_task_and_none_of_the_callers_reaches_the_daemon() {
    let home = super::home();
    let line = "exec 7</etc/passwd 8>held 9<>held; exec \"$0\" daemon start";
    let started = behind(&home, &["bash", "-c", line], &[]).ok();
    assert!(started.text().contains("pid"));
    for options in [&[][..], &["--pty"], &["--stdin", "pipe"]] {
        let found = descriptors(waiting(&home, options));
        let numbers: Vec<_> = found.iter().map(|(number, _)| number.as_str()).collect();
        assert_eq!(numbers, ["0", "1", "2"], "{options:?}: {found:?}");
    }
    for process in home.all_processes() {
        let strange = |path: &Path| path == Path::new("/etc/passwd") || path.ends_with("held");
        let leaked: Vec<_> = descriptors(process.pid).into_iter().filter(|(_, path)| strange(path)).collect();
        assert_eq!(leaked, [], "{process:?}");
    }
}

#[test]
fn signals_are_as_a_login_leaves_them_whatever_the_caller_ignores() {
    let home = super::home();
    let line = "trap '' HUP INT QUIT PIPE TERM USR1 CHLD; exec \"$0\" daemon start";
    let _ = behind(&home, &["bash", "-c", line], &[]).ok();
    let status = std::fs::read_to_string(format!("/proc/{}/status", waiting(&home, &[]))).unwrap();
    // 32 and 33 belong to the C library, which ignores them in whatever it spawns and lets nobody change that.
    let own = 3 << 31;
    for field in ["SigBlk", "SigIgn", "SigCgt", "SigPnd"] {
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        let set = u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap();
        assert_eq!(set & !own, 0, "{field}: {set:x}");
    }
}

/// A process that ends with the test, and with it everything in its session.
struct Starter(std::process::Child);

impl Drop for Starter {
    fn drop(&mut self) {
        for process in homing_sys::process::descendants(self.0.id()) {
            let _ = rustix::process::kill_process_group(pid(process.pid), rustix::process::Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn p3_the_daemon_outlives_the_session_the_group_and_the_cgroup_of_whoever_started_it() {
    let home = super::home();
    let cgroup = PathBuf::from(format!("/sys/fs/cgroup/unified/homing-test-{}", std::process::id()));
    let caged =
        root("a cgroup") && cgroup.parent().is_some_and(Path::exists) && std::fs::create_dir(&cgroup).is_ok();
    let enter = if caged { format!("echo $$ > {}/cgroup.procs; ", cgroup.display()) } else { String::new() };
    let line = format!("{enter}\"$0\" run -- sleep 1000 > id; echo ready > ready; exec sleep 1000");
    let mut starter = Command::new("setsid");
    starter.args(["--wait", "bash", "-c", &line]).arg(home.program()).current_dir(home.scratch());
    starter.env("HOMING_HOME", home.path()).process_group(0).stderr(Stdio::null());
    let starter = Starter(starter.spawn().unwrap());
    assert_eq!(home.told("ready"), "ready");
    let id = home.told("id");
    let task = u32::try_from(home.until_status(&id, "running")["pid"].as_u64().unwrap()).unwrap();
    let processes = home.all_processes();
    assert_eq!(processes.len(), 3, "keeper, daemon and shim: {processes:?}");
    // All that is left of the starter, the way a terminal or an agent's sandbox is torn down.
    let shell = homing_sys::process::descendants(starter.0.id());
    assert!(!shell.is_empty());
    if caged {
        std::fs::write(cgroup.join("cgroup.kill"), "1").unwrap();
        wait_for("an empty cgroup", || std::fs::remove_dir(&cgroup).ok());
    }
    drop(starter);
    for process in processes {
        assert!(alive(process.pid), "{process:?}");
        let session = rustix::process::getsid(Some(pid(process.pid))).unwrap();
        assert!(
            !shell.iter().any(|other| pid(other.pid) == session),
            "{process:?} is in the starter's session"
        );
    }
    assert!(alive(task));
}

fn pid(number: u32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

#[test]
fn p11_a_secret_is_nowhere_on_disk_and_an_environment_only_until_the_start() {
    let home = super::home();
    // Another run of this test beside this one has others.
    let own = std::process::id();
    let (secret, value) = (&format!("canary-{own:08x}"), &format!("canary-{:08x}", !own));
    let mut starting = home.command();
    let started = starting.env("HOMING_LOG", "trace").args(["daemon", "start"]).output().unwrap();
    assert!(started.status.success());
    let line = "echo ${#TOKEN} ${#VISIBLE}; exec sleep 1000";
    // Not by `--env`, which is kept for a rerun.
    let mut command = home.command();
    command.env("VISIBLE", value).args(["run", "--secret", &format!("TOKEN={secret}"), "-c", line]);
    let id = Home::finish(&mut command).ok().text();
    wait_for("its words", || (home.output(&id) == b"15 15\n").then_some(()));
    let seen = format!("{} {}", home.cli(["show", &id, "--json"]).text(), home.cli(["events"]).text());
    assert!(seen.contains("TOKEN") && seen.contains("VISIBLE") && !seen.contains("canary-"), "{seen}");
    let _ = home.kill_daemon();
    let _ = home.until_status(&id, "running");
    let mut folders = vec![home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            folders.extend(kind.is_dir().then(|| entry.path()));
            let bytes = if kind.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
            let found = bytes.windows(7).any(|window| window == b"canary-");
            assert!(!found, "a value is in {}", entry.path().display());
        }
    }
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let ours = line
            .windows(secret.len())
            .any(|window| window == secret.as_bytes() || window == value.as_bytes());
        assert!(!ours, "{}", String::from_utf8_lossy(&line));
    }
}

#[test]
fn p11_what_a_task_left_is_still_inside_of_it_after_a_daemon_restart() {
    let home = super::home();
    std::fs::create_dir(home.path()).unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(home.path().join("config.toml"), "[nested]\ndepth = 0\n").unwrap();
    let line =
        format!("({}; \"$HOMING\" run -- true 2> refusal; echo $? > code) & echo left > left", gate("say"));
    let mut command = home.command();
    command.env("HOMING", home.program()).args(["run", "-c", &line]);
    let id = String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned();
    assert_eq!(home.ended(&id)["status"], "succeeded");
    let killed = home.kill_daemon();
    let _ = home.next_daemon(killed);
    home.open("say");
    assert_ne!(home.told("code"), "0", "a task was nested beyond the limit");
    assert!(home.truth("refusal").contains("HM0033"), "{}", home.truth("refusal"));
}

#[test]
fn p11_a_command_inside_a_task_names_no_targets_unless_it_may() {
    let home = super::home();
    let hook = format!("exec:touch '{}'", home.scratch().join("hooked").display());
    let line = "\"$HOMING\" run --notify \"$HOOK\" -- true 2> refusal; echo $? > code; \
                \"$HOMING\" run --allow-nested-notify -- true 2>> refusal; echo $? >> code; \"$HOMING\" run -- true; echo $? >> code";
    let run = |options: &[&str]| {
        let mut command = home.command();
        command.env("HOMING", home.program()).env("HOOK", &hook).args(["run", "--wait"]).args(options);
        assert!(command.args(["-c", line]).output().unwrap().status.success());
        home.truth("code")
    };
    assert_eq!(run(&[]), "1\n1\n0\n");
    let refusal = home.truth("refusal");
    assert!(refusal.contains("HM0038") && refusal.contains("--allow-nested-notify"), "{refusal}");
    assert_eq!(run(&["--allow-nested-notify"]), "0\n0\n0\n");
    wait_for("the hook", || home.scratch().join("hooked").exists().then_some(()));
}
