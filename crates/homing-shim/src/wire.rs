//! The words between daemon, keeper and shim.
//!
//! A frame is a length (4 bytes, little endian), a version (1 byte) and one CBOR value. Fields are numbered: a reader skips numbers
//! it does not know and takes an absent optional one as none, so that shims of the previous release keep working under a new daemon.
//! Numbers are never used again. A message whose kind is unknown is skipped whole, and so is a frame of version 0, which there never
//! was; a later version is read as far as it is understood.

use std::convert::Infallible;

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use homing_sys::memory;

/// The version every frame begins with.
pub const VERSION: u8 = 1;
/// No frame is longer: a command line and environment of several megabytes fit.
pub const MAX_FRAME: usize = 32 << 20;
/// Bytes of input in one message at most.
pub const MAX_INPUT: usize = 16 * 1024;
/// Bytes of input that one caller sends at once at most, in as many messages as it takes.
pub const MAX_PIECE: usize = 1 << 20;

/// Where the command's input comes from.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Stdin {
    /// `/dev/null`.
    #[n(0)]
    None,
    /// What [`ToShim::Input`] brings.
    #[n(1)]
    Pipe,
    /// A file, by path.
    #[n(2)]
    File(#[n(0)] ByteVec),
}

/// One resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Rlimit {
    /// `RLIMIT_*` by number.
    #[n(0)]
    pub resource: u32,
    /// Soft limit; absent is unlimited.
    #[n(1)]
    pub soft: Option<u64>,
    /// Hard limit; absent is unlimited.
    #[n(2)]
    pub hard: Option<u64>,
}

/// All that a shim must know to run one attempt. Travels by message, never by argument or environment.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Launch {
    /// The task.
    #[n(0)]
    pub task: String,
    /// Which try.
    #[n(1)]
    pub attempt: u32,
    /// This launch, told apart from any other.
    #[n(2)]
    pub nonce: u64,
    /// Program and arguments.
    #[n(3)]
    pub argv: Vec<ByteVec>,
    /// `NAME=value`.
    #[n(4)]
    pub env: Vec<ByteVec>,
    /// Working directory.
    #[n(5)]
    pub cwd: ByteVec,
    /// Input.
    #[n(6)]
    pub stdin: Stdin,
    /// One terminal instead of two pipes.
    #[n(7)]
    pub pty: bool,
    /// Time limit, from the start.
    #[n(8)]
    pub timeout_ms: Option<u64>,
    /// Between the polite signal and the last one.
    #[n(9)]
    pub grace_ms: u64,
    /// End children that outlive the main process.
    #[n(10)]
    pub kill_on_exit: bool,
    /// How much output is kept.
    #[n(11)]
    pub max_output: u64,
    /// File mode mask.
    #[n(12)]
    pub umask: Option<u32>,
    /// Resource limits.
    #[n(13)]
    pub rlimits: Vec<Rlimit>,
    /// Niceness.
    #[n(14)]
    pub nice: Option<i32>,
    /// The folder under which a cgroup for the task may be made.
    #[n(15)]
    pub cgroup: Option<ByteVec>,
    /// The home whose daemon is to be revived when nobody is there to confirm; none for an embedded engine.
    #[n(16)]
    pub revive: Option<ByteVec>,
    /// How a start that failed may call what it could not use, where that differs.
    #[n(20)]
    pub shown: Option<Shown>,
    /// How large the terminal is at first, in columns and rows; a shim of an earlier release does not know this.
    #[n(21)]
    pub pty_size: Option<(u16, u16)>,
}

/// Names for people, with markers where secrets stand in the real ones.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Shown {
    /// The program.
    #[n(0)]
    pub program: String,
    /// The working directory.
    #[n(1)]
    pub cwd: String,
    /// The file that is its input.
    #[n(2)]
    pub input: String,
}

/// Ends the tree.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Stop {
    /// Before the last signal.
    #[n(0)]
    pub grace_ms: Option<u64>,
    /// The polite signal.
    #[n(1)]
    pub signal: Option<i32>,
    /// Who asked.
    #[n(2)]
    pub by: Option<String>,
}

/// Bytes for the command's input.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Input {
    /// Answered with the same number.
    #[n(0)]
    pub seq: u64,
    /// At most [`MAX_INPUT`].
    #[n(1)]
    pub data: ByteVec,
    /// Close afterwards.
    #[n(2)]
    pub eof: bool,
}

/// From the daemon to a shim.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToShim {
    /// Run this. First message of a launch.
    #[n(0)]
    Launch(#[n(0)] Box<Launch>),
    /// Say who you are and where you stand. First message of an adoption.
    #[n(1)]
    Hello,
    /// End the tree.
    #[n(2)]
    Stop(#[n(0)] Stop),
    /// Send this signal to the main process's group.
    #[n(3)]
    Signal(#[n(0)] i32),
    /// Write this to the input.
    #[n(4)]
    Input(#[n(0)] Input),
    /// Say once when the output is longer than this, or than what was said before and not answered yet.
    #[n(6)]
    Watch(#[n(0)] u64),
    /// The end is durable in the ledger; the shim may leave.
    #[n(7)]
    Recorded,
    /// Forget what was not taken yet of the input with this number, and say how much was.
    #[n(8)]
    CancelInput(#[n(0)] u64),
    /// Give the terminal this size: columns, rows. A shim of an earlier release does not know this and does not answer.
    #[n(9)]
    Resize(#[n(0)] u16, #[n(1)] u16),
    /// Let the tree stand still. A shim of an earlier release does not know this and does not answer.
    #[n(10)]
    Pause,
    /// Let it go on.
    #[n(11)]
    Resume,
    /// Changes [`Launch::grace_ms`]. A shim of an earlier release does not know this and keeps what it has.
    #[n(12)]
    Grace(#[n(0)] u64),
}

/// Why a shim did not run the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Refusal {
    /// Another shim holds the folder.
    #[n(0)]
    Held,
    /// The start marker is there already.
    #[n(1)]
    AlreadyStarted,
}

/// Whether the tree stands still because somebody asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Stillness {
    /// It does.
    #[n(0)]
    pub paused: bool,
    /// Since when it is so, in wall-clock milliseconds; absent if it never was otherwise.
    #[n(1)]
    pub since: Option<i64>,
}

/// What came of [`ToShim::Pause`] or [`ToShim::Resume`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum PauseAnswer {
    /// It is so now.
    #[n(0)]
    Done,
    /// It was so before.
    #[n(1)]
    Already,
    /// The command is not executed yet.
    #[n(2)]
    NotStarted,
    /// The tree is being ended.
    #[n(3)]
    Stopping,
    /// The main process has ended.
    #[n(4)]
    Ended,
    /// This process cannot be made to stand still, by its id and name; the others go on.
    #[n(5)]
    Beyond(#[n(0)] u32, #[n(1)] String),
    /// Before the tree stood still it was to go on.
    #[n(6)]
    Overtaken,
}

/// Where a shim stands; its answer to [`ToShim::Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Standing {
    /// Its task.
    #[n(0)]
    pub task: String,
    /// Its attempt.
    #[n(1)]
    pub attempt: u32,
    /// Its launch.
    #[n(2)]
    pub nonce: u64,
    /// The main process, once executed.
    #[n(3)]
    pub pid: Option<u32>,
    /// When it was executed, in wall-clock milliseconds.
    #[n(4)]
    pub started_at: Option<i64>,
    /// The encoded exit record, if the attempt has ended.
    #[n(5)]
    pub ended: Option<ByteVec>,
    /// Bytes of output so far.
    #[n(6)]
    pub output_bytes: u64,
    /// Of those, bytes no longer kept.
    #[n(7)]
    pub output_dropped: u64,
    /// The shim's own process.
    #[n(8)]
    pub shim: Option<u32>,
    /// Whether its tree is being ended; a shim of the first release does not say.
    #[n(9)]
    pub stopping: Option<bool>,
    /// Whether its tree stands still; a shim of an earlier release does not say, and cannot do it.
    #[n(10)]
    pub stillness: Option<Stillness>,
}

/// From a shim to the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromShim {
    /// The attempt is not run by this shim.
    #[n(0)]
    Refused(#[n(0)] Refusal),
    /// The command was executed: its pid, wall-clock milliseconds, the shim's own pid, and whether the shim knows [`ToShim::Pause`].
    #[n(1)]
    Started(#[n(0)] u32, #[n(1)] i64, #[n(2)] Option<u32>, #[n(3)] Option<bool>),
    /// Output is longer than was asked about: bytes in all, and of those no longer kept.
    #[n(2)]
    Output(#[n(0)] u64, #[n(1)] u64),
    /// Input was taken: its number, bytes written, and whether the input is closed now.
    #[n(3)]
    InputTaken(#[n(0)] u64, #[n(1)] u64, #[n(2)] bool),
    /// The attempt ended: the encoded exit record.
    #[n(4)]
    Exited(#[n(0)] ByteVec),
    /// Where it stands.
    #[n(5)]
    Standing(#[n(0)] Box<Standing>),
    /// The signal was sent (true), or there was nobody left to signal.
    #[n(6)]
    Signalled(#[n(0)] bool),
    /// What the terminal's size is now, in columns and rows, and from which byte of the output on; zeros where there is no terminal.
    #[n(7)]
    Resized(#[n(0)] u64, #[n(1)] u16, #[n(2)] u16),
    /// The tree stands still now, or goes on. Told whenever that changes, whoever asked for it, before the answer to them.
    #[n(8)]
    Paused(#[n(0)] Stillness),
    /// The answer to one pause or resume, in the order in which they came.
    #[n(9)]
    PauseAnswered(#[n(0)] PauseAnswer),
}

/// From a daemon or client to the keeper.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToKeeper {
    /// I am the engine of this home; restart me when I die unless I say otherwise.
    #[n(0)]
    Engine,
    /// I accept requests now.
    #[n(1)]
    Ready,
    /// I cannot start, because of this.
    #[n(2)]
    CannotStart(#[n(0)] String),
    /// I am about to leave on purpose: do not restart me.
    #[n(3)]
    Leaving,
    /// Fork a shim for this launch; its socket and its attempt folder come as descriptors.
    #[n(4)]
    Launch(#[n(0)] u64),
    /// Make sure that a daemon runs, and answer when it does.
    #[n(5)]
    Start,
}

/// From the keeper.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromKeeper {
    /// Answer to [`ToKeeper::Engine`]: the keeper's process.
    #[n(0)]
    Welcome(#[n(0)] u32),
    /// No shim could be forked for this launch: the error's number.
    #[n(1)]
    LaunchFailed(#[n(0)] u64, #[n(1)] i32),
    /// Answer to [`ToKeeper::Start`]: the daemon accepts requests.
    #[n(2)]
    Running,
    /// Answer to [`ToKeeper::Start`]: it cannot, because of this.
    #[n(3)]
    NotRunning(#[n(0)] String),
}

/// Why a frame could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Longer than any frame may be.
    #[error("a frame of {0} bytes is longer than {MAX_FRAME}")]
    TooLong(usize),
    /// Not one of our messages.
    #[error("a frame could not be decoded: {0}")]
    Malformed(#[from] minicbor::decode::Error),
}

impl Launch {
    /// Overwrites what may hold secrets; the program's name stays.
    pub fn wipe(&mut self) {
        for text in self.env.iter_mut().chain(self.argv.iter_mut().skip(1)) {
            memory::wipe(text);
        }
        self.env = Vec::new();
        self.argv.truncate(1);
    }
}

/// Counts what would be written.
struct Length(usize);

impl minicbor::encode::Write for Length {
    type Error = Infallible;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0 += bytes.len();
        Ok(())
    }
}

/// A message as a frame.
pub fn frame<T: Encode<()>>(message: &T) -> Vec<u8> {
    // A vector that grows would leave copies of a launch behind.
    let mut length = Length(5);
    let _ = minicbor::encode(message, &mut length);
    let mut bytes = Vec::with_capacity(length.0);
    bytes.extend_from_slice(&[0, 0, 0, 0, VERSION]);
    // Writing to a Vec cannot fail; an encoder error would leave an empty frame, which readers skip.
    if minicbor::encode(message, &mut bytes).is_err() {
        bytes.truncate(5);
    }
    let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Collects bytes and gives back whole messages.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: Vec<u8>,
    start: usize,
}

impl Frames {
    /// Adds what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let whole = rest.len() + bytes.len();
        if self.start > 0 || whole > self.buffer.capacity() {
            let mut larger = Vec::with_capacity(whole.next_power_of_two());
            larger.extend_from_slice(rest);
            memory::wipe(&mut self.buffer);
            (self.buffer, self.start) = (larger, 0);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message. Frames of a kind this release does not know are skipped.
    ///
    /// # Errors
    /// If the stream can no longer be followed.
    pub fn pop<T: for<'b> Decode<'b, ()>>(&mut self) -> Result<Option<T>, Error> {
        loop {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            let Some(header) = rest.first_chunk::<4>() else { break };
            let length = u32::from_le_bytes(*header) as usize;
            if length > MAX_FRAME {
                return Err(Error::TooLong(length));
            }
            let Some(body) = rest.get(4..4 + length) else { break };
            let decoded = body
                .split_first()
                .filter(|(version, _)| **version > 0)
                .map(|(_, rest)| minicbor::decode::<T>(rest));
            self.start += 4 + length;
            match decoded {
                Some(Ok(message)) => return Ok(Some(message)),
                Some(Err(error)) if error.is_unknown_variant() => {}
                Some(Err(error)) => return Err(error.into()),
                None => {}
            }
        }
        if self.start == self.buffer.len() {
            // Let go of a large launch message: a shim lives long and should stay small.
            memory::wipe(&mut self.buffer);
            self.buffer = Vec::new();
            self.start = 0;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_cut_anywhere_read_back_in_order() {
        let sent = [ToShim::Hello, ToShim::Watch(70_000), ToShim::Signal(15), ToShim::Recorded];
        let bytes: Vec<u8> = sent.iter().flat_map(frame).collect();
        for cut in 0..bytes.len() {
            let mut frames = Frames::default();
            let mut got = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                frames.push(part);
                while let Some(message) = frames.pop::<ToShim>().unwrap() {
                    got.push(message);
                }
            }
            assert_eq!(got, sent);
        }
    }

    #[derive(Encode)]
    enum Later {
        #[n(999)]
        Unheard(#[n(0)] u64),
        #[n(3)]
        Signal(#[n(0)] i32, #[n(7)] Option<u64>),
    }

    #[test]
    fn unknown_kinds_and_fields_of_a_later_release_are_skipped() {
        let mut frames = Frames::default();
        frames.push(&frame(&Later::Unheard(1)));
        frames.push(&frame(&Later::Signal(9, Some(1))));
        assert_eq!(frames.pop::<ToShim>().unwrap(), Some(ToShim::Signal(9)));
    }

    #[derive(Encode)]
    enum Earlier {
        #[n(1)]
        Started(#[n(0)] u32, #[n(1)] i64, #[n(2)] Option<u32>),
        #[n(5)]
        Standing(#[n(0)] Box<EarlierStanding>),
    }

    #[derive(Encode)]
    struct EarlierStanding {
        #[n(0)]
        task: String,
        #[n(1)]
        attempt: u32,
        #[n(2)]
        nonce: u64,
        #[n(6)]
        output_bytes: u64,
        #[n(7)]
        output_dropped: u64,
    }

    #[test]
    fn a_shim_of_an_earlier_release_does_not_say_that_it_can_pause_and_skips_the_order() {
        let mut frames = Frames::default();
        let standing =
            EarlierStanding { task: "t".into(), attempt: 1, nonce: 2, output_bytes: 3, output_dropped: 0 };
        frames.push(&frame(&Earlier::Started(7, 8, Some(9))));
        frames.push(&frame(&Earlier::Standing(Box::new(standing))));
        assert_eq!(frames.pop::<FromShim>().unwrap(), Some(FromShim::Started(7, 8, Some(9), None)));
        let Some(FromShim::Standing(standing)) = frames.pop::<FromShim>().unwrap() else {
            panic!("a standing")
        };
        assert_eq!((standing.output_bytes, standing.stillness), (3, None));

        #[derive(Debug, PartialEq, Decode)]
        enum EarlierOrder {
            #[n(1)]
            Hello,
        }
        let unknown = [frame(&ToShim::Pause), frame(&ToShim::Resume), frame(&ToShim::Grace(1))];
        frames.push(&[unknown.concat(), frame(&ToShim::Hello)].concat());
        assert_eq!(frames.pop::<EarlierOrder>().unwrap(), Some(EarlierOrder::Hello));
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_or_nothing_and_never_a_panic(bytes: Vec<u8>) {
            let mut frames = Frames::default();
            frames.push(&bytes);
            while let Ok(Some(_)) = frames.pop::<FromShim>() {}
        }
    }
}
