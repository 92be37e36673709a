//! Who calls: the process that made the connection, whatever its pid means by the time the daemon looks.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use homing_model::TaskId;
use homing_testkit::{Home, freeze, left_out, thaw, wait_for};

/// A confined process connects, asks and ends; an unconfined one gets its pid; then the answer is printed.
const REUSE: &str = r#"
import ctypes, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
ours, theirs = socket.socketpair()
caller = os.fork()
if caller == 0:
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(b"GET /v1/tasks HTTP/1.1\r\nhost: homing\r\nconnection: close\r\n\r\n")
    socket.send_fds(theirs, [b"x"], [s.fileno()])
    os._exit(0)
_, [connection], _, _ = socket.recv_fds(ours, 1, 1)
os.waitpid(caller, 0)
number = (ctypes.c_int * 1)(caller)
# clone_args: exit_signal is the fifth, set_tid and its length are the ninth and tenth.
args = (ctypes.c_uint64 * 11)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(number), 1, 0)
stranger = libc.syscall(435, ctypes.byref(args), ctypes.sizeof(args))
if stranger == 0:
    while True:
        libc.pause()
if stranger != caller:
    print("not reused", ctypes.get_errno(), flush=True)
    sys.exit(0)
print("reused", flush=True)
answer = b""
while piece := os.read(connection, 65536):
    answer += piece
os.kill(stranger, signal.SIGKILL)
os.waitpid(stranger, 0)
sys.stdout.write(answer.decode())
"#;

#[test]
fn p11_a_caller_that_ended_is_refused_though_its_pid_lives() {
    if !rustix::process::geteuid().is_root() {
        left_out("only root can choose the pid of a process");
        return;
    }
    let home = super::home();
    let daemon = home.daemon_pid();
    // Another process may take the pid first; it does not every time.
    for _ in 0..20 {
        freeze(daemon);
        let mut python = Command::new("python3");
        python.args(["-c", REUSE]).arg(home.path().join("homing.sock")).stdout(Stdio::piped());
        let mut python = python.spawn().unwrap();
        let mut said = BufReader::new(python.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        thaw(daemon);
        let mut answer = String::new();
        said.read_to_string(&mut answer).unwrap();
        assert!(python.wait().unwrap().success());
        if line == "reused\n" {
            assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
            assert!(answer.contains("HM0017") && answer.contains("has ended"), "{answer}");
            return;
        }
    }
    panic!("no pid could be used again");
}

/// Opens connections until one is refused or there are so many, keeps them, and says how many there are.
const HOG: &str = r#"
import resource, socket, sys, time
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
for number in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    if sys.argv[3] == "busy":
        s.sendall(b"GET /v1/events HTTP/1.1\r\nhost: homing\r\n\r\n")
    held.append(s)
print(len(held), flush=True)
while sys.argv[3] == "churn":
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.close()
sys.stdin.read()
"#;

#[test]
fn p11_one_hog_does_not_lock_the_owner_out() {
    let home = super::home();
    let started = home.command().args(["daemon", "start"]).env("HOMING_HOME", home.path()).status().unwrap();
    assert!(started.success());
    let script = home.scratch().join("hog.py");
    std::fs::write(&script, HOG).unwrap();
    let pid = i32::try_from(home.daemon_pid()).ok().and_then(rustix::process::Pid::from_raw);
    // As where 4096 is all that a session may have.
    let files = rustix::process::Rlimit { current: Some(4096), maximum: Some(4096) };
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, files).unwrap();
    let socket = home.path().join("homing.sock");
    let (script, socket) = (script.display(), socket.display());
    for how in ["idle", "busy"] {
        let line = format!("exec python3 {script} {socket} 4300 {how} > {how}");
        let id = home.submit(&["--stdin", "pipe"], &line);
        assert_eq!(home.told(how), "4300", "the hog is held up by none of this");
        let listed = home.cli(["list", "--json"]).ok().json();
        assert!(listed["items"].as_array().unwrap().iter().any(|task| task["id"] == *id), "{listed}");
        let more = home.submit(&[], "exit 3");
        assert_eq!(home.ended(&more)["outcome"]["exit_code"], 3);
    }
    home.stop_daemon();
}

#[test]
fn p11_tasks_that_connect_and_close_do_not_exhaust_the_daemon() {
    let home = super::home();
    let daemon = home.daemon_pid();
    let script = home.scratch().join("hog.py");
    std::fs::write(&script, HOG).unwrap();
    let socket = home.path().join("homing.sock");
    let (script, socket) = (script.display(), socket.display());
    let hogs: Vec<_> =
        (0..3).map(|n| home.submit(&[], &format!("exec python3 {script} {socket} 0 churn > h{n}"))).collect();
    for n in 0..3 {
        assert_eq!(home.told(&format!("h{n}")), "0");
    }
    for _ in 0..20 {
        let _ = home.cli(["list", "--json"]).ok();
        let open = std::fs::read_dir(format!("/proc/{daemon}/fd")).unwrap().count();
        assert!(open < 500, "{open} descriptors");
    }
    for hog in &hogs {
        let _ = home.cli(["stop", "--grace", "0s", hog]).ok();
    }
    assert_eq!(home.daemon_pid(), daemon);
}

#[test]
fn p11_a_hog_at_the_keeper_leaves_room_for_the_daemon() {
    let home = super::home();
    let daemon = home.daemon_pid();
    let keeper = i32::try_from(home.keeper_pid()).ok().and_then(rustix::process::Pid::from_raw);
    let files = rustix::process::Rlimit { current: Some(200), maximum: Some(200) };
    rustix::process::prlimit(keeper, rustix::process::Resource::Nofile, files).unwrap();
    let mut hog = Command::new("python3");
    let at_keeper = HOG.replace("socket.AF_UNIX)", "socket.AF_UNIX, socket.SOCK_SEQPACKET)");
    hog.args(["-c", &at_keeper]).arg(home.path().join("keeper.sock")).args(["190", "idle"]);
    let mut hog = hog.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(hog.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "190\n");
    assert_eq!(home.cli(["run", "--wait", "-c", "exit 3"]).code, 3, "shims are forked");
    home.kill(daemon);
    let next = home.next_daemon(daemon);
    assert_eq!(home.cli(["run", "--wait", "-c", "exit 4"]).code, 4);
    assert_eq!(home.daemon_pid(), next);
    drop(hog.stdin.take());
    assert!(hog.wait().unwrap().success());
}

/// Asks the listener for the list, with what is in the home's token file.
fn by_token(home: &Home, words: &[&str]) -> String {
    let port = home.get("/v1/listener").json()["port"].as_u64().unwrap();
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /v1/tasks HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\
         authorization: Bearer %s\r\n\r\n' \"$(cat token)\" >&3; cat <&3"
    );
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["bash", "-c", &script]).current_dir(home.path());
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}

fn listening() -> Home {
    let home = super::home();
    let _ = home.daemon_pid();
    assert_eq!(home.http("POST", "/v1/listener", &[], b"").whole().status, 200);
    home
}

#[test]
fn p11_a_sandbox_that_shares_the_network_gets_nothing_by_the_token() {
    let home = listening();
    assert!(by_token(&home, &["env"]).starts_with("HTTP/1.1 200"));
    let refused = |words: &[&str], reason: &str| {
        let said = by_token(&home, words);
        assert!(said.starts_with("HTTP/1.1 403") && said.contains("HM0016"), "{words:?}: {said}");
        assert!(said.contains(reason), "{words:?}: {said}");
    };
    refused(&["setpriv", "--no-new-privs"], "no_new_privs");
    let cage = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid"];
    match Command::new("bwrap").args(&cage[1..]).arg("true").status() {
        Ok(status) if status.success() => refused(&cage, "the caller (pid"),
        Ok(_) | Err(_) => left_out("bubblewrap is not there, or may not be used"),
    }
    assert!(home.get("/v1/listener").json()["refused"].as_u64().unwrap() > 0);
    std::fs::write(home.path().join("config.toml"), "[confined]\nallow = true\n").unwrap();
    assert_eq!(home.http("POST", "/v1/config/reload", &[], b"").whole().status, 200);
    assert!(by_token(&home, &["setpriv", "--no-new-privs"]).starts_with("HTTP/1.1 200"));
}

/// A caller is judged once for a connection, so one that is refused from now on has to come again.
#[test]
fn p11_listener_connections_end_once_confined_are_refused() {
    let home = listening();
    let configure = |text: &str| {
        std::fs::write(home.path().join("config.toml"), text).unwrap();
        assert_eq!(home.http("POST", "/v1/config/reload", &[], b"").whole().status, 200);
    };
    configure("[confined]\nallow = true\n");
    let port = home.get("/v1/listener").json()["port"].as_u64().unwrap();
    let script = format!(
        "trap '' PIPE; exec 3<>/dev/tcp/127.0.0.1/{port}; token=$(cat '{}/token')\n\
         ask() {{ printf 'GET /v1/status HTTP/1.1\\r\\nhost: 127.0.0.1:{port}\\r\\nauthorization: Bearer %s\\r\\n\\r\\n' \"$token\" >&3; }}\n\
         ask; read -r status _ <&3; echo \"$status\"; read -r _; ask; timeout 20 cat <&3 | grep -c HTTP/1.1",
        home.path().display()
    );
    let mut confined = Command::new("setpriv");
    confined.args(["--no-new-privs", "bash", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut confined = confined.spawn().expect("util-linux is there");
    let mut out = BufReader::new(confined.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "HTTP/1.1\n", "it is served");
    configure("");
    confined.stdin.take().unwrap().write_all(b"\n").unwrap();
    line.clear();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "0\n", "the second request has no answer");
    let _ = confined.wait();
}

#[test]
fn p11_a_task_that_comes_by_the_listener_is_still_inside() {
    let home = listening();
    let _ = home.submit(&["--name", "other"], "true");
    let (port, path) =
        (home.get("/v1/listener").json()["port"].as_u64().unwrap(), home.path().display().to_string());
    let line = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'POST /v1/gc HTTP/1.1\\r\\nhost: 127.0.0.1:{port}\\r\\nconnection: close\\r\\n\
         authorization: Bearer %s\\r\\n\\r\\n' \"$(cat {path}/token)\" >&3; cat <&3"
    );
    let id = home.cli(["run", "--", "bash", "-c", &line]).ok().text();
    let _ = home.ended(&id);
    let said = String::from_utf8_lossy(&home.output(&id)).into_owned();
    assert!(said.starts_with("HTTP/1.1 403") && said.contains("HM0054"), "{said}");
}

#[test]
fn p11_idle_connections_of_another_user_do_not_starve_the_listener() {
    if !rustix::process::geteuid().is_root() {
        left_out("only root can become another user");
        return;
    }
    let home = listening();
    let port = home.get("/v1/listener").json()["port"].as_u64().unwrap();
    let script = format!(
        "for _ in {{1..600}}; do exec {{fd}}<>/dev/tcp/127.0.0.1/{port} || exit; done; echo 600; read _"
    );
    let mut flood = Command::new("setpriv");
    flood.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script]);
    let mut flood = flood.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(flood.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "600\n");
    assert!(by_token(&home, &["env"]).starts_with("HTTP/1.1 200"));
    assert!(home.get("/v1/listener").json()["connections"].as_u64().unwrap() <= 128);
    drop(flood.stdin.take());
    let _ = flood.wait();
}

#[test]
fn p11_a_caller_with_fewer_capabilities_or_groups_is_refused() {
    if !rustix::process::geteuid().is_root() {
        left_out("only root has capabilities and groups to give up");
        return;
    }
    let home = super::home();
    let call = |words: &[&str], arguments: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(home.program()).args(arguments);
        command.env("HOMING_HOME", home.path()).env("NO_COLOR", "1").current_dir(home.scratch());
        Home::finish(&mut command)
    };
    let groups = ["setpriv", "--groups=0,4,27"];
    let _ = call(&groups, &["daemon", "start"]).ok();
    let refused = |words: &[&str], reason: &str| {
        let said = call(words, &["list"]);
        assert!(said.code != 0 && said.stderr.contains("HM0016"), "{words:?}: {said:?}");
        assert!(said.stderr.contains(reason), "{words:?}: {said:?}");
    };
    let _ = call(&groups, &["list"]).ok();
    let _ = call(&["setpriv", "--groups=0,4,27,44"], &["list"]).ok();
    refused(&["setpriv", "--groups=0,4"], "group 27");
    refused(&["setpriv", "--clear-groups"], "group 4");
    refused(&["setpriv", "--groups=0,4,27", "--bounding-set=-sys_time"], "capabilities");
    for (flag, name) in [("-i", "ipc"), ("-u", "uts"), ("-C", "cgroup"), ("-T", "time")] {
        refused(
            &["setpriv", "--groups=0,4,27", "unshare", flag, "--fork"],
            &format!("another {name} namespace"),
        );
    }
    // A login with fewer groups is no sandbox: it may start the daemon.
    let _ = call(&groups, &["daemon", "stop"]).ok();
    wait_for("the daemon to leave", || home.find_daemon().is_none().then_some(()));
    let _ = call(&["setpriv", "--clear-groups"], &["list"]).ok();
    let _ = call(&["setpriv", "--clear-groups"], &["run", "--wait", "--", "true"]).ok();
}

/// Waits until another process is its parent, connects, asks, and hands the connection on.
const ORPHAN: &str = r#"
import os, signal, socket, sys
shim = os.getppid()
print("ready", flush=True)
helper = socket.socket(socket.AF_UNIX)
helper.connect(sys.argv[2])
while os.getppid() == shim:
    os.sched_yield()
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"GET /v1/tasks HTTP/1.1\r\nhost: homing\r\nconnection: close\r\n\r\n")
socket.send_fds(helper, [b"x"], [s.fileno()])
signal.pause()
"#;

/// Prints what is answered on the connection that it is handed.
const HELPER: &str = r#"
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("listening", flush=True)
peer, _ = listener.accept()
_, [connection], _, _ = socket.recv_fds(peer, 1, 1)
print("asked", flush=True)
answer = b""
while piece := os.read(connection, 65536):
    answer += piece
sys.stdout.write(answer.decode())
"#;

/// The same, by a child of it, while it calls itself a shim and has a folder open, locked or not.
const FORGER: &str = r#"
import fcntl, os, signal, socket, sys
shim = os.getppid()
helper = socket.socket(socket.AF_UNIX)
helper.connect(sys.argv[2])
folder = os.open(sys.argv[3], os.O_RDONLY)
if sys.argv[4] == "locked":
    fcntl.flock(folder, fcntl.LOCK_EX)
with open("/proc/self/comm", "w") as name:
    name.write("homing-shim")
left, leaving = os.pipe()
if os.fork() == 0:
    os.read(left, 1)
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(b"GET /v1/tasks HTTP/1.1\r\nhost: homing\r\nconnection: close\r\n\r\n")
    socket.send_fds(helper, [b"x"], [s.fileno()])
    signal.pause()
print("ready", flush=True)
while os.getppid() == shim:
    os.sched_yield()
os.write(leaving, b"x")
os.wait()
"#;

/// What a caller is answered that a task leaves behind when its shim is killed.
fn left_behind(home: &Home, script: &str, arguments: &str) -> String {
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    let meeting = home.scratch().join("meeting");
    for stale in [&meeting, &home.scratch().join("ready")] {
        let _ = std::fs::remove_file(stale);
    }
    let mut helper = Command::new("python3");
    let mut helper = helper.args(["-c", HELPER]).arg(&meeting).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(helper.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    std::fs::write(home.scratch().join("orphan.py"), script).unwrap();
    // With nothing in its environment, so that the daemon does not end it by that.
    let line = format!(
        "exec env -i \"$(command -v python3)\" orphan.py {} {} {arguments} > ready",
        home.path().join("homing.sock").display(),
        meeting.display()
    );
    let id = home.submit(&["--stdin", "pipe"], &line);
    assert_eq!(home.told("ready"), "ready");
    let shim = home.shim_pid(&id);
    // Neither ends what the shim leaves behind before it has asked.
    freeze(daemon);
    freeze(keeper);
    home.kill(shim);
    let mut asked = String::new();
    said.read_line(&mut asked).unwrap();
    assert_eq!(asked, "asked\n");
    thaw(daemon);
    let mut answer = String::new();
    said.read_to_string(&mut answer).unwrap();
    thaw(keeper);
    assert!(helper.wait().unwrap().success());
    answer
}

fn is_orphans(answer: &str) -> bool {
    // Or the daemon had ended it by then.
    answer.starts_with("HTTP/1.1 403") && (answer.contains("HM0433") || answer.contains("has ended"))
}

#[test]
fn p11_a_task_does_not_leave_its_limits_by_killing_its_shim() {
    let home = super::home();
    let answer = left_behind(&home, ORPHAN, "");
    assert!(is_orphans(&answer), "{answer}");
}

#[test]
fn p11_a_helper_that_calls_itself_a_shim_is_in_no_other_task() {
    let home = super::home();
    let folder = |id: &str| home.path().join("tasks").join(id);
    let trusted =
        home.submit(&["--allow-nested-notify", "--stdin", "pipe", "--name", "of-others"], "exec cat");
    let ended = home.submit(&["--allow-nested-notify"], "true");
    let _ = home.ended(&ended);
    let answer = left_behind(&home, FORGER, &format!("{} open", folder(&trusted).display()));
    assert!(is_orphans(&answer), "the folder of a live task: {answer}");
    let answer = left_behind(&home, FORGER, &format!("{} open", folder(&ended).display()));
    assert!(is_orphans(&answer), "the folder of a task that has ended: {answer}");
    // Its lock is free: the caller counts as what that task left, and is limited to it.
    let answer = left_behind(&home, FORGER, &format!("{} locked", folder(&ended).display()));
    assert!(!answer.contains("of-others"), "{answer}");
    let made_up = folder(&TaskId::from_entropy(17).to_string());
    std::fs::create_dir(&made_up).unwrap();
    let answer = left_behind(&home, FORGER, &format!("{} locked", made_up.display()));
    assert!(is_orphans(&answer), "a folder that no task has: {answer}");
}
