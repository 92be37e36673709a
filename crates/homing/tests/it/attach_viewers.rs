//! Viewers of a task's terminal by the client library: what each is given, byte by byte, and what is left behind.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use bytes::Bytes;
use homing_api::attach::{AttachEvent, AttachInput, AttachRequest, AttachScreen};
use homing_client::{Client, Keys, Screen, Seen};
use homing_model::{Task, TerminalSize};
use homing_testkit::{Home, wait_for};
use tokio::time::timeout;

use super::home;

/// No step of a test takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A viewer with a terminal of its own.
struct Viewer {
    screen: Screen,
    keys: Keys,
    terminal: vt100::Parser,
    /// Every byte that it was given.
    bytes: Vec<u8>,
    /// Every whole screen that it was told of.
    screens: Vec<AttachScreen>,
    input: AttachInput,
    ended: Option<Task>,
}

const SMALL: TerminalSize = TerminalSize { cols: 80, rows: 24 };
const LARGE: TerminalSize = TerminalSize { cols: 120, rows: 40 };

impl Viewer {
    async fn new(home: &Home, id: &str, size: Option<TerminalSize>) -> Self {
        let (screen, keys) = Client::new(home.path(), "user").attach(id, size).await.unwrap();
        let TerminalSize { cols, rows } = size.unwrap_or(SMALL);
        let number = |number| std::num::NonZeroU16::new(number).unwrap();
        let terminal = vt100::Parser::new(number(rows), number(cols), 0);
        let (bytes, screens) = (Vec::new(), Vec::new());
        Self { screen, keys, terminal, bytes, screens, input: AttachInput::default(), ended: None }
    }

    /// Takes what comes next; false at the end.
    async fn step(&mut self) -> bool {
        match timeout(PATIENCE, self.screen.next()).await.expect("something to see").unwrap() {
            Some(Seen::Bytes(bytes)) => {
                self.terminal.process(&bytes);
                self.bytes.extend_from_slice(&bytes);
            }
            Some(Seen::Event(AttachEvent::Screen(screen))) => self.screens.push(screen),
            Some(Seen::Event(AttachEvent::Input(input))) => self.input = input,
            Some(Seen::Event(AttachEvent::Ended(task))) => self.ended = Some(*task),
            Some(Seen::Event(AttachEvent::Problem(problem))) => panic!("{problem}"),
            None => return false,
        }
        true
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let steps = async {
            while !is_so(self) {
                assert!(self.step().await, "the end came before {what}");
            }
        };
        timeout(PATIENCE, steps).await.unwrap_or_else(|_| panic!("there was no {what}"));
    }

    async fn shows(&mut self, part: &str) {
        self.until(part, |viewer| viewer.terminal.screen().contents().contains(part)).await;
    }

    async fn types(&mut self, text: &str) {
        self.keys.send(Bytes::copy_from_slice(text.as_bytes())).await.unwrap();
    }

    fn rows(&self) -> Vec<String> {
        let (_, cols) = self.terminal.screen().size();
        self.terminal.screen().rows(0, cols.get()).map(|row| row.trim_end().to_owned()).collect()
    }
}

/// A shell without an echo that carries out what is typed.
fn shell(home: &Home) -> String {
    let id = home
        .submit(&["--pty"], "stty -echo; echo ready; while read -r line; do eval \"$line\"; done; exit 3");
    // To the end of its line, which may come by itself.
    wait_for("the shell", || (home.output(&id) == b"ready\r\n").then_some(()));
    id
}

#[tokio::test]
async fn p7_after_the_screen_come_the_very_bytes_that_are_kept() {
    let home = home();
    let id = shell(&home);
    let mut viewer = Viewer::new(&home, &id, None).await;
    viewer.shows("ready").await;
    let (screen, before) = (viewer.bytes.len(), home.output(&id).len());
    viewer.types("seq 1 9000; printf '\\033[31m\\303\\244\\000\\377'; echo done\n").await;
    viewer.until("done", |viewer| viewer.bytes.ends_with(b"done\r\n")).await;
    assert_eq!(viewer.screens.len(), 1);
    assert!(viewer.bytes[screen..] == home.output(&id)[before..]);
    viewer.types("exit 5\n").await;
    viewer.until("the end", |viewer| viewer.ended.is_some()).await;
    assert_eq!(viewer.ended.as_ref().unwrap().outcome.as_ref().unwrap().exit_code, Some(5));
    assert!(!viewer.step().await, "the end is the last word");
}

#[tokio::test]
async fn the_smallest_viewer_decides_the_size_for_as_long_as_it_is_there() {
    let home = home();
    let id = shell(&home);
    let mut large = Viewer::new(&home, &id, Some(LARGE)).await;
    large.until("its size", |viewer| viewer.screens.last().is_some_and(|screen| screen.exact)).await;
    large.types("stty size\n").await;
    large.shows("40 120").await;
    let wide = TerminalSize { cols: 200, rows: 10 };
    let mut second = Viewer::new(&home, &id, Some(wide)).await;
    second.until("a screen", |viewer| viewer.screens.last().is_some_and(|screen| screen.rows == 10)).await;
    second.types("stty size\n").await;
    // Columns of one, rows of the other; both are painted.
    for viewer in [&mut large, &mut second] {
        viewer.shows("10 120").await;
        assert!(!viewer.screens.last().unwrap().exact);
    }
    second.keys.ask(AttachRequest::Resize(SMALL)).await.unwrap();
    large.until("its size", |viewer| viewer.screens.last().is_some_and(|screen| screen.cols == 80)).await;
    drop(second);
    large
        .until("all of its size again", |viewer| viewer.screens.last().is_some_and(|screen| screen.exact))
        .await;
    large.types("stty size; echo over\n").await;
    large.shows("over").await;
    assert!(large.rows().contains(&"40 120".to_owned()), "{:?}", large.rows());
    // Nobody looks: the size stays what it was.
    drop(large);
    home.does(["input", &id, "stty size > size", "--enter"]);
    wait_for("the size", || (home.truth("size") == "40 120\n").then_some(()));
}

#[tokio::test]
async fn a_size_can_be_given_without_looking() {
    let home = home();
    let id = shell(&home);
    let client = Client::new(home.path(), "user");
    let size = TerminalSize { cols: 33, rows: 11 };
    assert_eq!(client.resize(&id, size).await.unwrap(), size);
    home.does(["input", &id, "stty size > size", "--enter"]);
    wait_for("the size", || (home.truth("size") == "11 33\n").then_some(()));
    for wrong in [TerminalSize { cols: 0, rows: 5 }, TerminalSize { cols: 5, rows: 501 }] {
        assert_eq!(client.resize(&id, wrong).await.unwrap_err().into_problem().code, "HM0003");
    }
    let piped = home.submit(&[], "sleep 300");
    assert_eq!(client.resize(&piped, size).await.unwrap_err().into_problem().code, "HM0290");
}

#[tokio::test]
async fn hostile_output_shows_the_same_to_all_and_harms_nobody() {
    let home = home();
    let id = home.submit(
        &["--pty"],
        "stty raw -echo; head -c 300000 /dev/urandom; printf '\\033[99999999999;1H\\033[65535@\\033[65535L\\033P\\033]52;c;x'; \
         printf '\\033[?1049h\\033[1;1H\\033[?6h\\033[5;2r\\033#8\\033c'; printf '\\033\\\\\\033[mstill \\033(0lqk\\033(B here'; sleep 300",
    );
    wait_for("the output", || home.output(&id).ends_with(b"here").then_some(()));
    let mut exact = Viewer::new(&home, &id, Some(SMALL)).await;
    exact.shows("still ┌─┐ here").await;
    let mut painted = Viewer::new(&home, &id, Some(LARGE)).await;
    painted.shows("still ┌─┐ here").await;
    let (mut rows, expected) = (painted.rows(), exact.rows());
    rows.truncate(expected.len());
    assert_eq!(rows, expected);
    assert_eq!(home.cli(["status"]).code, 0);
}

#[tokio::test]
async fn who_reads_slowly_holds_up_nobody_and_finds_the_screen_as_it_is_then() {
    let home = home();
    let id = shell(&home);
    let mut slow = Viewer::new(&home, &id, Some(SMALL)).await;
    slow.shows("ready").await;
    let mut quick = Viewer::new(&home, &id, Some(SMALL)).await;
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", home.daemon_pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let before = resident();
    quick
        .types("yes 'a line of what is printed without end' | head -c 30000000; echo; echo finished\n")
        .await;
    quick.shows("finished").await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 30_000, "{grown} kB more");
    slow.shows("finished").await;
    assert_eq!(slow.rows(), quick.rows());
    assert!(slow.bytes.len() < 8_000_000, "{} bytes", slow.bytes.len());
}

#[tokio::test]
async fn where_the_history_is_gone_the_program_draws_anew() {
    let home = home();
    let line = "trap 'printf \"\\033[H\\033[2Jdrawn anew\"' WINCH; seq 1 60000; echo printed; while :; do sleep 0.05; done";
    let id = home.submit(&["--pty", "--max-output", "64KiB"], line);
    wait_for("the output", || home.output(&id).ends_with(b"printed\r\n").then_some(()));
    // Its size is the task's already: nothing but what is missing makes it draw.
    let mut viewer = Viewer::new(&home, &id, Some(SMALL)).await;
    viewer.shows("drawn anew").await;
    assert!(viewer.screens[0].partial);
}

#[tokio::test]
async fn p3_a_program_that_does_not_read_blocks_nobody_and_what_it_did_not_take_is_said() {
    let home = home();
    let id = home.submit(&["--pty"], "stty raw -echo; echo ready; sleep 300");
    let mut viewer = Viewer::new(&home, &id, Some(SMALL)).await;
    viewer.shows("ready").await;
    let sent = 100_000;
    viewer.types(&"x".repeat(sent)).await;
    // Meanwhile others are served.
    let other = home.submit(&[], "echo other");
    assert_eq!(home.ended(&other)["status"], "succeeded");
    let mut second = Viewer::new(&home, &id, Some(SMALL)).await;
    second.shows("ready").await;
    let accounted = |viewer: &Viewer| viewer.input.taken + viewer.input.dropped == sent as u64;
    viewer.until("word of every byte", accounted).await;
    assert!(viewer.input.dropped > 0, "{:?}", viewer.input);
}

#[tokio::test]
async fn fifty_who_come_and_go_leave_nothing_behind() {
    let home = home();
    let id = shell(&home);
    let daemon = home.daemon_pid();
    let count = |what: &str| std::fs::read_dir(format!("/proc/{daemon}/{what}")).unwrap().count();
    drop(Viewer::new(&home, &id, Some(SMALL)).await);
    let held = || count("fd");
    let before = held();
    for number in 0..50 {
        let mut viewer = Viewer::new(&home, &id, Some(if number % 2 == 0 { SMALL } else { LARGE })).await;
        viewer.until("a screen", |viewer| !viewer.bytes.is_empty()).await;
        if number % 3 == 0 {
            viewer.keys.close().await;
        }
    }
    wait_for("what it held before", || (held() <= before).then_some(()));
    let mut last = Viewer::new(&home, &id, Some(SMALL)).await;
    last.types("echo still here\n").await;
    last.shows("still here").await;
}

#[tokio::test]
async fn a_task_that_prints_without_end_is_seen_and_takes_keys() {
    let home = home();
    // More than a model is fed in the same time, and more of it than is fed at first.
    let id = home.submit(&["--pty", "--max-output", "64MiB"], "stty -opost; exec yes \"$(seq 1000 1400)\"");
    let printed = home.path().join("tasks").join(&id).join("output.log");
    wait_for("much to replay", || {
        (std::fs::metadata(&printed).is_ok_and(|file| file.len() > 24 << 20)).then_some(())
    });
    let mut viewer = Viewer::new(&home, &id, Some(SMALL)).await;
    viewer.shows("1399").await;
    // What arrow keys are to this program is found out by a look of its own.
    home.does(["input", &id, "--keys", "up"]);
    // It goes on, and whoever comes later sees it too.
    let before = viewer.bytes.len();
    viewer.until("more", |viewer| viewer.bytes.len() > before).await;
    drop(viewer);
    let mut late = Viewer::new(&home, &id, None).await;
    late.shows("1399").await;
    home.does(["stop", &id]);
}

#[tokio::test]
async fn too_many_viewers_are_refused_and_those_before_stay() {
    let home = home();
    let id = shell(&home);
    let client = Client::new(home.path(), "user");
    let mut all = Vec::new();
    let refused = loop {
        match client.attach(&id, None).await {
            Ok(viewer) => all.push(viewer),
            Err(error) => break error,
        }
        assert!(all.len() <= 64);
    };
    assert_eq!((all.len(), refused.into_problem().code.as_str()), (64, "HM0291"));
    drop(all);
    timeout(PATIENCE, async { while client.attach(&id, None).await.is_err() {} }).await.expect("room again");
}

#[tokio::test]
async fn p11_a_viewer_on_the_listener_needs_the_token_and_is_cut_with_it() {
    let home = home();
    std::fs::create_dir(home.path()).unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(home.path().join("config.toml"), "[listener]\nenabled = true\n").unwrap();
    let id = shell(&home);
    let port = wait_for("the listener", || {
        let status = home.cli(["status", "--json"]).ok().json();
        u16::try_from(status["listener"]["port"].as_u64()?).ok()
    });
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stranger = Client::over_tcp(address, "wrong", "user");
    assert_eq!(stranger.attach(&id, None).await.unwrap_err().into_problem().code, "HM0050");
    let token = home.cli(["token", "show"]).ok().text();
    let (mut screen, mut keys) = Client::over_tcp(address, &token, "user").attach(&id, None).await.unwrap();
    keys.send(Bytes::from_static(b"echo by the token\n")).await.unwrap();
    let mut seen = Vec::new();
    // In the screen, or behind it: whichever came first.
    while !String::from_utf8_lossy(&seen).contains("by the token") {
        if let Some(Seen::Bytes(bytes)) = timeout(PATIENCE, screen.next()).await.unwrap().unwrap() {
            seen.extend_from_slice(&bytes);
        }
    }
    home.does(["token", "rotate"]);
    let cut = async { while let Ok(Some(_)) = screen.next().await {} };
    timeout(PATIENCE, cut).await.expect("the connection to be cut");
}
