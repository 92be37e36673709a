//! `homing list --watch`: the list, drawn anew whenever something happens.
//!
//! A stream of events says that there is something new, and then the tasks are asked for: a burst of events costs one question. The stream
//! begins with a cursor that no log has, so that its first record says that it is there, and no event falls between the first list and the
//! stream. It goes on after a restart of the daemon by itself. Times are counted on here, without asking anybody.
//!
//! A question stands beside everything else: keys and signals are heard, and ages grow, however long its answer takes, and an answer that
//! takes long is waited for and not asked for again. A terminal that takes nothing holds up the picture alone; one that is gone ends it.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::time::Duration;

use homing_api::Page;
use homing_client::{EventQuery, ListQuery};
use homing_model::{EventKind, Task};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::fetch;
use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::daemon_control::autostart;
use crate::render::columns::fit;
use crate::render::console::Tint;
use crate::render::table;
use crate::terminal::keyboard::Caught;
use crate::terminal::nonblocking_stdio;
use crate::terminal::screen::{self, Screen};

/// Events that come together are drawn together.
const TOGETHER: Duration = Duration::from_millis(50);
/// Ages are shown in seconds.
const TICK: Duration = Duration::from_secs(1);
/// Beyond every log: the stream begins with the word that it is there.
const NO_CURSOR: u64 = i64::MAX as u64;
/// What 128+SIGHUP is to a shell: the terminal is gone.
const HUNG_UP: u8 = 129;
/// What changes a list.
const KINDS: [EventKind; 9] = [
    EventKind::TaskQueued,
    EventKind::TaskStarted,
    EventKind::TaskPaused,
    EventKind::TaskResumed,
    EventKind::TaskStopping,
    EventKind::TaskCompleted,
    EventKind::TaskProgress,
    EventKind::TaskForgotten,
    EventKind::DaemonStarted,
];

/// Signals that end it, and those that it goes on after.
struct Signals {
    ends: [(Caught, u8); 4],
    suspend: Caught,
    goes_on: Caught,
    resized: Signal,
}

impl Signals {
    fn caught() -> io::Result<Self> {
        let ending = |kind: SignalKind, code| Ok::<_, io::Error>((Caught::new(kind)?, code));
        let caught = |number: rustix::process::Signal| Caught::new(SignalKind::from_raw(number.as_raw()));
        Ok(Self {
            // The interrupt key is the usual way out.
            ends: [
                ending(SignalKind::interrupt(), exit_code::DONE)?,
                ending(SignalKind::terminate(), 143)?,
                ending(SignalKind::hangup(), HUNG_UP)?,
                ending(SignalKind::quit(), 131)?,
            ],
            suspend: caught(rustix::process::Signal::TSTP)?,
            goes_on: caught(rustix::process::Signal::CONT)?,
            resized: signal(SignalKind::window_change())?,
        })
    }

    async fn ended(ends: &mut [(Caught, u8); 4]) -> u8 {
        let [(one, first), (two, second), (three, third), (four, fourth)] = ends;
        tokio::select! {
            () = one.recv() => *first,
            () = two.recv() => *second,
            () = three.recv() => *third,
            () = four.recv() => *fourth,
        }
    }
}

/// Draws until somebody has seen enough.
pub(super) fn run(query: &ListQuery, limit: Option<u32>, context: &Context) -> Result<u8, Failure> {
    if context.json || !context.console.drawable {
        let why = if context.json {
            "`--json` is for programs"
        } else {
            "stdout is no terminal that can be drawn on"
        };
        return Err(Failure::usage(
            format!("`--watch` draws a picture, and {why}"),
            "`homing events -f` prints every change as a line; `homing list` prints the tasks once.",
        ));
    }
    context.block_on_screen(Box::pin(watch(query, limit, context)))
}

async fn watch(query: &ListQuery, limit: Option<u32>, context: &Context) -> Result<u8, Failure> {
    // The first answer comes before anything is drawn: what is wrong is told on the screen that stays.
    let mut page = fetch(&context.client(), query.clone(), most(limit, 1)).await?;
    let client = context.screen_client();
    let events = EventQuery { after: NO_CURSOR, owner: query.owner.clone(), kinds: KINDS.to_vec() };
    let mut events = client.follow_events(events);
    let cannot = |error: io::Error| Failure::writing(&error);
    let mut signals = Signals::caught().map_err(cannot)?;
    let mut screen = Screen::enter().map_err(cannot)?;
    let mut keys = screen::keys();
    let mut has_keys = true;
    let (mut fresh_at, mut tick) = (Some(Instant::now()), Instant::now() + TICK);
    let mut asking = None;
    let mut hung_up = pin!(screen.hung_up());
    loop {
        let due = fresh_at.filter(|_| asking.is_none());
        let fresh = async {
            match due {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        };
        let answered = async {
            match &mut asking {
                Some(asking) => asking.await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            code = Signals::ended(&mut signals.ends) => return Ok(code),
            () = &mut hung_up => return Ok(HUNG_UP),
            key = keys.recv(), if has_keys => match key {
                Some(b'q' | b'Q') => return Ok(exit_code::DONE),
                // What it means comes as a signal.
                Some(key) => {
                    let _ = screen.signals(key);
                    continue;
                }
                None => has_keys = false,
            },
            () = signals.suspend.recv() => {
                screen.suspend();
                if let Some(code) = screen.again(async || Signals::ended(&mut signals.ends).await).await {
                    return Ok(code);
                }
                fresh_at = Some(Instant::now());
            }
            // Also after SIGSTOP, which nobody is told of.
            () = signals.goes_on.recv() => {
                if let Some(code) = screen.again(async || Signals::ended(&mut signals.ends).await).await {
                    return Ok(code);
                }
                screen.forget();
                fresh_at = Some(Instant::now());
            }
            _ = signals.resized.recv() => {
                screen.forget();
                fresh_at = Some(Instant::now());
            }
            flowed = screen.flows() => match flowed {
                Ok(()) => continue,
                Err(error) if nonblocking_stdio::is_hang_up(&error) => return Ok(HUNG_UP),
                Err(error) => return Err(cannot(error)),
            },
            answer = answered => {
                page = answer?;
                asking = None;
            }
            () = fresh => {
                fresh_at = None;
                asking = Some(Box::pin(fetch(&client, query.clone(), most(limit, screen.size().1))));
                continue;
            }
            record = events.next() => {
                record?;
                fresh_at = fresh_at.or_else(|| Some(Instant::now() + TOGETHER));
            }
            () = sleep_until(tick) => {}
        }
        if tick <= Instant::now() {
            tick = Instant::now() + TICK;
        }
        let stopped = autostart::is_stopped(&context.home);
        let size = screen.size();
        screen.draw(&picture(&page, stopped, size, context));
    }
}

/// As many as fit, unless fewer are wanted.
fn most(limit: Option<u32>, height: usize) -> u32 {
    let room = u32::try_from(height).unwrap_or(u32::MAX).max(1);
    limit.unwrap_or(u32::MAX).min(room)
}

/// What is to be seen: the table, and below it what else there is to know.
fn picture(
    page: &Page<Task>,
    stopped: bool,
    (width, height): (usize, usize),
    context: &Context,
) -> Vec<String> {
    let console = context.console.of_width(width);
    let room = height.saturating_sub(2);
    let shown = page.items.get(..room.min(page.items.len())).unwrap_or_default();
    let mut lines: Vec<String> = if page.items.is_empty() {
        vec![fit("no tasks", width)]
    } else {
        table::render(shown, context.now(), &console).lines().map(str::to_owned).collect()
    };
    let more = page.next_cursor.is_some() || shown.len() < page.items.len();
    let foot = match (stopped, more) {
        (true, _) => "the daemon is stopped; tasks run on; `homing daemon start` starts it",
        (false, true) => "there are more; q or Ctrl-C ends this",
        (false, false) => "q or Ctrl-C ends this",
    };
    lines.truncate(height.saturating_sub(1));
    lines.push(console.tint(Tint::Dim, &fit(foot, width)));
    lines
}

#[cfg(test)]
mod tests {
    use homing_client::fake::sample_task;

    use super::*;
    use crate::options::environment::Surroundings;
    use crate::render::columns::of;
    use crate::render::console::Console;

    #[test]
    fn a_picture_fits_whatever_the_size() {
        let context = Context {
            surroundings: Surroundings::default(),
            console: Console::plain(Some(80)),
            home_flag: None,
            home: "/h".into(),
            json: false,
        };
        let task: Task = serde_json::from_value(sample_task("running")).unwrap();
        let page = Page { items: vec![task; 40], next_cursor: None };
        for width in [1, 10, 20, 40, 80, 200] {
            for height in [1, 2, 3, 5, 24, 60] {
                let lines = picture(&page, height == 5, (width, height), &context);
                assert!(lines.len() <= height && !lines.is_empty(), "{height}: {}", lines.len());
                assert!(lines.iter().all(|line| of(line) <= width), "{width}: {lines:?}");
            }
        }
        let lines = picture(&page, false, (80, 24), &context);
        assert_eq!((lines.len(), lines[23].as_str()), (24, "there are more; q or Ctrl-C ends this"));
    }
}
