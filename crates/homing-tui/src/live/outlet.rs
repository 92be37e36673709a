//! A terminal that may not take what is written to it.
//!
//! One that is stopped (Ctrl-S), a window that stands still, an `ssh` whose other end is gone, a pipe that nobody reads: a write waits until somebody reads, and who waits in
//! it hears neither keys nor signals. So nobody writes there directly. What is to be written is put in a row ([`Outlet::push`]) and written as it is taken ([`Outlet::flows`]), beside
//! everything else that may happen; who asks for more only once all was taken ([`Outlet::is_done`]) is held up as a write would, and hears all the while. On a way out nobody waits for who
//! takes nothing ([`Outlet::part`]).
//!
//! It is opened anew, so that it can be written without ever blocking and without changing how whoever started us finds it: that is a property of what is open, and a shell shares it with
//! us. A file takes whatever comes, and has a place in it that is shared with others: it is written as it is. What cannot be opened anew (a socket, a terminal of another user) is written in
//! pieces that are so small that whoever says that more is taken takes them.

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{isatty, tcgetsid};
use tokio::io::{AsyncWrite, Interest};
use tokio::net::unix::pipe;

/// Whoever says that more is taken takes this much.
const PIECE: usize = 512;

/// On a way out, one that takes nothing for so long takes nothing any more; one that is merely slow does.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Room that is kept for what comes next.
const KEPT: usize = 64 * 1024;

/// What a terminal takes for the end of a sequence that was cut off in its middle.
const CANCEL: &[u8] = b"\x18";

/// Where it is written to.
#[derive(Debug)]
struct Way {
    fd: OwnedFd,
    /// Whether a write that cannot be taken whole returns at once; else it must not be larger than a piece, and asked for.
    returns: bool,
    terminal: bool,
    /// Whether it can be waited for, and may have to be.
    waits: bool,
}

impl Way {
    fn to(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        let terminal = kind == FileType::CharacterDevice && isatty(fd);
        let waits = terminal || matches!(kind, FileType::Fifo | FileType::Socket);
        let anew = if waits && kind != FileType::Socket { again(fd, terminal) } else { None };
        let returns = anew.is_some() || !waits;
        let fd = match anew {
            Some(anew) => anew,
            None => rustix::io::fcntl_dupfd_cloexec(fd, 3)?,
        };
        Ok(Self { fd, returns, terminal, waits })
    }

    /// Another descriptor of it, to wait with.
    fn watch(&self) -> io::Result<Option<pipe::Sender>> {
        if !self.waits {
            return Ok(None);
        }
        pipe::Sender::from_owned_fd_unchecked(self.fd.try_clone()?).map(Some)
    }

    /// As much as is taken at once.
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut piece = bytes;
        if !self.returns {
            piece = bytes.get(..PIECE).unwrap_or(bytes);
            if !self.takes_more(&AT_ONCE) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        loop {
            match rustix::io::write(&self.fd, piece) {
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    /// Whether it takes something, or says that it never will, within this time.
    fn takes_more(&self, within: &Timespec) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
        loop {
            match poll(&mut fds, Some(within)) {
                Err(Errno::INTR) => {}
                found => return found.is_ok_and(|count| count > 0),
            }
        }
    }

    /// Writes all of it to whoever takes it; says whether that was so.
    fn part(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.takes_more(&PATIENCE) {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
        true
    }
}

/// The same terminal or pipe, so that it never blocks.
fn again(fd: BorrowedFd<'_>, terminal: bool) -> Option<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |path: &str| rustix::fs::open(path, flags, Mode::empty()).ok();
    let ours = terminal && tcgetsid(fd).is_ok();
    open(&format!("/proc/self/fd/{}", fd.as_raw_fd())).or_else(|| open("/dev/tty").filter(|_| ours))
}

/// A way to whoever reads, and what is on it.
#[derive(Debug)]
pub struct Outlet {
    way: Way,
    /// Says when it takes more; a file has none. What tokio has for pipes does for any descriptor that can be waited for.
    watch: Option<pipe::Sender>,
    waiting: Vec<u8>,
    /// How much of that is written.
    written: usize,
}

impl Outlet {
    /// To whatever this descriptor leads to. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If it leads nowhere.
    pub fn to(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let way = Way::to(fd)?;
        let watch = way.watch()?;
        Ok(Self { way, watch, waiting: Vec::new(), written: 0 })
    }

    /// What it leads to, opened by us.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.way.fd.as_fd()
    }

    /// Puts something in the row.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Writes what is taken at once and puts the rest in the row, so that who is refused hears it at once.
    ///
    /// # Errors
    /// If nothing will ever be taken again.
    pub fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_first = self.is_done();
        self.push(bytes);
        if is_first && !bytes.is_empty() {
            match self.way.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => self.advance(written?),
            }
        }
        Ok(())
    }

    /// Whether all of it was taken.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Writes as much as is taken at once; ready once that was something. With nothing in the row it is never ready.
    ///
    /// # Errors
    /// If nothing will ever be taken again.
    pub fn poll_flow(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        if self.is_done() {
            return Poll::Pending;
        }
        let rest = self.waiting.get(self.written..).unwrap_or_default();
        let written = match &mut self.watch {
            None => self.way.write(rest)?,
            Some(watch) => loop {
                // Nothing, which is taken when something is.
                let _ = ready!(Pin::new(&mut *watch).poll_write(context, &[]))?;
                match watch.try_io(|| self.way.write(rest)) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    written => break written?,
                }
            },
        };
        let taken = rest.get(..written).unwrap_or_default().to_vec();
        self.advance(written);
        Poll::Ready(Ok(taken))
    }

    /// The same to be waited for; answers with what was taken. Cancelling it loses nothing.
    ///
    /// # Errors
    /// If nothing will ever be taken again.
    pub async fn flows(&mut self) -> io::Result<Vec<u8>> {
        poll_fn(|context| self.poll_flow(context)).await
    }

    /// Waits until a terminal is hung up, or a pipe closed: nobody will read what is written there. A file never is.
    pub fn hung_up(&self) -> impl Future<Output = ()> + use<> {
        let watch = self.way.watch().ok().flatten();
        async move {
            match watch {
                Some(watch) => drop(watch.ready(Interest::ERROR).await),
                None => std::future::pending().await,
            }
        }
    }

    /// Drops what is in the row, and has the next words understood even where it was cut off in the middle of something.
    pub fn abandon(&mut self) {
        let cut = self.written > 0 && self.way.terminal;
        self.clear();
        if cut {
            self.push(CANCEL);
        }
    }

    /// Writes what is in the row on a way out: whoever takes nothing is not waited for. Says whether all of it was taken.
    pub fn part(&mut self) -> bool {
        let taken = self.way.part(self.waiting.get(self.written..).unwrap_or_default());
        self.clear();
        taken
    }

    fn advance(&mut self, written: usize) {
        self.written += written;
        if self.written >= self.waiting.len() {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.waiting.clear();
        self.written = 0;
        self.waiting.shrink_to(KEPT);
    }
}

/// Writes last words where no outlet is at hand; whoever takes nothing is not waited for.
pub(super) fn part(fd: BorrowedFd<'_>, bytes: &[u8]) {
    if let Ok(way) = Way::to(fd) {
        way.part(bytes);
    }
}

/// Whether a terminal is hung up, or there is none.
pub(super) fn is_hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    poll(&mut fds, Some(&AT_ONCE)).is_ok_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, Seek as _, Write as _};
    use std::time::Duration;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Action, tcflow};
    use tokio::time::timeout;

    use super::*;

    const A_WHILE: Duration = Duration::from_millis(50);

    async fn all(outlet: &mut Outlet) -> io::Result<()> {
        while !outlet.is_done() {
            outlet.flows().await?;
        }
        Ok(())
    }

    fn seat() -> (File, File) {
        let seat = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&seat).and_then(|()| unlockpt(&seat)).unwrap();
        let name = ptsname(&seat, Vec::new()).unwrap();
        let terminal =
            rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        (seat.into(), terminal.into())
    }

    fn reads(seat: &mut File, count: usize) -> Vec<u8> {
        let mut seen = vec![0; count];
        seat.read_exact(&mut seen).unwrap();
        seen
    }

    #[tokio::test]
    async fn a_terminal_that_is_stopped_is_waited_for_by_nobody_and_gets_everything_when_it_goes_on() {
        let (mut seat, terminal) = seat();
        let mut outlet = Outlet::to(terminal.as_fd()).unwrap();
        tcflow(&terminal, Action::OOff).unwrap();
        outlet.push(b"first ");
        assert!(timeout(A_WHILE, outlet.flows()).await.is_err() && !outlet.is_done());
        outlet.push(b"second");
        tcflow(&terminal, Action::OOn).unwrap();
        all(&mut outlet).await.unwrap();
        assert_eq!(reads(&mut seat, 12), b"first second");
        tcflow(&terminal, Action::OOff).unwrap();
        outlet.push(b"nobody sees it");
        assert!(!outlet.part() && outlet.is_done(), "and nobody waits");
    }

    #[tokio::test]
    async fn who_is_refused_hears_it_at_once_and_who_is_not_waits_for_nobody() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert!(Outlet::to(full.as_fd()).unwrap().put(b"words").is_err());
        let (mut seat, terminal) = seat();
        let mut outlet = Outlet::to(terminal.as_fd()).unwrap();
        outlet.put(b"first ").unwrap();
        assert!(outlet.is_done());
        tcflow(&terminal, Action::OOff).unwrap();
        outlet.put(b"second ").unwrap();
        outlet.put(b"third").unwrap();
        assert!(!outlet.is_done());
        tcflow(&terminal, Action::OOn).unwrap();
        all(&mut outlet).await.unwrap();
        assert_eq!(reads(&mut seat, 18), b"first second third");
    }

    #[tokio::test]
    async fn what_was_cut_off_does_not_spoil_what_follows() {
        let (mut seat, terminal) = seat();
        let mut outlet = Outlet::to(terminal.as_fd()).unwrap();
        outlet.push(&vec![b'x'; 1 << 20]);
        let begun = outlet.flows().await.unwrap().len();
        while timeout(A_WHILE, outlet.flows()).await.is_ok() {}
        assert!(begun > 0 && !outlet.is_done(), "nobody reads it");
        let reading = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while !seen.ends_with(b"\x18after") {
                seen.extend(reads(&mut seat, 1));
            }
            seen.len()
        });
        outlet.abandon();
        outlet.push(b"after");
        assert!(outlet.part());
        assert!(reading.join().unwrap() < 1 << 20);
        outlet.abandon();
        assert!(outlet.is_done(), "nothing was cut off");
    }

    #[tokio::test]
    async fn a_pipe_that_nobody_reads_holds_up_only_what_is_in_the_row_and_one_that_is_closed_says_so() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut outlet = Outlet::to(writer.as_fd()).unwrap();
        let whole: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        outlet.push(&whole);
        while timeout(A_WHILE, outlet.flows()).await.is_ok() {}
        assert!(!outlet.is_done());
        let count = whole.len();
        let reading = std::thread::spawn(move || {
            let mut seen = vec![0; count];
            reader.read_exact(&mut seen).unwrap();
            (reader, seen)
        });
        all(&mut outlet).await.unwrap();
        let (reader, seen) = reading.join().unwrap();
        assert!(seen == whole);
        let hung_up = outlet.hung_up();
        drop(reader);
        hung_up.await;
        outlet.push(b"x");
        assert_eq!(outlet.flows().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn a_terminal_that_is_hung_up_is_known_and_fails() {
        let (seat, terminal) = seat();
        let mut outlet = Outlet::to(terminal.as_fd()).unwrap();
        let mut hung_up = std::pin::pin!(outlet.hung_up());
        assert!(timeout(A_WHILE, &mut hung_up).await.is_err() && !is_hung_up(terminal.as_fd()));
        drop(seat);
        hung_up.await;
        assert!(is_hung_up(terminal.as_fd()));
        outlet.push(b"x");
        assert_eq!(outlet.flows().await.unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
    }

    #[tokio::test]
    async fn a_socket_is_written_as_it_takes_it_and_stays_as_it_was_for_others() {
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut outlet = Outlet::to(ours.as_fd()).unwrap();
        outlet.push(&vec![b'x'; 4 << 20]);
        while timeout(A_WHILE, outlet.flows()).await.is_ok() {}
        assert!(!outlet.is_done());
        assert!(!rustix::fs::fcntl_getfl(&ours).unwrap().contains(OFlags::NONBLOCK));
        let reading = std::thread::spawn(move || theirs.read_exact(&mut vec![0; 4 << 20]).unwrap());
        all(&mut outlet).await.unwrap();
        reading.join().unwrap();
    }

    #[tokio::test]
    async fn a_file_is_written_where_whoever_shares_it_is() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before ").unwrap();
        let mut outlet = Outlet::to(file.as_fd()).unwrap();
        outlet.push(b"ours ");
        all(&mut outlet).await.unwrap();
        file.write_all(b"after").unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "before ours after");
    }
}
