//! A changed `config.toml` takes effect by itself, without a restart.
//!
//! The kernel says when something happens to the file, or to what a link in its place leads to; nothing polls. It is read once things have settled, since
//! editors write in several steps. A broken one changes nothing: the last good one stays in force, and the status, `homing doctor` and the log
//! say why. One that is away for a moment (some editors rename it first and write another then) changes nothing either: it is waited for, and
//! what was in force still is; only where it stays away it was removed, and the defaults are in force. Where the kernel has no more watches, `homing config reload` and a hang-up signal do the same. On cancel the watch ends; the daemon goes
//! on with what is in force.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use homing_deliver::Transports;
use homing_engine::{Config, ConfigError, Engine, run_blocking};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::log::Log;
use crate::settings::Settings;

/// What the log says of a file that is broken while another configuration is in force.
pub const BROKEN_CONFIGURATION: &str = "the configuration is broken; the last good one stays in force";

/// After the last change, before the file is read.
const SETTLE: Duration = Duration::from_millis(200);

/// For so long a file that was in force may be away until it counts as removed.
const AWAY: Duration = Duration::from_secs(2);

/// Links that lead to links that lead to links.
const MOST_LINKS: usize = 64;

/// How often the places of a file are looked for anew, where they change while they are.
const TRIES: usize = 16;

/// Puts a configuration in force wherever one is kept.
#[derive(Debug)]
pub(crate) struct Reloader {
    pub(crate) settings: Arc<Settings>,
    pub(crate) engine: Engine,
    pub(crate) transports: Arc<Transports>,
    pub(crate) log: Arc<Log>,
    /// One at a time reads the file and puts it in force: of two, the one that read first could otherwise have the last word.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
}

impl Reloader {
    /// Reads the file and puts it in force, off the runtime's thread: reading may take as long as the disk does. True if it says something new. A file that
    /// was in force and is away is waited for first.
    ///
    /// # Errors
    /// With the line that is wrong; what was in force still is.
    pub(crate) async fn reload(self: &Arc<Self>) -> Result<bool, ConfigError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let _ = tokio::time::timeout(AWAY, self.until_back()).await;
        let reloader = Arc::clone(self);
        // The turn is over when that is, though whoever asked may have gone.
        let read = run_blocking(move || {
            let read = reloader.read();
            drop(turn);
            read
        });
        let read = read.await;
        read.unwrap_or_else(|error| {
            Err(ConfigError::Read { path: self.settings.file().to_owned(), source: error })
        })
    }

    /// Until the file is there, unless it never was. Where the kernel has no more watches, for ever.
    async fn until_back(self: &Arc<Self>) {
        loop {
            let watch = Watch::new(self.settings.file());
            let settings = Arc::clone(&self.settings);
            if !matches!(run_blocking(move || settings.is_away()).await, Ok(true)) {
                return;
            }
            match watch {
                Ok(watch) if watch.changed().await.is_ok() => {}
                Ok(_) | Err(_) => std::future::pending().await,
            }
        }
    }

    fn read(&self) -> Result<bool, ConfigError> {
        match self.settings.again(&self.engine.config()) {
            Ok(None) => Ok(false),
            Ok(Some(config)) => {
                self.apply(config);
                tracing::info!(file = %self.settings.file().display(), "the configuration has changed and is in force");
                Ok(true)
            }
            Err((error, news)) => {
                if news {
                    tracing::error!(%error, "{BROKEN_CONFIGURATION}");
                }
                Err(error)
            }
        }
    }

    fn apply(&self, config: Config) {
        self.log.configure(&config.log);
        self.transports.configure(config.webhook.clone());
        self.engine.set_config(config);
    }

    /// Reloads whenever the file changes, for ever.
    pub(crate) async fn follow(self: &Arc<Self>) {
        let file = self.settings.file();
        let report =
            self.engine.background().register("configuration", "applies changes of config.toml", None);
        loop {
            let changed = match Watch::new(file) {
                Ok(watch) => {
                    // It may have changed before the watch was set.
                    report.run();
                    if let Err(error) = self.reload().await {
                        report.error(&error);
                    }
                    watch.changed().await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = changed {
                report.error(&error);
                tracing::warn!(%error, "changes of the configuration are not noticed; `homing config reload` takes them over");
                return std::future::pending().await;
            }
            tokio::time::sleep(SETTLE).await;
        }
    }
}

/// Folders and the names in them that matter.
#[derive(Debug)]
struct Watch {
    // No socket; the stream type is only how the runtime watches it.
    events: UnixStream,
    names: BTreeSet<OsString>,
}

impl Watch {
    /// The folder of the file, and those of every link on the way to it and of what it leads to, whether that is there or not. Of a folder that is not there,
    /// the next one above it that is.
    fn new(file: &Path) -> io::Result<Self> {
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::MOVE
            | WatchFlags::DELETE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let mut tries = 0;
        loop {
            let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let places = places(file);
            let own = there(file).0;
            let set = places.iter().try_for_each(|(folder, _)| {
                match inotify::add_watch(&inotify, folder, flags) {
                    // A link on the way, in a folder that may be passed and not read: only that it leads elsewhere is not noticed.
                    Err(Errno::ACCESS) if *folder != own => Ok(()),
                    set => set.map(drop),
                }
            });
            tries += 1;
            // What changed before its watch was set is seen by nobody: then they are set anew.
            if (set.is_err() || self::places(file) != places) && tries < TRIES {
                continue;
            }
            set?;
            let names = places.into_iter().map(|(_, name)| name).collect();
            let events = UnixStream::from_std(std::os::unix::net::UnixStream::from(inotify))?;
            return Ok(Self { events, names });
        }
    }

    /// Waits until something happens to one of the names, or to a folder itself.
    async fn changed(&self) -> io::Result<()> {
        loop {
            self.events.readable().await?;
            let mut concerned = false;
            let _ = self.events.try_io(Interest::READABLE, || -> io::Result<()> {
                concerned |= self.read();
                Err(io::ErrorKind::WouldBlock.into())
            });
            if concerned {
                return Ok(());
            }
        }
    }

    fn read(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.events, &mut buffer);
        let mut concerned = false;
        while let Ok(event) = reader.next() {
            let about_folder = ReadFlags::DELETE_SELF
                | ReadFlags::MOVE_SELF
                | ReadFlags::IGNORED
                | ReadFlags::QUEUE_OVERFLOW;
            concerned |= event.events().intersects(about_folder)
                || event
                    .file_name()
                    .is_some_and(|name| self.names.contains(std::ffi::OsStr::from_bytes(name.to_bytes())));
        }
        concerned
    }
}

/// Where something must happen for a file to become another: folders that are there, and names in them.
fn places(file: &Path) -> BTreeSet<(PathBuf, OsString)> {
    let (mut seen, mut ahead) = (BTreeSet::new(), vec![file.to_owned()]);
    while let Some(path) = ahead.pop().filter(|_| seen.len() < MOST_LINKS) {
        for part in path.ancestors() {
            // Whatever is a link on the way may lead elsewhere one day, and leads to what is looked at next.
            let Ok(target) = std::fs::read_link(part) else { continue };
            let target = part.parent().unwrap_or(part).join(target);
            let rest = path.strip_prefix(part).unwrap_or_else(|_| Path::new(""));
            let next = if rest.as_os_str().is_empty() { target } else { target.join(rest) };
            if seen.insert(part.to_owned()) {
                ahead.push(next);
            }
        }
        seen.insert(path);
    }
    seen.iter().map(|path| there(path)).collect()
}

/// The nearest folder above a path that is there, and the name in it that leads to the path.
fn there(path: &Path) -> (PathBuf, OsString) {
    let mut below = path;
    for folder in path.ancestors().skip(1) {
        if folder.is_dir() {
            return (folder.to_owned(), below.file_name().unwrap_or_default().to_owned());
        }
        below = folder;
    }
    (PathBuf::from("/"), OsString::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn noticed(file: &Path, change: impl FnOnce()) -> bool {
        let watch = Watch::new(file).unwrap();
        change();
        tokio::time::timeout(Duration::from_secs(5), watch.changed())
            .await
            .is_ok_and(|changed| changed.is_ok())
    }

    #[tokio::test]
    async fn every_way_to_change_a_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let other = folder.path().join("other");
        assert!(noticed(&file, || std::fs::write(&file, "a").unwrap()).await, "made");
        assert!(noticed(&file, || std::fs::write(&file, "b").unwrap()).await, "written");
        let replace = || {
            std::fs::write(&other, "c").unwrap();
            std::fs::rename(&other, &file).unwrap();
        };
        assert!(noticed(&file, replace).await, "replaced");
        let link = || {
            std::fs::rename(&file, &other).unwrap();
            std::os::unix::fs::symlink(&other, &file).unwrap();
        };
        assert!(noticed(&file, link).await, "a link in its place");
        assert!(noticed(&file, || std::fs::write(&other, "d").unwrap()).await, "what the link leads to");
        assert!(noticed(&file, || std::fs::remove_file(&file).unwrap()).await, "removed");
        let (elsewhere, linked) =
            (folder.path().join("elsewhere"), folder.path().join("elsewhere/config.toml"));
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(&linked, "e").unwrap();
        std::os::unix::fs::symlink(&linked, &file).unwrap();
        assert!(
            noticed(&file, || std::fs::remove_dir_all(&elsewhere).unwrap()).await,
            "where it led is gone"
        );
        assert!(noticed(&file, || std::fs::create_dir(&elsewhere).unwrap()).await, "and comes back");
        assert!(noticed(&file, || std::fs::write(&linked, "f").unwrap()).await, "with the file");
        let by = folder.path().join("by");
        std::os::unix::fs::symlink(&elsewhere, &by).unwrap();
        let swap = || {
            std::os::unix::fs::symlink(folder.path(), other.with_extension("new")).unwrap();
            std::fs::rename(other.with_extension("new"), &by).unwrap();
        };
        assert!(noticed(&by.join("config.toml"), swap).await, "a link on the way leads elsewhere");
        let deep = folder.path().join("none/yet/config.toml");
        assert!(
            noticed(&deep, || std::fs::create_dir_all(deep.parent().unwrap()).unwrap()).await,
            "its folder"
        );
    }

    #[tokio::test]
    async fn what_happens_to_other_files_is_nothing_to_us() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let watch = Watch::new(&file).unwrap();
        std::fs::write(folder.path().join("homing.db-wal"), "x").unwrap();
        let changed = watch.changed();
        tokio::pin!(changed);
        let early = tokio::time::timeout(Duration::from_millis(50), &mut changed).await;
        assert!(early.is_err(), "nothing was said of it");
        std::fs::write(&file, "x").unwrap();
        assert!(tokio::time::timeout(Duration::from_secs(5), changed).await.is_ok());
    }
}
