//! An agent-like program with the panel under its prompt: what is typed runs in the background, and the panel shows how it goes.
//!
//! `cargo run -p homing-tui --example agent`. Type a shell line and Enter; Tab goes to the panel and back, Ctrl-C leaves and ends what runs. There is no daemon behind it: the tasks
//! are this program's own, and end with it. The panel does not know the difference, since it takes plain data.

#![expect(clippy::disallowed_methods, reason = "an example is a program: it looks at the clock itself")]

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use homing_model::{Status, Timestamp};
use homing_tui::{Abilities, Effect, Link, Message, Options, Panel, Piece, Row, Stream, View};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::Paragraph;

/// A line that a task printed, or its end.
enum Heard {
    Line { task: usize, stream: Stream, bytes: Vec<u8> },
    Silence { task: usize },
}

struct Task {
    row: Row,
    child: Child,
    printed: Vec<Piece>,
    /// Streams that are still open.
    open: usize,
}

fn main() -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let mut agent = Agent::new();
    let result = agent.run(&mut terminal);
    ratatui::restore();
    for task in &mut agent.tasks {
        let _ = task.child.kill();
        let _ = task.child.wait();
    }
    result
}

struct Agent {
    panel: Panel,
    tasks: Vec<Task>,
    prompt: String,
    /// Whether keys go to the panel.
    below: bool,
    shown: Option<String>,
}

impl Agent {
    fn new() -> Self {
        let abilities = Abilities { stop: true, ..Abilities::default() };
        let mut panel = Panel::new(Options { abilities, ..Options::default() });
        panel.update(Message::Link(Link::Live));
        Self { panel, tasks: Vec::new(), prompt: String::new(), below: false, shown: None }
    }

    fn run(&mut self, terminal: &mut DefaultTerminal) -> io::Result<()> {
        let (sender, heard) = mpsc::channel();
        loop {
            self.panel.update(Message::Now(now()));
            terminal.draw(|frame| {
                let [above, below] =
                    Layout::vertical([Constraint::Length(3), Constraint::Fill(1)]).areas(frame.area());
                let mark = if self.below { " " } else { "▏" };
                let text =
                    format!("What shall I run? (Tab: the panel, Ctrl-C: leave)\n> {}{mark}", self.prompt);
                frame.render_widget(Paragraph::new(text), above);
                frame.render_stateful_widget(View, below, &mut self.panel);
            })?;
            self.show_chosen();
            if event::poll(Duration::from_millis(50))? && self.take(&event::read()?, &sender)? {
                return Ok(());
            }
            while let Ok(one) = heard.try_recv() {
                self.hear(one)?;
            }
        }
    }

    /// Whether it is time to leave.
    fn take(&mut self, event: &Event, sender: &Sender<Heard>) -> io::Result<bool> {
        match event {
            Event::Key(key)
                if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') =>
            {
                return Ok(true);
            }
            Event::Key(key) if key.code == KeyCode::Tab => self.below = !self.below,
            Event::Key(key) if self.below => {
                for effect in self.panel.update(Message::Key(*key)) {
                    if let Effect::Stop(id) = effect
                        && let Some(task) = self.tasks.iter_mut().find(|task| task.row.id == id)
                    {
                        task.child.kill()?;
                    }
                }
            }
            Event::Key(key) => match key.code {
                KeyCode::Char(c) => self.prompt.push(c),
                KeyCode::Backspace => drop(self.prompt.pop()),
                KeyCode::Enter if !self.prompt.trim().is_empty() => {
                    let line = std::mem::take(&mut self.prompt);
                    self.start(&line, sender)?;
                }
                _ => {}
            },
            Event::Mouse(mouse) => drop(self.panel.update(Message::Mouse(*mouse))),
            _ => {}
        }
        Ok(false)
    }

    fn start(&mut self, line: &str, sender: &Sender<Heard>) -> io::Result<()> {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let number = self.tasks.len();
        let mut row = Row::new(&format!("t-{number}"), line, Status::Running, now());
        row.started_at = Some(now());
        if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
            listen(number, Stream::Stdout, out, sender.clone());
            listen(number, Stream::Stderr, err, sender.clone());
        }
        self.panel.update(Message::Row(Box::new(row.clone())));
        self.tasks.push(Task { row, child, printed: Vec::new(), open: 2 });
        Ok(())
    }

    fn hear(&mut self, heard: Heard) -> io::Result<()> {
        match heard {
            Heard::Line { task, stream, bytes } => {
                let task = &mut self.tasks[task];
                task.row.last_line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
                let piece = Piece { gap: 0, stream, bytes };
                let id = task.row.id.clone();
                self.panel.update(Message::LastLine { task: id.clone(), line: task.row.last_line.clone() });
                self.panel.update(Message::Output { task: id, pieces: vec![piece.clone()] });
                task.printed.push(piece);
            }
            Heard::Silence { task } => {
                let task = &mut self.tasks[task];
                task.open -= 1;
                if task.open == 0 {
                    let ended = task.child.wait()?;
                    task.row.status = if ended.success() { Status::Succeeded } else { Status::Failed };
                    task.row.sentence = ended.to_string();
                    task.row.ended_at = Some(now());
                    self.panel.update(Message::Row(Box::new(task.row.clone())));
                }
            }
        }
        Ok(())
    }

    /// Gives the panel the output of the task that has the focus.
    fn show_chosen(&mut self) {
        let wanted = self.panel.wanted().output;
        if wanted != self.shown {
            self.shown.clone_from(&wanted);
            if let Some(task) = wanted.and_then(|id| self.tasks.iter().find(|task| task.row.id == id)) {
                let id = task.row.id.clone();
                self.panel.update(Message::OutputBegins { task: id.clone() });
                self.panel.update(Message::Output { task: id, pieces: task.printed.clone() });
            }
        }
    }
}

fn listen(task: usize, stream: Stream, from: impl Read + Send + 'static, sender: Sender<Heard>) {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut bytes = Vec::new();
            match from.read_until(b'\n', &mut bytes) {
                Ok(0) | Err(_) => break,
                Ok(_) if sender.send(Heard::Line { task, stream, bytes }).is_err() => return,
                Ok(_) => {}
            }
        }
        let _ = sender.send(Heard::Silence { task });
    });
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
