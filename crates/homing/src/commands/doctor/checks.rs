//! What can be seen without asking anybody.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use homing_agents::wake::{Survey, survey};
use homing_agents::{Agent, registry::REGISTRY};
use homing_api::{ConfigurationInfo, ConfigurationSource};
use homing_client::SOCKET;
use homing_engine::{EMERGENCY_SPACE_BYTES, network_filesystem};
use homing_model::TaskId;
use homing_model::shell::quote;
use homing_model::units::show_size;
use homing_sys::home::{DATABASE, START_MARKER, TASKS};

use super::Check;
use crate::cli::context::Context;
use crate::cli::entry;
use crate::commands::hook::misuse;
use crate::commands::install;
use crate::daemon_control::waker;
use crate::options::environment::Surroundings;
use crate::options::home as places;

/// Below this much free space submits may soon be refused.
const LITTLE: u64 = 256 << 20;

/// The magic number of FUSE, behind which anything may be.
const FUSE: u32 = 0x6573_5546;

/// Local filesystems by their magic number. Those that are refused are the store's to name.
const LOCAL: &[(u32, &str)] = &[
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x794c_7630, "overlayfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
];

/// The home: there or to be made, safe, on a filesystem that can hold it, with room.
pub(super) fn home(context: &Context) -> Vec<Check> {
    let home = &context.home;
    let shown = home.display();
    if let Err(problem) = places::check(home) {
        return vec![Check::fail("home", problem.detail, problem.advice)];
    }
    let Ok(meta) = std::fs::metadata(home) else {
        return vec![Check::ok("home", format!("{shown} is not there yet; the daemon makes it"))];
    };
    let mode = meta.permissions().mode() & 0o777;
    let chosen = context.home_flag.as_deref().map(Path::as_os_str);
    let chosen = chosen.or_else(|| context.surroundings.get("HOMING_HOME")).map(Path::new);
    let mut checks = vec![match chosen {
        Some(path) if path.is_relative() => Check::warn(
            "home",
            format!("{shown} is named by a relative path: another working directory is another home"),
            format!("export HOMING_HOME={}", quote(&shown.to_string())),
        ),
        Some(_) | None => Check::ok("home", format!("{shown} (mode {mode:04o})")),
    }];
    checks.extend(filesystem(home));
    checks
}

fn filesystem(home: &Path) -> Vec<Check> {
    let Ok(stat) = rustix::fs::statfs(home) else {
        return vec![Check::warn("disk", "the filesystem cannot be asked", "Look at the mount of the home.")];
    };
    #[expect(clippy::cast_sign_loss, reason = "a magic number, of which only the low 32 bits count")]
    let magic = u32::try_from(stat.f_type as u64 & 0xffff_ffff).unwrap_or_default();
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
    vec![kind(magic), room]
}

fn kind(magic: u32) -> Check {
    const NAME: &str = "filesystem";
    if let Some(name) = network_filesystem(magic) {
        let advice = "Choose a home on a local disk with HOMING_HOME.";
        return Check::fail(NAME, format!("{name} has no locks that a database can rely on"), advice);
    }
    if magic == FUSE {
        let advice = "A local disk is fine; if it is on a network, choose another home with HOMING_HOME.";
        return Check::warn(NAME, "FUSE: what is behind it cannot be told", advice);
    }
    match LOCAL.iter().find(|(known, _)| *known == magic) {
        Some((_, name)) => Check::ok(NAME, *name),
        None => {
            let advice = "It must be a local one with working locks.";
            Check::warn(NAME, format!("unknown ({magic:#x})"), advice)
        }
    }
}

/// The socket: a folder in its place lets no daemon serve; a path that is too long for an address works here, but not for every other program.
pub(super) fn socket(home: &Path) -> Check {
    if let Err(problem) = places::check_socket(home) {
        return Check::fail("socket", problem.detail, problem.advice);
    }
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

/// What the daemon cannot see of its callers, if there is anything.
pub(super) fn callers(exact: bool, blind: bool) -> Vec<Check> {
    const NAME: &str = "callers";
    let mut checks = Vec::new();
    if !exact {
        checks.push(Check::warn(
            NAME,
            "this kernel does not hold the process that connects (SO_PEERPIDFD): a program in a sandbox may pass for one outside of it by \
             having its pid used again",
            "Linux 6.5 or later closes this; SECURITY.md has the conditions.",
        ));
    }
    let landlock = "with CAP_SYS_ADMIN a sandbox of Landlock alone shows nowhere: a caller in one is served (SECURITY.md)";
    checks.extend(blind.then(|| Check::ok(NAME, landlock)));
    checks
}

/// How far each agent is set up.
pub(super) fn agents(context: &Context) -> Vec<Check> {
    const NAME: &str = "install";
    let one = |agent: &&'static dyn Agent| {
        let (title, name) = (agent.title(), agent.name());
        match install::state(*agent, context) {
            Ok(install::State::Installed) => Check::ok(NAME, format!("{title}: installed")),
            Ok(install::State::Absent) => Check::ok(
                NAME,
                format!("{title}: homing is not installed in it (`homing install {name}` does that)"),
            ),
            Ok(install::State::Outdated) => Check::warn(
                NAME,
                format!("{title}: outdated, or in part only"),
                format!("`homing install {name}` brings it up to date."),
            ),
            Err(problem) => Check::warn(NAME, format!("{title}: {}", problem.detail), problem.advice),
        }
    };
    REGISTRY.iter().map(one).collect()
}

/// The last hook that an agent called and that makes no sense, if there was one lately.
pub(super) fn hooks(context: &Context) -> Option<Check> {
    let misuse = misuse::last(&context.home, context.now())?;
    let detail =
        format!("an agent called `{}` at {}, which means nothing to this release", misuse.line(), misuse.at);
    let file = misuse::place(&context.home);
    let advice = format!(
        "Mend it in the agent's settings, or have `homing install AGENT` write the hooks; then delete {}.",
        file.display()
    );
    Some(Check::warn("hook", detail, advice))
}

/// By which ways each agent that is here can be woken.
pub(super) fn wakes(context: &Context) -> Vec<Check> {
    const NAME: &str = "wake";
    let mut surroundings = waker::surroundings(&context.home, &context.surroundings);
    if let Some(path) = context.surroundings.text("PATH") {
        path.clone_into(&mut surroundings.path);
    }
    let line = |survey: Survey| {
        let version = survey.version.unwrap_or_else(|| "of an unknown version".to_owned());
        let ways: Vec<_> = survey.ways.rungs.iter().filter(|rung| rung.works).map(|rung| rung.name).collect();
        let ways = if ways.is_empty() { "no way to wake it".to_owned() } else { ways.join(", ") };
        let detail = format!("{} {version}: {ways}", survey.agent.title());
        match survey.ways.advice {
            Some(advice) => Check::warn(NAME, detail, advice),
            None => Check::ok(NAME, detail),
        }
    };
    survey(&surroundings, context.session().as_ref()).into_iter().map(line).collect()
}

/// So many folders are compared with the ledger.
const COMPARED: usize = 20;

/// The tasks that began last, by their folders.
pub(super) fn latest_folders(home: &Path) -> Vec<TaskId> {
    let entries = std::fs::read_dir(home.join(TASKS)).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let began = std::fs::metadata(entry.path().join(START_MARKER)).ok()?.modified().ok()?;
            Some((began, id))
        })
        .collect();
    found.sort_unstable_by_key(|(began, _)| std::cmp::Reverse(*began));
    found.into_iter().take(COMPARED).map(|(_, id)| id).collect()
}

/// The ledger: there, and the one that the folders belong to. `unknown` of `looked_at` tasks it does not know; none if nobody could be asked.
pub(super) fn ledger(home: &Path, unknown: Option<usize>, looked_at: usize) -> Check {
    const NAME: &str = "ledger";
    let path = home.join(DATABASE);
    let size = std::fs::metadata(&path).map_or(0, |found| found.len());
    let displaced = home.join(format!("{DATABASE}.displaced"));
    let folders = "Their output is in tasks/ID/output.log; with a copy of the database, stop the daemon and put it back as homing.db.";
    if displaced.exists() {
        let detail = format!("{} is a ledger that another file took the place of", displaced.display());
        return Check::warn(NAME, detail, "Stop the daemon and put it back as homing.db, or delete it.");
    }
    match unknown {
        Some(unknown) if unknown > 0 => {
            let detail =
                format!("it does not know {unknown} of the last {looked_at} tasks whose folders are here");
            Check::warn(NAME, detail, folders)
        }
        None if size == 0 && looked_at > 0 => {
            Check::warn(NAME, "there is none, though there are folders of tasks", folders)
        }
        _ if size == 0 => Check::ok(NAME, "none yet; the daemon makes it"),
        _ => Check::ok(NAME, format!("{}, {}", path.display(), show_size(size))),
    }
}

/// The room that is held for ends on a full disk.
pub(super) fn reserve(home: &Path) -> Check {
    const NAME: &str = "reserve";
    let there = home.join(DATABASE).exists();
    match std::fs::metadata(home.join(format!("{DATABASE}.reserve"))).map(|found| found.len()) {
        Ok(held) if held >= EMERGENCY_SPACE_BYTES => {
            Check::ok(NAME, format!("{} for ends on a full disk", show_size(held)))
        }
        Ok(held) if there => Check::warn(
            NAME,
            format!(
                "only {} of {} for ends on a full disk are left",
                show_size(held),
                show_size(EMERGENCY_SPACE_BYTES)
            ),
            "Free some space: it is taken again by itself.",
        ),
        Err(_) if there => {
            Check::warn(NAME, "no room is held for ends on a full disk", "`homing daemon restart` takes it.")
        }
        Ok(_) | Err(_) => Check::ok(NAME, "none yet; the daemon takes it"),
    }
}

/// The configuration file, and whether it is what the daemon goes by, where one runs.
pub(super) fn configuration(context: &Context, in_force: Option<&ConfigurationInfo>) -> Check {
    let path = match places::configuration(context.home_flag.as_deref(), &context.surroundings) {
        Ok(path) => path,
        Err(problem) => return Check::fail(CONFIG, problem.detail, problem.advice),
    };
    match entry::effective_configuration(&path) {
        Ok(_) => sound(&path, in_force),
        Err(problem) if in_force.is_some() => {
            let detail = format!("{}; the daemon goes by what was good before", problem.detail);
            Check::fail(CONFIG, detail, problem.advice)
        }
        Err(problem) => Check::fail(CONFIG, problem.detail, problem.advice),
    }
}

/// Whether the configuration lets confined callers in.
pub(super) fn confined_are_served(context: &Context) -> bool {
    places::configuration(context.home_flag.as_deref(), &context.surroundings)
        .and_then(|path| entry::configuration(&path))
        .is_ok_and(|config| config.confined.allow)
}

const CONFIG: &str = "config";

fn sound(path: &Path, in_force: Option<&ConfigurationInfo>) -> Check {
    let shown = path.display();
    let advice = "`homing config reload` takes it over; `homing config` shows what is in force.";
    match in_force {
        Some(info) if Path::new(&info.path) != path => Check::warn(
            CONFIG,
            format!("the daemon reads {}, and from here it would be {shown}", info.path),
            "The environment that the daemon was started with named another; `homing daemon restart` here makes it this one.",
        ),
        Some(info) if info.changed => Check::warn(
            CONFIG,
            format!("{shown} is not in force: it has changed since the daemon read it"),
            advice,
        ),
        Some(info) if info.source == ConfigurationSource::LastGood => Check::warn(
            CONFIG,
            format!(
                "{shown} was broken when the daemon began, which goes by the last good one; it is sound again"
            ),
            advice,
        ),
        Some(_) | None if path.exists() => Check::ok(CONFIG, shown.to_string()),
        Some(_) | None => Check::ok(CONFIG, "none; the defaults apply"),
    }
}

/// Whether a cgroup can be made for each task. A tree is kept together without one too, so none is no defect.
pub(super) fn cgroup(home: &Path) -> Check {
    let systems = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    tree(homing_shim::cgroup::base(home).as_deref(), systems.contains(" - cgroup2 "))
}

fn tree(base: Option<&Path>, unified: bool) -> Check {
    let without = "the tree of a task is found by ancestry";
    let advice = "Nothing is amiss. With a cgroup (under systemd: a unit or `systemd-run --user` with Delegate=yes) stop also \
        reaches what hides from its parents.";
    match base {
        Some(base) => {
            let above = base.parent().unwrap_or(base).display();
            Check::ok("cgroup", format!("each task gets one, below {above}"))
        }
        None if unified => {
            Check::warn("cgroup", format!("no cgroup may be made here by this user; {without}"), advice)
        }
        None => Check::warn("cgroup", format!("cgroup v2 is not mounted here; {without}"), advice),
    }
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
    use crate::render::console::Console;

    fn private() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        folder
    }

    fn context(home: &Path, flag: &str) -> Context {
        Context {
            surroundings: Surroundings::default(),
            console: Console::plain(None),
            home_flag: Some(flag.into()),
            home: home.into(),
            json: false,
        }
    }

    #[test]
    fn a_home_that_is_there_is_looked_at_and_one_that_is_not_will_be_made() {
        let folder = private();
        let checks = home(&context(folder.path(), "/h"));
        assert_eq!((checks[0].state, checks.len()), (State::Ok, 3));
        let checks = home(&context(&folder.path().join("none"), "/h"));
        assert_eq!((checks[0].state, checks.len()), (State::Ok, 1));
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(home(&context(&folder.path().join("file"), "/h"))[0].state, State::Fail);
    }

    #[test]
    fn a_relative_home_is_worth_a_word() {
        let folder = private();
        let checks = home(&context(folder.path(), "h"));
        assert_eq!(checks[0].state, State::Warn);
        let advice = format!("export HOMING_HOME={}", folder.path().display());
        assert_eq!(checks[0].advice.as_deref(), Some(advice.as_str()));
    }

    #[test]
    fn what_the_store_refuses_fails_and_nothing_else_does() {
        for network in [0x6969, 0x517b, 0xfe53_4d42, 0xff53_4d42, 0x0102_1997, 0x5346_414f, 0x7375_7245] {
            assert_eq!(kind(network).state, State::Fail, "{network:x}");
        }
        assert_eq!((kind(0xef53).state, kind(FUSE).state), (State::Ok, State::Warn));
        assert_eq!(kind(0x1234_5678).state, State::Warn);
        assert!(LOCAL.iter().all(|(magic, _)| kind(*magic).state == State::Ok));
    }

    #[test]
    fn a_cgroup_is_looked_for_where_the_tasks_get_theirs() {
        // On a hybrid system the second hierarchy is mounted elsewhere, and is used all the same.
        let check = tree(Some(Path::new("/sys/fs/cgroup/unified/homing-1")), true);
        assert_eq!(
            (check.state, check.detail.as_str()),
            (State::Ok, "each task gets one, below /sys/fs/cgroup/unified")
        );
        let check = tree(None, true);
        assert!(check.state == State::Warn && check.detail.starts_with("no cgroup may be made"), "{check:?}");
        let check = tree(None, false);
        assert!(check.state == State::Warn && check.detail.contains("not mounted"), "{check:?}");
        let here = homing_shim::cgroup::base(Path::new("/h")).is_some();
        assert_eq!(cgroup(Path::new("/h")).state == State::Ok, here);
    }

    #[test]
    fn an_old_kernel_is_worth_a_word() {
        let states =
            |exact, blind| callers(exact, blind).into_iter().map(|check| check.state).collect::<Vec<_>>();
        assert_eq!(states(true, false), []);
        assert_eq!(states(true, true), [State::Ok]);
        assert_eq!(states(false, true), [State::Warn, State::Ok]);
    }

    #[test]
    fn long_socket_paths_are_worth_a_word() {
        assert_eq!(socket(Path::new("/h")).state, State::Ok);
        assert_eq!(socket(Path::new(&format!("/{}", "x".repeat(200)))).state, State::Warn);
        let home = tempfile::tempdir().unwrap();
        assert_eq!(socket(home.path()).state, State::Ok);
        std::fs::create_dir(home.path().join(SOCKET)).unwrap();
        assert_eq!(socket(home.path()).state, State::Fail, "a folder is no socket");
    }
}
