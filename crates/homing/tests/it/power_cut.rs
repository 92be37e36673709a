//! A real filesystem loses its power: what was answered is there afterwards. Needs root, for a disk of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use homing_engine::Engine;
use homing_model::{Status, Task, TaskId};
use homing_testkit::{Home, PATIENCE, gate, left_out, wait_for, wait_until};

/// An ext4 filesystem in a file, whose power can be cut: nothing that was not synced survives.
struct Disk {
    image: PathBuf,
    folder: PathBuf,
}

impl Disk {
    /// Under the home's folder, before anything is there; none where that is not allowed.
    fn new(home: &Home) -> Option<Self> {
        let disk = Self { image: home.scratch().join("disk.img"), folder: home.scratch().join("disk") };
        let image = std::fs::File::create(&disk.image).expect("an image file");
        image.set_len(96 << 20).expect("room for the image");
        std::fs::create_dir(&disk.folder).expect("a folder to mount on");
        let made = quiet("mkfs.ext4").args(["-q", "-F"]).arg(&disk.image).status();
        let made = made.is_ok_and(|status| status.success()) && disk.mount();
        if !made {
            left_out("a power cut: a disk of its own takes root, mkfs.ext4 and a loop device");
        }
        made.then_some(disk)
    }

    fn mount(&self) -> bool {
        quiet("mount")
            .args(["-o", "loop"])
            .arg(&self.image)
            .arg(&self.folder)
            .status()
            .is_ok_and(|s| s.success())
    }

    /// The kernel drops whatever the disk has not confirmed, without flushing its journal: FS_IOC_SHUTDOWN, no log flush.
    fn cut(&self) {
        let script = "import fcntl, os, struct, sys\n\
                      fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))";
        assert!(
            quiet("python3").args(["-c", script]).arg(&self.folder).status().expect("python3 runs").success()
        );
    }

    /// Whether it is in no use any more, by nobody: whoever made a mount namespace meanwhile, a test beside this one, has it as well, and while he
    /// does a mount would only find what was cut.
    fn is_let_go(&self) -> bool {
        let used = Command::new("losetup").arg("-j").arg(&self.image).output();
        used.is_ok_and(|used| used.status.success() && used.stdout.is_empty())
    }

    /// Everybody dies with the machine; then the disk comes back as it was at the cut.
    fn reboot(&self, home: &Home) {
        wait_for("the dead disk to be let go of", || {
            let found = home.all_processes().into_iter().chain(home.task_processes());
            home.kill_at_once(&found.map(|process| process.pid).collect::<Vec<_>>());
            quiet("umount").arg(&self.folder).status().is_ok_and(|status| status.success()).then_some(())
        });
        wait_until("the dead disk to be let go of by other namespaces", 4 * PATIENCE, || {
            self.is_let_go().then_some(()).ok_or("in use")
        });
        assert!(self.mount(), "the disk can be mounted again");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = quiet("umount").arg("-l").arg(&self.folder).status();
    }
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// What the engine of the next boot says of these tasks.
fn after_boot(home: &Home, ids: &[&str]) -> Vec<Task> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let engine = Engine::builder(home.path()).helper(home.program().into()).boot_id("another").open();
        let engine = engine.await.expect("the ledger opens after a power cut");
        let mut tasks = Vec::new();
        for id in ids {
            tasks.push(
                engine
                    .task(&id.parse::<TaskId>().expect("an id"))
                    .await
                    .expect("an acknowledged task is known"),
            );
        }
        tasks
    })
}

#[test]
fn p9_a_power_cut_loses_no_acknowledged_submit_and_no_end_that_was_told() {
    let home = Home::named(env!("CARGO_BIN_EXE_homing"), "disk/home");
    let Some(disk) = Disk::new(&home) else { return };
    let ended = home.submit(&[], "exit 3");
    assert_eq!(home.ended(&ended)["outcome"]["exit_code"], 3);
    let running = home.submit(&[], "sleep 300");
    let _ = home.until_status(&running, "running");
    let last = home.cli(["run", "--wait", "-c", "exit 4"]);
    disk.cut();
    assert_eq!(last.code, 4);
    disk.reboot(&home);
    let tasks = after_boot(&home, &[&ended, &running, &last.text()]);
    assert_eq!(tasks[0].outcome.as_ref().unwrap().exit_code, Some(3));
    assert_eq!(tasks[1].status, Status::Lost);
    assert!(tasks[1].outcome.as_ref().unwrap().reason.as_deref().unwrap().contains("reboot"));
    assert_eq!(tasks[2].outcome.as_ref().unwrap().exit_code, Some(4));
}

#[test]
fn p9_a_submit_answered_right_before_the_cut_is_known_after_it() {
    let home = Home::named(env!("CARGO_BIN_EXE_homing"), "disk/home");
    let Some(disk) = Disk::new(&home) else { return };
    let _ = home.daemon_pid();
    let id = home.submit(&[], "sleep 300");
    disk.cut();
    disk.reboot(&home);
    assert_eq!(after_boot(&home, &[&id])[0].status, Status::Lost);
}

#[test]
fn p9_an_end_that_only_the_shim_saw_survives_a_power_cut() {
    let home = Home::named(env!("CARGO_BIN_EXE_homing"), "disk/home");
    let Some(disk) = Disk::new(&home) else { return };
    let id = home.submit(&[], &format!("{}; exit 23", gate("go")));
    let _ = home.until_status(&id, "running");
    home.stop_daemon();
    home.open("go");
    wait_for("everybody to leave", || home.all_processes().is_empty().then_some(()));
    disk.cut();
    disk.reboot(&home);
    assert_eq!(after_boot(&home, &[&id])[0].outcome.as_ref().unwrap().exit_code, Some(23));
}
