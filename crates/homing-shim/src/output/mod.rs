//! A task's output on disk: raw bytes for any tool, and an index of who said what when.
//!
//! Keeps P7. The output is one logical stream of bytes whose offsets never move. The first half of the cap stays in `output.log`; what comes
//! later goes to segments beside it, `output.<offset of its first byte>.log`, of which the oldest is dropped when the cap is reached. A
//! gap is any stretch between two segments: it needs no record of its own, and a disk that was full for a while leaves one just the same.
//! Each segment has an index, `.idx`, of 16-byte entries (offset and stream, time); an entry holds until the next one.

mod index;
mod reader;
mod segment;
mod sizes;
mod writer;

pub use index::{Span, Stream};
pub use reader::{Chunk, Extent, extent, read, spans};
pub(crate) use sizes::SizeWriter;
pub use sizes::{FIRST_SIZE, SizeMark, read_sizes};
pub(crate) use writer::{Taken, Writer, widen};
