//! The loop.

use std::fmt;
use std::io;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crossterm::event::Event;
use homing_api::TaskDetail;
use homing_client::Client;
use homing_model::Timestamp;
use rustix::process::{Pid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant, sleep_until};

use super::glimpse::Glimpses;
use super::input::Input;
use super::news::{News, Out, spawn};
use super::pace::Pace;
use super::screen::Screen;
use super::{doer, feed, reader};
use crate::detail::Detail;
use crate::message::{Effect, Message};
use crate::panel::{Options, Panel, Wanted};

/// Everything about a task as labelled lines, at a time.
pub type Describe = fn(&TaskDetail, Timestamp) -> Vec<(String, String)>;

/// The command that does what only a command can: attach, run again, pause.
pub type Commands = Box<dyn Fn(&Effect) -> Option<Command>>;

/// What a panel runs with.
pub struct Setup {
    /// Speaks for nobody where it only looks.
    pub client: Client,
    /// How the panel is.
    pub options: Options,
    /// Shows only tasks with all these words.
    pub filter: String,
    /// What time it is.
    pub clock: Box<dyn Fn() -> Timestamp>,
    /// Details in words.
    pub describe: Describe,
    /// For what the client does not do.
    pub commands: Commands,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Why a panel ended that nobody left.
#[derive(Debug)]
pub enum Error {
    /// The terminal cannot be used.
    Terminal(io::Error),
    /// A part of the panel panicked, which is a mistake in it. What was shown would no longer have been so.
    Broken(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terminal(error) => write!(f, "the terminal cannot be used: {error}"),
            Self::Broken(what) => write!(f, "{what} of the panel failed"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Terminal(error) => Some(error),
            Self::Broken(_) => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error)
    }
}

/// How a panel was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// By its own keys.
    Quit,
    /// By a signal of this number.
    Signalled(i32),
    /// The terminal is gone.
    HungUp,
}

/// Runs a panel on the terminal of this process until somebody leaves it, or the terminal is gone. One that takes nothing holds up what is shown, and no way out.
///
/// # Errors
/// If the terminal cannot be used, or a part of the panel panicked.
pub async fn run(setup: Setup) -> Result<Left, Error> {
    fed_by(setup, feed::feed).await
}

/// The same, with the tasks told of by this.
async fn fed_by<F: Future<Output = ()> + Send + 'static>(
    setup: Setup,
    feed: impl FnOnce(Client, Out) -> F,
) -> Result<Left, Error> {
    let (out, news) = Out::channel();
    let mut panel = Panel::new(setup.options.clone());
    panel.update(Message::Now((setup.clock)()));
    panel.set_filter(&setup.filter);
    let looker = setup.client.nameless();
    // Ends with the loop: what it sends goes nowhere then.
    let feeding = Worker(spawn("the reader of events", &out, feed(looker.clone(), out.clone())));
    let mut live = Live {
        glimpses: Glimpses::new(looker.clone(), out.clone()),
        looker,
        setup,
        panel,
        out,
        pace: Pace::new(),
        wanted: Wanted::default(),
        reading: None,
        describing: None,
        known: None,
    };
    // First of all: from here on nothing that can be caught ends us without giving it back.
    let signals = Signals::catch()?;
    let seat = Seat { screen: Screen::take()?, input: Some(Input::open()), signals };
    let result = live.turn(news, seat).await;
    drop(feeding);
    result
}

/// A worker that ends when nobody wants it any more.
#[derive(Debug)]
struct Worker(JoinHandle<()>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Live {
    setup: Setup,
    looker: Client,
    panel: Panel,
    out: Out,
    pace: Pace,
    wanted: Wanted,
    reading: Option<(Worker, Arc<Notify>)>,
    describing: Option<Worker>,
    /// The details that are shown, to be put into words anew as time goes on.
    known: Option<Box<TaskDetail>>,
    glimpses: Glimpses,
}

/// Whatever can be caught ends it in order; keys make no signals here.
struct Signals([(Signal, i32); 4]);

impl Signals {
    fn catch() -> io::Result<Self> {
        let ending = |kind: SignalKind| Ok::<_, io::Error>((signal(kind)?, kind.as_raw_value()));
        Ok(Self([
            ending(SignalKind::terminate())?,
            ending(SignalKind::hangup())?,
            ending(SignalKind::interrupt())?,
            ending(SignalKind::quit())?,
        ]))
    }

    async fn next(&mut self) -> i32 {
        let [(one, first), (two, second), (three, third), (four, fourth)] = &mut self.0;
        tokio::select! {
            _ = one.recv() => *first,
            _ = two.recv() => *second,
            _ = three.recv() => *third,
            _ = four.recv() => *fourth,
        }
    }
}

/// The terminal, and what is heard at it.
struct Seat {
    screen: Screen,
    input: Option<Input>,
    signals: Signals,
}

impl Live {
    async fn turn(&mut self, mut news: mpsc::Receiver<News>, mut seat: Seat) -> Result<Left, Error> {
        let mut hung_up = pin!(seat.screen.hung_up());
        loop {
            let now = Instant::now();
            let due = self.pace.due(now).filter(|_| seat.screen.is_shown());
            let tick = self.panel.next_change().map(Duration::from_millis);
            let tick = tick.map(|left| self.pace.last().unwrap_or(now) + left);
            let tick = tick.filter(|_| self.pace.due(now).is_none());
            let input_now = async {
                match &mut seat.input {
                    Some(input) => input.next().await,
                    None => None,
                }
            };
            let effects = tokio::select! {
                biased;
                number = seat.signals.next() => return Ok(Left::Signalled(number)),
                () = &mut hung_up => return Ok(Left::HungUp),
                event = input_now => match event {
                    Some(Ok(event)) => self.event(event),
                    Some(Err(_)) | None => return Ok(Left::HungUp),
                },
                flowed = seat.screen.flows() => match flowed {
                    Ok(()) => Vec::new(),
                    Err(error) if is_gone(&error) => return Ok(Left::HungUp),
                    Err(error) => return Err(error.into()),
                },
                () = sleep_until(due.unwrap_or(now)), if due.is_some() => {
                    self.draw(&mut seat.screen)?;
                    Vec::new()
                }
                Some(one) = news.recv() => {
                    self.take_in(one)?;
                    while let Ok(one) = news.try_recv() {
                        self.take_in(one)?;
                    }
                    Vec::new()
                }
                () = sleep_until(tick.unwrap_or(now)), if tick.is_some() => {
                    self.pace.now();
                    Vec::new()
                }
            };
            for effect in effects {
                if let Some(left) = self.carry_out(effect, &mut seat).await? {
                    return Ok(left);
                }
            }
        }
    }

    fn event(&mut self, event: Event) -> Vec<Effect> {
        self.pace.now();
        self.panel.update(match event {
            Event::Key(key) => Message::Key(key),
            Event::Mouse(mouse) => Message::Mouse(mouse),
            Event::Paste(text) => Message::Paste(text),
            Event::Resize(..) | Event::FocusGained | Event::FocusLost => return Vec::new(),
        })
    }

    fn take_in(&mut self, news: News) -> Result<(), Error> {
        match news {
            News::Broken(what) => return Err(Error::Broken(what)),
            News::Now(message) => {
                self.pace.now();
                self.panel.update(message);
            }
            News::Soon(message) => {
                self.pace.soon();
                self.panel.update(message);
            }
            News::Changed(tasks) => self.changed(&tasks),
            News::Detail(detail) => {
                if self.wanted.detail.as_deref() == Some(detail.task.id.as_str()) {
                    self.known = Some(detail);
                    self.describe();
                    self.pace.now();
                }
            }
        }
        Ok(())
    }

    fn changed(&mut self, tasks: &[String]) {
        for task in tasks {
            self.glimpses.changed(task);
        }
        let is_one = |shown: &Option<String>| shown.as_ref().is_some_and(|shown| tasks.contains(shown));
        if is_one(&self.wanted.output)
            && let Some((_, changed)) = &self.reading
        {
            changed.notify_one();
        }
        if is_one(&self.wanted.detail) {
            self.ask_details();
        }
    }

    fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        let from = Instant::now();
        self.panel.update(Message::Now((self.setup.clock)()));
        self.describe();
        screen.draw(&mut self.panel)?;
        self.pace.drawn(from, Instant::now());
        let wanted = self.panel.wanted();
        if wanted != self.wanted {
            self.want(wanted);
        }
        Ok(())
    }

    /// Begins to look at what came into sight, and ends to look at the rest.
    fn want(&mut self, wanted: Wanted) {
        let before = std::mem::replace(&mut self.wanted, wanted);
        if before.output != self.wanted.output {
            self.reading = self.wanted.output.clone().map(|task| {
                let changed = Arc::new(Notify::new());
                let read = reader::read(self.looker.clone(), task, Arc::clone(&changed), self.out.clone());
                (Worker(spawn("the reader of output", &self.out, read)), changed)
            });
        }
        if before.detail != self.wanted.detail {
            self.known = None;
            self.ask_details();
        }
        if before.glimpses != self.wanted.glimpses {
            self.glimpses.look_at(&self.wanted.glimpses);
        }
    }

    fn ask_details(&mut self) {
        let Some(task) = self.wanted.detail.clone() else {
            self.describing = None;
            return;
        };
        let (client, out) = (self.looker.clone(), self.out.clone());
        // A question that is not answered yet is asked anew: its answer might be older than what made us ask.
        self.describing = Some(Worker(spawn("the reader of details", &self.out, async move {
            let _ = match client.detail(&task).await {
                Ok(detail) => out.send(News::Detail(Box::new(detail))).await,
                Err(error) => out.say(feed::why(error)).await,
            };
        })));
    }

    /// Says it anew: some of it is about how long ago.
    fn describe(&mut self) {
        if let Some(known) = &self.known {
            let facts = (self.setup.describe)(known, (self.setup.clock)());
            self.panel.update(Message::Detail(Detail::new(known.task.id.as_str(), facts)));
        }
    }

    async fn carry_out(&mut self, effect: Effect, seat: &mut Seat) -> io::Result<Option<Left>> {
        let (client, out) = (self.setup.client.clone(), self.out.clone());
        match effect {
            Effect::Quit => return Ok(Some(Left::Quit)),
            Effect::Copy(text) => seat.screen.copy(&text),
            Effect::Stop(task) => {
                let by = self.setup.options.owner.clone();
                // Neither is ended with the loop: what was asked for is done.
                drop(spawn("what stops tasks", &self.out, doer::stop(client, task, by, out)));
            }
            Effect::Acknowledge { task, owner } => {
                drop(spawn("what acknowledges", &self.out, doer::acknowledge(client, task, owner, out)));
            }
            Effect::Attach(_) => {
                if let Some(command) = (self.setup.commands)(&effect) {
                    return self.lend(command, seat).await;
                }
            }
            Effect::Pause(_) | Effect::Resume(_) | Effect::Rerun(_) => {
                if let Some(command) = (self.setup.commands)(&effect) {
                    drop(spawn("what runs commands", &self.out, doer::command(command, out)));
                }
            }
        }
        Ok(None)
    }

    /// Lets another program have the terminal until it ends. A signal to this one is one to that, and then they both leave.
    async fn lend(&mut self, mut command: Command, seat: &mut Seat) -> io::Result<Option<Left>> {
        // Nobody else may read the keys meanwhile.
        seat.input = None;
        seat.screen.lend();
        // What it has to say is said in the panel: on the screen it would be gone at once.
        command.stderr(Stdio::piped());
        let mut left = None;
        let ended = match command.spawn() {
            Ok(child) => {
                let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                let mut ended = pin!(doer::blocking(move || child.wait_with_output()));
                loop {
                    let number = tokio::select! {
                        biased;
                        ended = &mut ended => break ended,
                        number = seat.signals.next() => number,
                    };
                    left = Some(Left::Signalled(number));
                    if let Some((pid, signal)) = pid.zip(rustix::process::Signal::from_named_raw(number)) {
                        let _ = kill_process(pid, signal);
                    }
                }
            }
            Err(error) => Err(error),
        };
        if left.is_some() {
            return Ok(left);
        }
        seat.screen.take_back()?;
        seat.input = Some(Input::open());
        self.pace.now();
        self.panel.update(Message::Now((self.setup.clock)()));
        self.panel.update(Message::Say(match ended {
            Ok(output) => doer::last_words(&output.stderr),
            Err(error) => format!("it could not be started: {error}"),
        }));
        Ok(None)
    }
}

/// Whether the terminal is gone: it was hung up.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;

    use homing_client::fake::{Fake, Reply};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

    use super::*;

    #[tokio::test]
    #[ignore = "is what the test below runs on a terminal of its own"]
    async fn has_a_feeder_that_panics() {
        let home = tempfile::tempdir().unwrap();
        let _fake = Fake::serve(home.path(), |_| Reply::silence());
        let setup = Setup {
            client: Client::new(home.path(), "u"),
            options: Options::default(),
            filter: String::new(),
            clock: Box::new(Timestamp::default),
            describe: |_, _| Vec::new(),
            commands: Box::new(|_| None),
        };
        let broken = async |_: Client, out: Out| {
            // Once something was drawn: what was shown would stand still from then on.
            let _ = out.say("these were shown".to_owned()).await;
            while !std::path::Path::new("shown").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            panic!("these words");
        };
        let ended = fed_by(setup, broken).await;
        eprintln!("ended: {}", ended.unwrap_err());
    }

    #[test]
    fn a_feeder_that_panics_ends_the_panel_which_says_so_on_a_terminal_that_is_as_it_was() {
        let seat = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&seat).and_then(|()| unlockpt(&seat)).unwrap();
        let name = ptsname(&seat, Vec::new()).unwrap().into_string().unwrap();
        let terminal = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&seat, Winsize { ws_col: 80, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let modes = || {
            let modes = tcgetattr(&terminal).unwrap();
            (modes.local_modes, modes.input_modes, modes.output_modes)
        };
        let before = modes();
        let given = || Stdio::from(terminal.try_clone().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "live::run::tests::has_a_feeder_that_panics", "--ignored", "--nocapture"])
            .current_dir(folder.path())
            .stdin(given())
            .stdout(given())
            .stderr(given())
            .spawn()
            .unwrap();
        let (mut seat, mut seen) = (File::from(seat), Vec::new());
        while !String::from_utf8_lossy(&seen).contains("test result") {
            let mut piece = [0; 4096];
            let count = seat.read(&mut piece).unwrap();
            seen.extend_from_slice(&piece[..count]);
            if String::from_utf8_lossy(&seen).contains("these were shown") {
                std::fs::write(folder.path().join("shown"), "").unwrap();
            }
        }
        let _ = child.wait();
        assert_eq!(modes(), before);
        let seen = String::from_utf8_lossy(&seen).into_owned();
        let (_, ours) = seen.split_once("\x1b[?1049h").unwrap();
        let (drawn, after) = ours.split_once("\x1b[?1049l").unwrap();
        assert!(drawn.contains("these were shown"), "{seen:?}");
        assert!(after.contains("these words"), "what the panic said stays: {seen:?}");
        assert!(after.contains("ended: the reader of events of the panel failed"), "{seen:?}");
        assert!(!after.contains("\x1b[?1049"), "nothing is drawn afterwards: {seen:?}");
    }
}
