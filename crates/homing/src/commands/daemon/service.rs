//! `homing daemon run --service`: what a service manager runs. It watches over the daemon and its keeper, and does nothing else.
//!
//! The daemon is the keeper's child and stays so: killed, it is back before anybody notices. This process knows which one it is by a pidfd. When it is gone, a mark in
//! the home says whether that was on purpose: then this process ends well, and the service with it. Otherwise it asks the keeper for the next one, which also brings
//! back a keeper that died too. Told to end, whatever it waits for, it stops the daemon on purpose; tasks run on. Killed itself, it changes nothing, and the service
//! manager starts it again.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use homing_api::{Code, Problem};
use homing_shim::keeper;
use homing_sys::home;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use super::renewal;
use crate::cli::context::Context;
use crate::cli::entry;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::daemon_control::autostart;

/// How long a daemon may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// Before one that is slow is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches over the daemon until somebody stops it.
pub(crate) async fn run(context: &Context) -> Result<u8, Failure> {
    let (mut endings, mut hang_up) = (Endings::catch()?, catch(SignalKind::hangup())?);
    let started = endings.unless_told(autostart::start(&context.home, context.console)).await;
    let Some(started) = started else { return stop(context).await };
    started?;
    loop {
        let Some(found) = endings.unless_told(find(context)).await else { return stop(context).await };
        let Some(daemon) = found? else { return Ok(left(context)) };
        tell(context, &format!("READY=1\nSTATUS=The daemon is process {}.", daemon.pid));
        loop {
            tokio::select! {
                () = endings.told() => return stop(context).await,
                _ = hang_up.recv() => {
                    // What is wrong with the file is in daemon.log and in the status.
                    let client = context.quiet_client();
                    if endings.unless_told(client.reload_configuration()).await.is_none() {
                        return stop(context).await;
                    }
                }
                () = daemon.gone() => break,
            }
        }
        tell(context, "STATUS=The daemon is gone; its keeper starts the next one.");
    }
}

/// The daemon that serves, as soon as there is one; none if it was stopped on purpose.
async fn find(context: &Context) -> Result<Option<Daemon>, Problem> {
    loop {
        let Ok(found) = Daemon::find(context).await else {
            // It is there, and slow, or in trouble that its own log tells of: no failure of the service.
            sleep(PAUSE).await;
            continue;
        };
        if found.is_some() {
            return Ok(found);
        }
        // What looks like a stop may be the first half of a restart.
        renewal::over(&context.home).await;
        if autostart::is_stopped(&context.home) {
            return Ok(None);
        }
        again(context).await?;
    }
}

fn catch(kind: SignalKind) -> Result<Signal, Problem> {
    signal(kind)
        .map_err(|error| Problem::new(Code::SystemLimit, format!("signals cannot be awaited: {error}")))
}

/// How a service is told to end. From the beginning on that is heard, whatever is waited for.
struct Endings {
    terminate: Signal,
    interrupt: Signal,
}

impl Endings {
    fn catch() -> Result<Self, Problem> {
        Ok(Self { terminate: catch(SignalKind::terminate())?, interrupt: catch(SignalKind::interrupt())? })
    }

    /// Until it is told to end.
    async fn told(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Does this; none if it is told to end before that is done.
    async fn unless_told<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.told() => None,
            done = work => Some(done),
        }
    }
}

/// The service was stopped: so is the daemon.
async fn stop(context: &Context) -> Result<u8, Failure> {
    tell(context, "STOPPING=1\nSTATUS=The daemon leaves; tasks run on.");
    super::stop(&context.quiet_client(), context).await?;
    Ok(exit_code::DONE)
}

/// The daemon was stopped: so is the service.
fn left(context: &Context) -> u8 {
    context.console.note("homing: the daemon was stopped on purpose; tasks run on");
    exit_code::DONE
}

/// Asks the keeper for the next one. The program stays the one that the last starter chose, which may be newer than this process.
async fn again(context: &Context) -> Result<(), Problem> {
    let path = context.home.clone();
    let program = home::recorded_program(&path).map_or_else(entry::executable, Ok)?;
    let asked =
        tokio::task::spawn_blocking(move || keeper::request_start(&path, Some(&program), PATIENCE)).await;
    let refused =
        |why: String| Problem::new(Code::DaemonUnreachable, format!("the daemon did not come back: {why}"));
    asked.map_err(|error| refused(error.to_string()))?.map_err(|error| refused(error.to_string()))
}

/// The daemon that serves now.
struct Daemon {
    pid: u32,
    /// Readable when it is gone. No socket; the stream type is only how the runtime watches it.
    pidfd: UnixStream,
}

impl Daemon {
    /// By its own word, asked before and after its process is held: so it cannot be another's by then. None if nobody answers.
    async fn find(context: &Context) -> Result<Option<Self>, Failure> {
        let Some(before) = super::ask(context).await? else { return Ok(None) };
        let pid = before.daemon.pid;
        let held = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let Some(pidfd) = held.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok()) else {
            return Ok(None);
        };
        let pidfd = UnixStream::from_std(pidfd.into()).map_err(|error| {
            Problem::new(Code::SystemLimit, format!("the daemon cannot be watched: {error}"))
        })?;
        let after = super::ask(context).await?;
        Ok(after.filter(|after| after.daemon.pid == pid).map(|_| Self { pid, pidfd }))
    }

    async fn gone(&self) {
        if self.pidfd.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Tells the service manager, where there is one that listens (sd_notify(3)).
fn tell(context: &Context, state: &str) {
    if let Some(socket) = context.surroundings.get("NOTIFY_SOCKET") {
        // It is only told.
        let _ = send(socket, state);
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_is_told_by_path_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("homing-test-{}", std::process::id());
        let named = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let bound = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        let mut buffer = [0; 64];
        let count = bound.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"READY=1");
        let count = named.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"STOPPING=1");
    }
}
