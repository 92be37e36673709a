//! How others reach the keeper: connect, ask for a daemon, or start the keeper itself.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::connection::Connection;
use crate::clock;
use crate::dispatch::{KEEPER, KEEPER_EMBEDDED};
use crate::wire::{FromKeeper, ToKeeper};
use homing_sys::home;
use homing_sys::private::PrivateHome;

/// Between two tries to reach a keeper that is just coming or going.
const RETRY_MS: i64 = 10;
/// Exit code of a keeper that found another one at work.
pub(crate) const EXIT_HELD: i32 = 3;

/// Variables that keeper and daemon are given; nothing else of their starter's reaches them.
const VARIABLES: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "HOMING_HOME",
    "HOMING_RECONCILE_INTERVAL",
    "HOMING_LOG",
    "RUST_BACKTRACE",
];

/// What a keeper is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It keeps a daemon alive.
    Daemon,
    /// It forks shims for an engine inside another program, and leaves with it.
    Embedded,
}

/// Why no daemon could be had.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The keeper's program could not be run.
    #[error("the keeper could not be started from {}: {source}", program.display())]
    Spawn {
        /// Which program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The keeper ran and said no.
    #[error("the keeper could not start: {0}")]
    Keeper(String),
    /// It did not answer.
    #[error("the keeper does not answer: {0}")]
    Silent(#[from] io::Error),
    /// The daemon gave a reason.
    #[error("{0}")]
    Daemon(String),
}

/// Connects to the keeper of a home, if there is one.
///
/// # Errors
/// If there is none, or another user could be behind it.
pub fn connect(home: &Path) -> io::Result<Connection> {
    let home = PrivateHome::open(home)?;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    net::connect(&socket, &SocketAddrUnix::new(home.socket(home::KEEPER_SOCKET))?)?;
    home.check_listener(&socket)?;
    Ok(Connection::new(socket))
}

/// Starts a keeper: it detaches by itself and is nobody's child. Returns when it listens, or when it found another one listening.
///
/// # Errors
/// If it cannot.
pub fn spawn(home: &Path, program: &Path, mode: Mode) -> Result<(), StartError> {
    let argument = match mode {
        Mode::Daemon => KEEPER,
        Mode::Embedded => KEEPER_EMBEDDED,
    };
    let mut command = Command::new(program);
    command.arg(argument).arg(home).arg(std::process::id().to_string()).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    #[expect(
        clippy::disallowed_methods,
        reason = "what a detached process is given must come from its starter's environment"
    )]
    command.envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    let output = match command.output() {
        Ok(output) => output,
        // Where our own starter ignores SIGCHLD nobody can be waited for: it has ended, and whether it listens is seen by connecting.
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
        Err(source) => return Err(StartError::Spawn { program: program.to_owned(), source }),
    };
    match output.status.code() {
        Some(0 | EXIT_HELD) => Ok(()),
        _ => Err(StartError::Keeper(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// Makes sure that a daemon serves this home: asks the keeper, starting one with `program` if there is none and one may be started.
///
/// # Errors
/// If there is no daemon afterwards, with the reason.
pub fn request_start(home: &Path, program: Option<&Path>, patience: Duration) -> Result<(), StartError> {
    let mut refused = None;
    // A keeper that is just leaving holds its lock a moment longer than its socket.
    for _ in 0..50 {
        let connection = match connect(home) {
            Ok(connection) => connection,
            Err(error) => {
                let Some(program) = program else { return Err(StartError::Silent(error)) };
                spawn(home, program, Mode::Daemon)?;
                match connect(home) {
                    Ok(connection) => connection,
                    Err(error) => {
                        refused = Some(error);
                        clock::pause(RETRY_MS);
                        continue;
                    }
                }
            }
        };
        set_socket_timeout(&connection, Timeout::Recv, Some(patience)).map_err(io::Error::from)?;
        match ask(&connection) {
            Ok(Some(FromKeeper::Running)) => return Ok(()),
            Ok(Some(FromKeeper::NotRunning(reason))) => return Err(StartError::Daemon(reason)),
            Ok(Some(FromKeeper::Welcome(_) | FromKeeper::LaunchFailed(..))) => {}
            // It left between our connecting and our asking.
            Ok(None) => clock::pause(RETRY_MS),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) =>
            {
                clock::pause(RETRY_MS);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(StartError::Silent(refused.unwrap_or_else(|| io::ErrorKind::ConnectionAborted.into())))
}

/// Asks for a daemon; none if the keeper has left.
fn ask(connection: &Connection) -> io::Result<Option<FromKeeper>> {
    connection.send(&ToKeeper::Start, &[])?;
    Ok(connection.receive::<FromKeeper>()?.and_then(|received| received.message))
}
