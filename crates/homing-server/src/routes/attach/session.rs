//! One viewer's connection, from the handshake to the end.
//!
//! Three things go on at once: what the viewer sends is read, what was typed is passed on, and what has changed is given. None waits for
//! another: a program that does not read holds up what is typed and nothing else, a viewer that does not read holds up itself. Bounded: of
//! what is typed 1 MiB waits, of what is shown one frame. A viewer that is silent for long (frozen, or gone without a word) is let go, so
//! that it no longer decides the size for the others.

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, Stream, StreamExt};
use homing_api::attach::{AttachEvent, AttachInput, AttachRequest, LARGEST_FRAME};
use homing_api::{Code, Problem};
use homing_engine::{Engine, Error, LARGEST_SIZE, Size};
use homing_model::{TaskId, TerminalSize};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, interval, sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_util::sync::CancellationToken;

use super::stage::{Next, Say, Viewer};

/// Between two questions whether the viewer is still there.
const PING: Duration = Duration::from_secs(15);
/// A viewer that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(45);
/// A painted viewer is given no more pictures than a person can see.
const FRAME: Duration = Duration::from_millis(16);
/// Bytes of input that wait for a program that does not read; more are dropped, and that is said.
const TYPED_AHEAD: usize = 1 << 20;
/// Notes that wait for a viewer that does not read.
const NOTES: usize = 16;
/// The most bytes of one frame to a viewer.
const SENT: usize = 64 * 1024;
/// For the last words.
const PARTING: Duration = Duration::from_secs(1);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Something for the half that sends.
enum Note {
    Resized(Size),
    Refresh,
    Event(AttachEvent),
}

/// What a viewer may ask for as its size.
pub(super) fn size(size: TerminalSize) -> Result<Size, Box<Problem>> {
    let (cols, rows) = LARGEST_SIZE;
    if (1..=cols).contains(&size.cols) && (1..=rows).contains(&size.rows) {
        return Ok(Size { cols: size.cols, rows: size.rows });
    }
    let detail = format!("a terminal has 1 to {cols} columns and 1 to {rows} rows");
    Err(Box::new(Problem::new(Code::InvalidRequest, detail)))
}

/// Serves a viewer to its end.
pub(super) async fn serve(
    upgrade: OnUpgrade,
    viewer: Viewer,
    engine: Engine,
    id: TaskId,
    shutdown: CancellationToken,
) {
    let upgraded = match upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => {
            tracing::debug!(%error, "a viewer went before it came");
            return;
        }
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(8 * 1024)
        .write_buffer_size(0)
        .max_write_buffer_size(4 << 20)
        .max_message_size(Some(LARGEST_FRAME))
        .max_frame_size(Some(LARGEST_FRAME));
    let socket = Socket::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    let (mut sink, stream) = socket.split();
    let (notes, noted) = mpsc::channel(NOTES);
    let typed = Typed::default();
    let say = viewer.say();
    let mut passing = pin!(pass_on(&engine, &id, &typed, &notes));
    let parting = tokio::select! {
        biased;
        () = shutdown.cancelled() => Some((CloseCode::Restart, "the daemon is leaving")),
        () = hear(stream, &say, &notes, &typed) => None,
        () = &mut passing => None,
        end = give(&mut sink, viewer, noted) => end,
    };
    if let Some((code, reason)) = parting {
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        let _ = tokio::time::timeout(PARTING, sink.send(Message::Close(Some(frame)))).await;
    }
    // What was typed before the viewer went is the task's all the same: who types a line and detaches at once has typed it.
    typed.close();
    tokio::select! {
        biased;
        () = shutdown.cancelled() => {}
        () = passing => {}
    }
}

/// What was typed and is not passed on yet.
#[derive(Default)]
struct Typed {
    waiting: Mutex<(Vec<u8>, u64)>,
    more: Notify,
    /// Nothing is added any more.
    closed: AtomicBool,
}

impl Typed {
    fn add(&self, bytes: &[u8]) {
        let mut waiting = self.waiting.lock();
        if waiting.0.len() + bytes.len() > TYPED_AHEAD {
            waiting.1 += bytes.len() as u64;
        } else {
            waiting.0.extend_from_slice(bytes);
        }
        self.more.notify_one();
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.more.notify_one();
    }

    /// What waits, and how many bytes could not; none once there is nothing more to come.
    async fn take(&self) -> Option<(Vec<u8>, u64)> {
        loop {
            let waiting = std::mem::take(&mut *self.waiting.lock());
            if !waiting.0.is_empty() || waiting.1 > 0 {
                return Some(waiting);
            }
            if self.closed.load(Ordering::Relaxed) {
                return None;
            }
            self.more.notified().await;
        }
    }
}

/// Reads what the viewer sends, until it has gone.
async fn hear<S, E>(mut stream: S, say: &Say, notes: &mpsc::Sender<Note>, typed: &Typed)
where
    S: Stream<Item = Result<Message, E>> + Unpin,
{
    let mut heard = Instant::now();
    loop {
        let message = tokio::select! {
            message = stream.next() => message,
            () = sleep_until(heard + SILENCE) => return,
        };
        heard = Instant::now();
        let note = match message {
            Some(Ok(Message::Binary(bytes))) => {
                typed.add(&bytes);
                continue;
            }
            Some(Ok(Message::Text(text))) => match serde_json::from_str(text.as_str()) {
                Ok(AttachRequest::Resize(wanted)) => match size(wanted) {
                    Ok(size) => {
                        say.resize(size);
                        Note::Resized(size)
                    }
                    Err(problem) => Note::Event(AttachEvent::Problem(problem)),
                },
                Ok(AttachRequest::Refresh(_)) => Note::Refresh,
                Ok(AttachRequest::Redraw(_)) => {
                    say.redraw();
                    continue;
                }
                Err(error) => {
                    let detail = format!("a text frame is none of those that are known here: {error}");
                    Note::Event(AttachEvent::Problem(Box::new(Problem::new(Code::InvalidRequest, detail))))
                }
            },
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Ok(Message::Close(_)) | Err(_)) | None => return,
        };
        if notes.send(note).await.is_err() {
            return;
        }
    }
}

/// Passes on what was typed, in order, and says what became of it.
async fn pass_on(engine: &Engine, id: &TaskId, typed: &Typed, notes: &mpsc::Sender<Note>) {
    let mut tally = AttachInput::default();
    while let Some((mut bytes, refused)) = typed.take().await {
        tally.dropped += refused;
        while !bytes.is_empty() {
            let written = match engine.input(id, bytes.clone(), false).await {
                Ok(written) => usize::try_from(written).unwrap_or(usize::MAX).min(bytes.len()),
                Err(Error::InputNotRead(_)) => 0,
                // The end is told by the other side.
                Err(_) => {
                    tally.dropped += bytes.len() as u64;
                    break;
                }
            };
            tally.taken += written as u64;
            drop(bytes.drain(..written));
            if written == 0 {
                tally.dropped += bytes.len() as u64;
                break;
            }
        }
        // Who has gone need not be told.
        let _ = notes.send(Note::Event(AttachEvent::Input(tally))).await;
    }
}

async fn tell(sink: &mut SplitSink<Socket, Message>, event: &AttachEvent) -> io::Result<()> {
    let text = serde_json::to_string(event)?;
    sink.send(Message::text(text)).await.map_err(io::Error::other)
}

/// Gives the viewer what has changed, until there is an end; none if the viewer has gone first.
async fn give(
    sink: &mut SplitSink<Socket, Message>,
    mut viewer: Viewer,
    mut notes: mpsc::Receiver<Note>,
) -> Option<(CloseCode, &'static str)> {
    let mut ping = interval(PING);
    ping.reset();
    loop {
        let (next, over) = viewer.next();
        let given = !next.is_empty();
        for one in next {
            match one {
                Next::Event(event) => tell(sink, &event).await.ok()?,
                Next::Bytes(bytes) => {
                    let mut bytes = Bytes::from(bytes);
                    while !bytes.is_empty() {
                        let piece = bytes.split_to(bytes.len().min(SENT));
                        sink.send(Message::Binary(piece)).await.ok()?;
                    }
                }
            }
        }
        if over {
            return Some((CloseCode::Normal, "the task has ended"));
        }
        if given && viewer.is_painted() {
            sleep(FRAME).await;
        }
        tokio::select! {
            biased;
            note = notes.recv() => match note {
                Some(Note::Resized(size)) => viewer.resized(size),
                Some(Note::Refresh) => viewer.refresh(),
                Some(Note::Event(event)) => tell(sink, &event).await.ok()?,
                None => return None,
            },
            () = viewer.changed() => {}
            _ = ping.tick() => sink.send(Message::Ping(Bytes::new())).await.ok()?,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    const SMALL: Size = Size { cols: 20, rows: 5 };

    /// Hears what a viewer sends, and how long it took until that was over.
    async fn heard(
        sent: impl Stream<Item = Result<Message, Infallible>>,
        patience: Duration,
    ) -> Option<Duration> {
        let viewer = Viewer::alone(TaskId::from_entropy(1), SMALL);
        let (notes, _noted) = mpsc::channel(NOTES);
        let (say, typed) = (viewer.say(), Typed::default());
        let begun = Instant::now();
        let hearing = hear(Box::pin(sent), &say, &notes, &typed);
        // To the second: timers are exact to a millisecond.
        let over = tokio::time::timeout(patience, hearing).await.is_ok();
        over.then(|| Duration::from_secs(begun.elapsed().as_secs()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_viewer_that_says_nothing_is_let_go_and_one_that_answers_is_not() {
        let minute = Duration::from_secs(60);
        assert_eq!(heard(stream::pending(), minute).await, Some(SILENCE));
        let answers = stream::unfold((), |()| async {
            sleep(PING).await;
            Some((Ok(Message::Pong(Bytes::new())), ()))
        });
        assert_eq!(heard(answers, 10 * minute).await, None, "it is there");
        // One that froze after a while counts from its last word.
        let frozen = stream::iter([Ok(Message::Pong(Bytes::new()))]).chain(stream::pending());
        assert_eq!(heard(frozen, minute).await, Some(SILENCE));
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_let_go_no_longer_decides_the_size() {
        let viewer = Viewer::alone(TaskId::from_entropy(1), SMALL);
        let stage = viewer.stage();
        assert_eq!(stage.wanted_size(), Some(SMALL));
        drop(viewer);
        assert_eq!(stage.wanted_size(), None);
    }

    #[tokio::test]
    async fn what_was_typed_before_the_end_is_passed_on_and_then_there_is_no_more() {
        let typed = Typed::default();
        typed.add(b"last words");
        typed.close();
        assert_eq!(typed.take().await, Some((b"last words".to_vec(), 0)));
        assert_eq!(typed.take().await, None);
    }
}
