//! What cannot be made to stand still, and is said: real processes that nobody can hold, a supervisor that does not answer, and one from before there were pauses.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use homing_shim::wire::{Frames, FromShim, frame};
use homing_testkit::{Home, Output, copy_program, freeze, left_out, thaw};

/// Somebody without any rights.
const NOBODY: u32 = 65_534;

#[test]
fn a_supervisor_that_does_not_answer_is_told_of_and_the_task_is_paused_once_it_does() {
    let home = super::home();
    let id = home.submit(&[], "exec sleep 1000");
    let _ = home.until_status(&id, "running");
    let shim = home.shim_pid(&id);
    freeze(shim);
    let refused = home.cli(["pause", &id]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("HM0303") && refused.stderr.contains("homing stop"),
        "{}",
        refused.stderr
    );
    assert_eq!(home.task(&id)["status"], "running", "nothing is said that nobody knows");
    thaw(shim);
    // The order reached it: it stands still now, or this asks again.
    let _ = home.cli(["pause", &id]).ok();
    assert_eq!(home.task(&id)["status"], "paused");
    let _ = home.cli(["resume", &id]).ok();
    assert_eq!(home.task(&id)["status"], "running");
}

/// Stands between a shim and its next daemons, and leaves out what shims said before they could pause. What is not understood is passed on as it is.
fn speaks_as_before(socket: &Path) {
    let real = socket.with_file_name("real.sock");
    std::fs::rename(socket, &real).expect("the socket of a shim");
    let listener = UnixListener::bind(socket).expect("a socket in its place");
    std::thread::spawn(move || {
        // Ends with the process, or with the folder.
        while let Ok((mut daemon, _)) = listener.accept() {
            let Ok(mut shim) = UnixStream::connect(&real) else { return };
            let (Ok(mut orders), Ok(mut taken)) = (daemon.try_clone(), shim.try_clone()) else { return };
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut orders, &mut taken);
                let _ = taken.shutdown(Shutdown::Both);
            });
            let (mut frames, mut piece) = (Frames::default(), [0; 4096]);
            while let Ok(count @ 1..) = shim.read(&mut piece) {
                frames.push(&piece[..count]);
                while let Ok(Some(mut message)) = frames.pop::<FromShim>() {
                    if let FromShim::Standing(standing) = &mut message {
                        standing.stillness = None;
                    }
                    let _ = daemon.write_all(&frame(&message));
                }
            }
            let _ = daemon.shutdown(Shutdown::Both);
        }
    });
}

#[test]
fn a_task_of_a_release_that_could_not_pause_is_refused_and_runs_on() {
    let home = super::home();
    let id = home.submit(&[], "while :; do printf x >> ours; sleep 0.003; done");
    let _ = home.until_status(&id, "running");
    home.stop_daemon();
    let socket = home.path().join("tasks").join(&id).join("shim.sock");
    homing_testkit::wait_for("the shim to be found by the next daemon", || socket.exists().then_some(()));
    speaks_as_before(&socket);
    for command in ["pause", "resume"] {
        let refused = home.cli([command, &id]);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        let told = refused.stderr.contains("HM0301") && refused.stderr.contains("homing rerun");
        assert!(told, "{}", refused.stderr);
    }
    assert_eq!(home.task(&id)["status"], "running");
    let counted = || std::fs::metadata(home.scratch().join("ours")).map_or(0, |file| file.len());
    let then = counted();
    homing_testkit::wait_for("it to run on", || (counted() > then).then_some(()));
    // Everything else is as ever.
    home.does(["stop", "--grace", "0s", &id]);
    assert_eq!(home.task(&id)["status"], "stopped");
}

/// Calls the command line as somebody without rights, who has the home.
pub(super) fn as_nobody(home: &Home, program: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(words);
    for unwanted in ["HOMING_OWNER", "HOMING_TASK_ID", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"]
    {
        command.env_remove(unwanted);
    }
    command.env("HOMING_HOME", home.path()).env("HOME", home.scratch()).env("NO_COLOR", "1");
    command.current_dir(home.scratch()).stdin(std::process::Stdio::null()).uid(NOBODY).gid(NOBODY);
    Home::finish(&mut command)
}

/// A home of somebody without rights, its program, and one that makes root of whoever starts it; none where that cannot be had.
pub(super) fn of_nobody() -> Option<(Home, PathBuf)> {
    let home = super::home();
    let setpriv = Command::new("sh").args(["-c", "command -v setpriv"]).output().ok()?;
    let setpriv = String::from_utf8_lossy(&setpriv.stdout).trim().to_owned();
    if !rustix::process::geteuid().is_root() || setpriv.is_empty() {
        left_out("only root can have a process that another user's supervisor cannot reach");
        return None;
    }
    let (program, rises) = (home.scratch().join("homing"), home.scratch().join("rises"));
    copy_program(home.program(), &program);
    copy_program(Path::new(&setpriv), &rises);
    std::fs::set_permissions(&rises, std::fs::Permissions::from_mode(0o4755)).expect("a program that rises");
    chown(home.scratch(), Some(NOBODY), Some(NOBODY)).expect("a home of somebody else");
    Some((home, program))
}

/// Whether this process is root's `sleep` by now.
pub(super) fn has_risen(pid: u32) -> Option<()> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    (status.contains("\nUid:\t0\t0\t0\t0") && status.starts_with("Name:\tsleep")).then_some(())
}

/// Only root can have a process that another user's supervisor cannot stop; elsewhere there is nothing to be seen.
#[test]
fn a_process_of_another_user_cannot_be_held_which_is_said_with_its_name_and_nothing_stands_still() {
    let Some((home, program)) = of_nobody() else { return };
    let line = "./rises --reuid=0 --regid=0 --clear-groups sleep 1000 & echo $! > theirs; while :; do printf x >> ours; sleep 0.003; done";
    let submitted = as_nobody(&home, &program, &["run", "-c", line]);
    assert_eq!(submitted.code, 0, "{}", submitted.stderr);
    let id = submitted.text();
    let theirs: u32 = homing_testkit::wait_for("the process of another user", || {
        let pid = std::fs::read_to_string(home.scratch().join("theirs")).ok()?.trim().parse().ok()?;
        has_risen(pid).map(|()| pid)
    });
    homing_testkit::wait_for("the daemon to hear of the start", || {
        let task = as_nobody(&home, &program, &["show", &id, "--json"]).ok().json();
        (task["status"] == "running").then_some(())
    });
    let refused = as_nobody(&home, &program, &["pause", &id]);
    let after = as_nobody(&home, &program, &["show", &id, "--json"]).ok().json();
    let counted = || std::fs::metadata(home.scratch().join("ours")).map_or(0, |file| file.len());
    let then = counted();
    homing_testkit::wait_for("the rest to go on", || (counted() > then).then_some(()));
    home.kill(theirs);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("HM0302"), "{}", refused.stderr);
    assert!(
        refused.stderr.contains(&theirs.to_string()) && refused.stderr.contains("sleep"),
        "{}",
        refused.stderr
    );
    assert_eq!(after["status"], "running");
}
