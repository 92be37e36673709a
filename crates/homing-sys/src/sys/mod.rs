//! The few calls that rustix does not make: fork, clone into a cgroup, wait with usage, signals, exec.
//!
//! The only place with `unsafe` in this crate. Keeper and shim are single-threaded, so a plain fork is sound here; whatever
//! runs between a clone and its exec makes system calls only and allocates nothing.
#![expect(unsafe_code, reason = "system calls that no safe wrapper offers; each block says why it is sound")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Which side of a fork or clone one is on.
#[derive(Debug)]
pub enum Fork {
    /// The new process.
    Child,
    /// The old one, with the child's pid.
    Parent(u32),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By `exit`.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// A child that was waited for.
#[derive(Debug, Clone, Copy)]
pub struct Reaped {
    /// The child.
    pub pid: u32,
    /// How it ended.
    pub end: End,
    /// Its largest resident set.
    pub max_rss_bytes: u64,
    /// Its processor time, user and system.
    pub cpu_ms: u64,
}

/// What a look for ended children found.
#[derive(Debug, Clone, Copy)]
pub enum Wait {
    /// This one has ended.
    Ended(Reaped),
    /// There are children, and none has ended.
    Alive,
    /// There are no children at all: the kernel's word that the tree is gone.
    None,
}

/// Forks.
pub fn fork() -> io::Result<Fork> {
    // SAFETY: the calling process has one thread, so no lock can be held by another at the fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid.unsigned_abs())),
    }
}

/// Like fork, but the new process is a child of our own parent: it is not in our tree, and its end is not ours to see.
pub fn fork_sibling() -> io::Result<Fork> {
    // SAFETY: all zero is a valid clone_args.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = libc::CLONE_PARENT as u64;
    // SAFETY: as in `clone`.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(u32::try_from(pid).unwrap_or(0))),
    }
}

/// From the kernel's `sched.h`; the libc crate's constant is too narrow for it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Like fork, but born inside a cgroup if one is given: joining one later takes a lock that stalls every fork on the machine.
pub fn clone(cgroup: Option<BorrowedFd<'_>>) -> io::Result<Fork> {
    // SAFETY: all zero is a valid clone_args.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(cgroup) = cgroup {
        args.flags = CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    // SAFETY: no CLONE_VM and no stack, so the child gets a copy of this thread as with fork; the process has one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(u32::try_from(pid).unwrap_or(0))),
    }
}

/// Takes one ended child, if there is one.
pub fn wait() -> Wait {
    let mut status: libc::c_int = 0;
    // SAFETY: all zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG | libc::__WALL, &raw mut usage) };
    if pid == 0 {
        return Wait::Alive;
    }
    if pid < 0 {
        return if io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
            Wait::None
        } else {
            Wait::Alive
        };
    }
    let end = if libc::WIFEXITED(status) {
        End::Code(libc::WEXITSTATUS(status))
    } else {
        End::Signal(libc::WTERMSIG(status))
    };
    let millis = |time: libc::timeval| time.tv_sec.unsigned_abs() * 1000 + time.tv_usec.unsigned_abs() / 1000;
    Wait::Ended(Reaped {
        pid: pid.unsigned_abs(),
        end,
        max_rss_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
        cpu_ms: millis(usage.ru_utime) + millis(usage.ru_stime),
    })
}

/// Blocks SIGCHLD and gives a descriptor that is readable when one is pending.
pub fn child_signal() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is used; the new descriptor is ours.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// What a terminal or a stray `kill` may send, and what a file limit does.
const IGNORED: [libc::c_int; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE, libc::SIGTTOU, libc::SIGXFSZ];

/// Only SIGKILL ends a keeper or shim.
pub fn ignore_signals() {
    for signal in IGNORED {
        // SAFETY: SIG_IGN is a valid disposition for these signals.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Every disposition back to the default, whatever our starter ignored, and nothing blocked.
pub fn reset_signals() {
    reset_dispositions(1..=64);
    // The C library keeps 32 and 33 to itself and refuses to touch them, but passes on an inherited "ignore".
    for signal in [32, 33] {
        let default = [0_u64; 4];
        // SAFETY: all zero is the kernel's sigaction for the default disposition, of the size it expects on 64-bit systems.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null::<u64>(), 8_usize)
        };
    }
}

/// For the side of a fork that will exec: an exec itself resets all that is not ignored, and only [`IGNORED`] are.
pub fn reset_ignored_signals() {
    reset_dispositions(IGNORED);
}

fn reset_dispositions(signals: impl IntoIterator<Item = libc::c_int>) {
    for signal in signals {
        // SAFETY: SIG_DFL is valid for every signal; those that cannot be changed answer with an error that changes nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set is initialised by sigemptyset before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Replaces the program; returns only if that failed. Both lists end with a null pointer and point into live memory.
pub fn exec(path: &CStr, argv: &[*const libc::c_char], env: &[*const libc::c_char]) -> i32 {
    debug_assert!(argv.last().is_some_and(|p| p.is_null()) && env.last().is_some_and(|p| p.is_null()));
    // SAFETY: the callers build both lists from C strings that live until the exec and end them with null.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Leaves at once: no destructors, no buffers, nothing of the parent's is touched.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// Sets a resource limit by number; absent values are unlimited.
pub fn set_rlimit(resource: u32, soft: Option<u64>, hard: Option<u64>) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: soft.unwrap_or(libc::RLIM_INFINITY),
        rlim_max: hard.unwrap_or(libc::RLIM_INFINITY),
    };
    // SAFETY: the structure is valid for the call; an unknown number is refused by the kernel.
    if unsafe { libc::setrlimit(resource, &raw const limit) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Closes (or, with `on_exec`, marks to be closed on exec) every descriptor from `first` to `last`.
pub fn close_range(first: u32, last: u32, on_exec: bool) {
    if first > last {
        return;
    }
    let flags = if on_exec { libc::CLOSE_RANGE_CLOEXEC } else { 0 };
    // SAFETY: callers pass ranges whose descriptors no live object of theirs will use again.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
}

/// Closes everything but 0, 1, 2 and the given two.
pub fn close_all_but(a: BorrowedFd<'_>, b: BorrowedFd<'_>) {
    let a = a.as_raw_fd().unsigned_abs();
    let b = b.as_raw_fd().unsigned_abs();
    let (low, high) = (a.min(b), a.max(b));
    close_range(3, low.saturating_sub(1), false);
    close_range(low + 1, high.saturating_sub(1), false);
    close_range(high + 1, u32::MAX, false);
}

/// Who is at the other end of a local socket: pid (0 if it is in a pid namespace that we cannot see into) and user.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: the structure and its length are valid for the call, which writes at most that much.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if got == 0 {
        Ok((credentials.pid.unsigned_abs(), credentials.uid))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// From the kernel's `socket.h`, since 6.5; the same on every architecture that homing runs on.
const SO_PEERPIDFD: libc::c_int = 77;

/// A descriptor of the process at the other end of a local socket, marked to be closed on exec.
pub fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut pidfd: libc::c_int = -1;
    let mut length = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(0);
    // SAFETY: the number and its length are valid for the call, which writes at most that much.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut pidfd).cast(),
            &raw mut length,
        )
    };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    if pidfd < 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: the kernel made this descriptor for us, and no other owner knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(pidfd) })
}

/// The unit of a process's start time, by the second.
pub fn ticks_per_second() -> i64 {
    // SAFETY: takes no pointers.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks } else { 100 }
}

/// Gives memory that is no longer used back to the kernel; a shim waits for hours, and a daemon serves for weeks.
pub fn trim_memory() {
    // SAFETY: takes no pointers. Only glibc has it.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
