//! Who calls: the process that made the connection, whatever its pid means by the time the daemon looks.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

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
import os, socket, sys
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
os.read(0, 1)
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

#[test]
fn p11_a_task_does_not_leave_its_limits_by_killing_its_shim() {
    let home = super::home();
    let (daemon, keeper) = (home.daemon_pid(), home.keeper_pid());
    let meeting = home.scratch().join("meeting");
    let mut helper = Command::new("python3");
    let mut helper = helper.args(["-c", HELPER]).arg(&meeting).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(helper.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    std::fs::write(home.scratch().join("orphan.py"), ORPHAN).unwrap();
    let line = format!(
        "exec python3 orphan.py {} {} > ready",
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
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    // Or the daemon had ended it by then.
    assert!(answer.contains("HM0433") || answer.contains("has ended"), "{answer}");
}
