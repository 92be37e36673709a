//! What can be seen without asking anybody.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use homing_client::SOCKET;
use homing_model::units::show_size;

use super::Check;
use crate::context::Context;
use crate::surroundings::Surroundings;
use crate::{entry, home as places};

/// Below this much free space submits may soon be refused.
const LITTLE: u64 = 256 << 20;

/// Filesystems that are known by their magic number: name, and whether locks and shared maps work.
const FILESYSTEMS: &[(u64, &str, bool)] = &[
    (0xef53, "ext4", true),
    (0x5846_5342, "xfs", true),
    (0x9123_683e, "btrfs", true),
    (0x0102_1994, "tmpfs", true),
    (0x794c_7630, "overlayfs", true),
    (0x2fc1_2fc1, "zfs", true),
    (0xf2f5_2010, "f2fs", true),
    (0x6969, "nfs", false),
    (0xff53_4d42, "cifs", false),
    (0xfe53_4d42, "smb2", false),
    (0x0102_1997, "9p", false),
    (0x6573_5546, "fuse", false),
];

/// The home: there, safe, on a filesystem that can hold it, with room.
pub(super) fn home(home: &Path) -> Vec<Check> {
    let shown = home.display();
    let Ok(meta) = std::fs::symlink_metadata(home) else {
        return vec![Check::ok("home", format!("{shown} is not there yet; the daemon makes it"))];
    };
    let mut checks = vec![safety(home, &meta)];
    checks.extend(filesystem(home));
    checks
}

fn safety(home: &Path, meta: &std::fs::Metadata) -> Check {
    let shown = home.display();
    let other = "Choose another home with HOMING_HOME.";
    if !meta.is_dir() {
        return Check::fail("home", format!("{shown} is no folder"), other);
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Check::fail("home", format!("{shown} belongs to user {}", meta.uid()), other);
    }
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Check::fail(
            "home",
            format!("{shown} is open to others (mode {mode:04o})"),
            format!("chmod 700 {shown}"),
        );
    }
    Check::ok("home", format!("{shown} (mode {mode:04o})"))
}

fn filesystem(home: &Path) -> Vec<Check> {
    let Ok(stat) = rustix::fs::statfs(home) else {
        return vec![Check::warn("disk", "the filesystem cannot be asked", "Look at the mount of the home.")];
    };
    #[expect(clippy::cast_sign_loss, reason = "a magic number, of which only the low 32 bits count")]
    let magic = (stat.f_type as u64) & 0xffff_ffff;
    let kind = match FILESYSTEMS.iter().find(|(known, _, _)| *known == magic) {
        Some((_, name, true)) => Check::ok("filesystem", *name),
        Some((_, name, false)) => Check::fail(
            "filesystem",
            format!("{name} has no dependable locks"),
            "Choose a home on a local disk with HOMING_HOME.",
        ),
        None => Check::warn(
            "filesystem",
            format!("unknown ({magic:#x})"),
            "It must be a local one with working locks.",
        ),
    };
    let free = u64::try_from(stat.f_bsize).unwrap_or(0).saturating_mul(stat.f_bavail);
    let room = if free < LITTLE {
        Check::warn(
            "disk",
            format!("only {} free", show_size(free)),
            "Free some space; `homing gc` drops what is past its retention.",
        )
    } else {
        Check::ok("disk", format!("{} free", show_size(free)))
    };
    vec![kind, room]
}

/// The socket: a path that is too long for an address works here, but not for every other program.
pub(super) fn socket(home: &Path) -> Check {
    let path = home.join(SOCKET);
    let length = path.as_os_str().as_bytes().len();
    if length > 107 {
        return Check::warn(
            "socket",
            format!("its path has {length} bytes: homing copes, other programs (curl --unix-socket) may not"),
            "Choose a home with a shorter path if others must reach it.",
        );
    }
    Check::ok("socket", path.display().to_string())
}

/// The configuration file.
pub(super) fn configuration(context: &Context) -> Check {
    let path = match places::configuration(context.home_flag.as_deref(), &context.surroundings) {
        Ok(path) => path,
        Err(problem) => return Check::fail("config", problem.detail, problem.advice),
    };
    match entry::effective_configuration(&path) {
        Ok(_) if path.exists() => Check::ok("config", path.display().to_string()),
        Ok(_) => Check::ok("config", "none; the defaults apply"),
        Err(problem) => Check::fail("config", problem.detail, problem.advice),
    }
}

/// Whether a cgroup can be made for each task.
pub(super) fn cgroup() -> Check {
    let advice = "Not needed. With one (for example under `systemd --user` with Delegate=yes) stop reaches even what hides.";
    let Some(folder) = std::fs::read_to_string("/proc/self/cgroup").ok().as_deref().and_then(own_cgroup)
    else {
        return Check::warn(
            "cgroup",
            "cgroup v2 is not in use here; trees are found by process ancestry",
            advice,
        );
    };
    match rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Check::ok("cgroup", format!("{} can be written", folder.display())),
        Err(_) => Check::warn(
            "cgroup",
            format!("{} cannot be written; trees are found by process ancestry", folder.display()),
            advice,
        ),
    }
}

fn own_cgroup(text: &str) -> Option<PathBuf> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
    folder.join("cgroup.procs").exists().then_some(folder)
}

/// Whether the system ends a user's processes when they log out.
pub(super) fn lingering(surroundings: &Surroundings) -> Check {
    if !Path::new("/run/systemd/system").exists() {
        return Check::ok("logout", "no systemd: nobody ends processes at logout");
    }
    let user = surroundings.text("USER").or_else(|| surroundings.text("LOGNAME")).unwrap_or_default();
    if !user.is_empty() && Path::new("/var/lib/systemd/linger").join(user).exists() {
        return Check::ok("logout", format!("{user} lingers: tasks outlive the session"));
    }
    let config = std::fs::read_to_string("/etc/systemd/logind.conf").unwrap_or_default();
    if config.lines().any(|line| line.trim().eq_ignore_ascii_case("KillUserProcesses=yes")) {
        return Check::warn(
            "logout",
            "systemd ends your processes when you log out (KillUserProcesses=yes)",
            "loginctl enable-linger",
        );
    }
    Check::ok("logout", "processes are left alone at logout; `loginctl enable-linger` makes sure of it")
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_home_that_others_can_enter_fails_with_the_command_that_mends_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let checks = home(folder.path());
        assert_eq!(checks[0].state, State::Fail);
        assert!(checks[0].advice.as_deref().is_some_and(|advice| advice.starts_with("chmod 700")));
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        assert_eq!(home(folder.path())[0].state, State::Ok);
    }

    #[test]
    fn a_home_that_is_not_there_or_no_folder_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(home(&folder.path().join("none"))[0].state, State::Ok);
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(home(&folder.path().join("file"))[0].state, State::Fail);
    }

    #[test]
    fn long_socket_paths_are_worth_a_word() {
        assert_eq!(socket(Path::new("/h")).state, State::Ok);
        assert_eq!(socket(Path::new(&format!("/{}", "x".repeat(200)))).state, State::Warn);
    }
}
