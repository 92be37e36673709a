//! What keys, clicks and news do.

use homing_model::Status;
use homing_tui::{Background, Effect, Link, Message, Options, Panel, Piece, Stream, Theme};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::stage::{at, busy, draw, empty, lines, press, row, rows, text, theme, types};

fn dark() -> Theme {
    theme(Background::Dark)
}

fn mouse(kind: MouseEventKind, column: u16, row: u16) -> Message {
    Message::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

#[test]
fn the_focus_goes_round_the_ends_of_the_list() {
    let mut panel = busy(dark());
    let _ = draw(&mut panel, 80, 24);
    let first = panel.chosen().unwrap().to_owned();
    press(&mut panel, KeyCode::Up);
    let last = panel.chosen().unwrap().to_owned();
    assert_eq!(last, "t-ffffffffff", "the oldest that has ended");
    press(&mut panel, KeyCode::Down);
    assert_eq!(panel.chosen(), Some(first.as_str()));
    for _ in 0..rows().len() {
        press(&mut panel, KeyCode::Char('j'));
    }
    assert_eq!(panel.chosen(), Some(first.as_str()), "once round");
}

#[test]
fn until_it_is_moved_the_focus_is_on_the_newest_then_it_stays_with_its_task() {
    let mut panel = busy(dark());
    assert_eq!(panel.chosen(), Some("t-hhhhhhhhhh"));
    panel.update(Message::Row(Box::new(row("t-jjjjjjjjjj", "new", Status::Running, 0))));
    assert_eq!(panel.chosen(), Some("t-jjjjjjjjjj"));
    press(&mut panel, KeyCode::Down);
    assert_eq!(panel.chosen(), Some("t-hhhhhhhhhh"));
    panel.update(Message::Row(Box::new(row("t-kkkkkkkkkk", "newer", Status::Running, 0))));
    assert_eq!(panel.chosen(), Some("t-hhhhhhhhhh"));
    press(&mut panel, KeyCode::Home);
    assert_eq!(panel.chosen(), Some("t-jjjjjjjjjj"), "as old as the other, and first by its id");
}

#[test]
fn when_its_task_vanishes_the_focus_goes_to_what_took_its_place() {
    let mut panel = busy(dark());
    press(&mut panel, KeyCode::Down);
    let (second, third) = ("t-dddddddddd", "t-bbbbbbbbbb");
    assert_eq!(panel.chosen(), Some(second));
    panel.update(Message::Gone(second.to_owned()));
    assert_eq!(panel.chosen(), Some(third));
    press(&mut panel, KeyCode::End);
    panel.update(Message::Gone("t-ffffffffff".to_owned()));
    assert_eq!(panel.chosen(), Some("t-gggggggggg"), "the last one then");
    panel.update(Message::Rows(Vec::new()));
    assert_eq!(panel.chosen(), None);
    assert!(press(&mut panel, KeyCode::Char('x')).is_empty(), "nothing to stop");
    panel.update(Message::Rows(rows()));
    assert!(panel.chosen().is_some());
}

#[test]
fn a_task_that_has_just_ended_stays_where_it_is_for_a_minute() {
    let mut panel = empty(dark());
    let running = |id: &str, age| row(id, id, Status::Running, age);
    panel.update(Message::Rows(vec![running("t-old", 300), running("t-mid", 200), running("t-new", 100)]));
    let mut ended = row("t-mid", "t-mid", Status::Succeeded, 200);
    ended.ended_at = Some(at(0));
    panel.update(Message::Row(Box::new(ended)));
    let order = |panel: &mut Panel| -> Vec<String> {
        let lines = lines(&draw(panel, 80, 24));
        lines.iter().filter(|line| line.starts_with("t-")).map(|line| line[..5].to_owned()).collect()
    };
    assert_eq!(order(&mut panel), ["t-new", "t-mid", "t-old"]);
    panel.update(Message::Now(at(-59)));
    assert_eq!(order(&mut panel), ["t-new", "t-mid", "t-old"]);
    panel.update(Message::Now(at(-60)));
    assert_eq!(order(&mut panel), ["t-new", "t-old", "t-mid"]);
}

#[test]
fn a_filter_holds_while_it_is_typed_and_escape_takes_it_back() {
    let mut panel = busy(dark());
    types(&mut panel, "/HTTP get");
    let shown = text(&mut panel, 80, 24);
    assert!(shown.contains("http.server") && !shown.contains("make check"), "{shown}");
    assert!(shown.contains("filter `HTTP get`: 1"), "{shown}");
    press(&mut panel, KeyCode::Enter);
    assert_eq!(panel.chosen(), Some("t-cccccccccc"));
    types(&mut panel, "/none of these");
    assert_eq!(panel.chosen(), None);
    assert!(text(&mut panel, 80, 24).contains("none of 7 match"));
    press(&mut panel, KeyCode::Esc);
    assert_eq!(panel.chosen(), Some("t-cccccccccc"), "the filter before is back");
    press(&mut panel, KeyCode::Esc);
    assert!(text(&mut panel, 80, 24).contains("make check"));
}

#[test]
fn what_is_typed_or_pasted_into_a_filter_is_no_command() {
    let mut panel = busy(dark());
    types(&mut panel, "/");
    assert!(types(&mut panel, "qxprtac?").is_empty());
    panel.update(Message::Paste("\u{1b}[2J\nq".to_owned()));
    assert!(text(&mut panel, 80, 24).contains("filter/qxprtac? q"));
    press(&mut panel, KeyCode::Esc);
    panel.update(Message::Paste("q".to_owned()));
    assert!(text(&mut panel, 80, 24).contains("make check"), "a paste elsewhere does nothing");
}

#[test]
fn tasks_can_be_chosen_by_where_they_are_in_their_lives() {
    let mut panel = busy(dark());
    let mut count = || {
        press(&mut panel, KeyCode::Char('f'));
        lines(&draw(&mut panel, 80, 60)).iter().filter(|line| line.starts_with("t-")).count()
    };
    assert_eq!([count(), count(), count(), count()], [4, 3, 2, 7], "live, ended, failed, all");
}

#[test]
fn stopping_asks_first() {
    let mut panel = busy(dark());
    press(&mut panel, KeyCode::Down);
    assert!(press(&mut panel, KeyCode::Char('x')).is_empty());
    assert!(text(&mut panel, 80, 24).contains("[y/n] Stop"));
    assert!(press(&mut panel, KeyCode::Char('j')).is_empty(), "neither yes nor no");
    assert!(press(&mut panel, KeyCode::Char('n')).is_empty());
    assert!(!text(&mut panel, 80, 24).contains("[y/n]"));
    press(&mut panel, KeyCode::Char('x'));
    assert_eq!(press(&mut panel, KeyCode::Char('y')), [Effect::Stop("t-dddddddddd".to_owned())]);
}

#[test]
fn an_ended_task_is_not_stopped_or_attached_to() {
    let mut panel = busy(dark());
    press(&mut panel, KeyCode::End);
    for key in ['x', 't', 'p'] {
        assert!(press(&mut panel, KeyCode::Char(key)).is_empty());
        assert!(text(&mut panel, 80, 24).contains("it has ended"), "{key}");
    }
    assert!(press(&mut panel, KeyCode::Char('r')).is_empty(), "a slip of the finger runs nothing");
    assert_eq!(press(&mut panel, KeyCode::Char('y')), [Effect::Rerun("t-ffffffffff".to_owned())]);
}

#[test]
fn what_a_task_waits_for_can_be_given_by_attaching() {
    let mut panel = busy(dark());
    press(&mut panel, KeyCode::Down);
    assert_eq!(press(&mut panel, KeyCode::Char('t')), [Effect::Attach("t-dddddddddd".to_owned())]);
    press(&mut panel, KeyCode::Down);
    assert!(press(&mut panel, KeyCode::Char('t')).is_empty(), "one without a terminal");
}

#[test]
fn a_paused_task_goes_on_and_a_running_one_is_paused() {
    let mut panel = empty(dark());
    panel.update(Message::Rows(vec![row("t-p", "x", Status::Paused, 5)]));
    assert_eq!(press(&mut panel, KeyCode::Char('p')), [Effect::Resume("t-p".to_owned())]);
    panel.update(Message::Rows(vec![row("t-p", "x", Status::Running, 5)]));
    assert_eq!(press(&mut panel, KeyCode::Char('p')), [Effect::Pause("t-p".to_owned())]);
}

#[test]
fn what_is_another_owners_is_acknowledged_only_after_a_question() {
    let mut panel = empty(dark());
    let mut others = row("t-other", "x", Status::Succeeded, 5);
    others.owner = "claude:1".to_owned();
    panel.update(Message::Rows(vec![others]));
    assert!(press(&mut panel, KeyCode::Char('a')).is_empty());
    let done = Effect::Acknowledge { task: "t-other".to_owned(), owner: "claude:1".to_owned() };
    assert_eq!(press(&mut panel, KeyCode::Char('y')), [done]);
    panel.update(Message::Rows(vec![row("t-mine", "x", Status::Succeeded, 5)]));
    let done = Effect::Acknowledge { task: "t-mine".to_owned(), owner: "user".to_owned() };
    assert_eq!(press(&mut panel, KeyCode::Char('a')), [done]);
}

#[test]
fn what_cannot_be_done_here_is_neither_offered_nor_done() {
    let mut panel = Panel::new(Options::default());
    panel.update(Message::Rows(rows()));
    assert!(types(&mut panel, "xprtacq").is_empty());
    assert!(panel.update(Message::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL))).is_empty());
    let shown = text(&mut panel, 200, 24);
    for word in ["stop", "pause", "rerun", "attach", "ack", "copy", "quit"] {
        assert!(!shown.lines().last().unwrap().contains(word), "{word}");
    }
    types(&mut panel, "?");
    assert!(!text(&mut panel, 200, 60).contains("run again"));
}

#[test]
fn the_id_can_be_copied_and_q_or_control_c_leave() {
    let mut panel = busy(dark());
    assert_eq!(press(&mut panel, KeyCode::Char('c')), [Effect::Copy("t-hhhhhhhhhh".to_owned())]);
    assert!(text(&mut panel, 80, 24).contains("copied t-hhhhhhhhhh"));
    assert_eq!(press(&mut panel, KeyCode::Char('q')), [Effect::Quit]);
    let control_c = Message::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    types(&mut panel, "/abc");
    assert_eq!(panel.update(control_c), [Effect::Quit], "also while something is typed");
}

#[test]
fn output_is_followed_until_it_is_scrolled_and_then_stays() {
    let mut panel = busy(dark());
    let task = "t-hhhhhhhhhh".to_owned();
    let say = |panel: &mut Panel, text: &str| {
        let pieces = vec![Piece { gap: 0, stream: Stream::Stdout, bytes: text.as_bytes().to_vec() }];
        panel.update(Message::Output { task: task.clone(), pieces });
    };
    say(&mut panel, "the newest\n");
    assert!(text(&mut panel, 80, 24).contains("the newest"));
    press(&mut panel, KeyCode::Tab);
    press(&mut panel, KeyCode::PageUp);
    say(&mut panel, "newer still\n");
    let shown = text(&mut panel, 80, 24);
    assert!(!shown.contains("newer still") && shown.contains("to line"), "{shown}");
    press(&mut panel, KeyCode::Char('F'));
    assert!(text(&mut panel, 80, 24).contains("newer still"));
    let other = vec![Piece { bytes: b"of another\n".to_vec(), ..Piece::default() }];
    panel.update(Message::Output { task: "t-other".to_owned(), pieces: other });
    assert!(!text(&mut panel, 80, 24).contains("of another"));
}

#[test]
fn what_one_task_printed_is_never_shown_as_anothers() {
    let mut panel = busy(dark());
    assert!(text(&mut panel, 80, 24).contains("Compiling"));
    press(&mut panel, KeyCode::Down);
    assert!(!text(&mut panel, 80, 24).contains("unused variable"));
    let wanted = panel.wanted();
    assert_eq!(wanted.output.as_deref(), Some("t-dddddddddd"));
    assert_eq!(wanted.detail, None);
    press(&mut panel, KeyCode::Char('d'));
    assert!(!text(&mut panel, 80, 24).contains("example.invalid"));
    assert_eq!(panel.wanted().detail.as_deref(), Some("t-dddddddddd"));
}

#[test]
fn a_search_finds_the_newest_match_and_goes_on_both_ways() {
    let mut panel = busy(dark());
    press(&mut panel, KeyCode::Enter);
    types(&mut panel, "/line 1");
    let _ = draw(&mut panel, 80, 10);
    press(&mut panel, KeyCode::Enter);
    let marked = |panel: &mut Panel| {
        let lines = lines(&draw(panel, 80, 10));
        lines.into_iter().find(|line| line.starts_with('▶')).unwrap()
    };
    assert_eq!(marked(&mut panel), "▶ line 19");
    types(&mut panel, "N");
    assert_eq!(marked(&mut panel), "▶ line 18");
    types(&mut panel, "nn");
    assert_eq!(marked(&mut panel), "▶ line 1", "round the end");
    press(&mut panel, KeyCode::Esc);
    types(&mut panel, "/not there");
    press(&mut panel, KeyCode::Enter);
    assert!(text(&mut panel, 80, 10).contains("nothing with `not there`"));
}

#[test]
fn a_small_terminal_shows_the_list_and_enter_the_output() {
    let mut panel = busy(dark());
    let shown = text(&mut panel, 20, 5);
    assert!(shown.contains("later") && !shown.contains("Compiling"), "{shown}");
    assert_eq!(panel.wanted().output, None, "what is not in sight is not asked for");
    press(&mut panel, KeyCode::Tab);
    let shown = text(&mut panel, 20, 5);
    assert!(shown.contains("bright and ground"), "{shown}");
    assert!(panel.wanted().output.is_some());
    press(&mut panel, KeyCode::Esc);
    assert!(text(&mut panel, 20, 5).contains("later"));
}

#[test]
fn a_click_chooses_and_the_wheel_moves_what_is_under_it() {
    let mut panel = busy(dark());
    let before = draw(&mut panel, 80, 24);
    let line = lines(&before).iter().position(|line| line.contains("python -m")).unwrap();
    panel.update(mouse(MouseEventKind::Down(MouseButton::Left), 10, u16::try_from(line).unwrap()));
    assert_eq!(panel.chosen(), Some("t-cccccccccc"));
    panel.update(mouse(MouseEventKind::ScrollDown, 10, u16::try_from(line).unwrap()));
    assert_ne!(panel.chosen(), Some("t-cccccccccc"));
    for _ in 0..20 {
        panel.update(mouse(MouseEventKind::ScrollDown, 10, u16::try_from(line).unwrap()));
    }
    assert_eq!(panel.chosen(), Some("t-ffffffffff"), "the wheel stops at the end");
    press(&mut panel, KeyCode::Home);
    let _ = draw(&mut panel, 80, 24);
    panel.update(mouse(MouseEventKind::ScrollUp, 10, 20));
    assert!(!text(&mut panel, 80, 24).contains("bright and"), "the output was moved up");
    panel.update(mouse(MouseEventKind::Down(MouseButton::Left), 500, 500));
}

#[test]
fn whoever_looks_is_told_when_what_is_shown_may_be_old() {
    let mut panel = busy(dark());
    panel.update(Message::Link(Link::Lost("reconnecting".to_owned())));
    assert!(text(&mut panel, 80, 24).contains("reconnecting"));
    panel.update(Message::Link(Link::Live));
    assert!(text(&mut panel, 80, 24).contains("live"));
}

#[test]
fn nothing_changes_by_itself_where_no_age_is_shown() {
    let mut panel = empty(dark());
    let _ = draw(&mut panel, 80, 24);
    assert_eq!(panel.next_change(), None);
    panel.update(Message::Rows(vec![row("t-a", "x", Status::Running, 30)]));
    let _ = draw(&mut panel, 80, 24);
    assert_eq!(panel.next_change(), Some(1_000));
    panel.update(Message::Rows(vec![row("t-a", "x", Status::Running, 90)]));
    let _ = draw(&mut panel, 80, 24);
    assert_eq!(panel.next_change(), Some(30_000), "90 s are 1m until they are 2m");
    let _ = draw(&mut panel, 40, 24);
    assert_eq!(panel.next_change(), None);
}

#[test]
fn only_what_would_be_done_is_offered() {
    let mut panel = empty(dark());
    let hints = |panel: &mut Panel| lines(&draw(panel, 200, 24)).pop().unwrap();
    assert!(!hints(&mut panel).contains("stop"), "there is nothing to stop");
    let mut task = row("t-bbbbbbbbbb", "cat", Status::Running, 5);
    task.accepts_input = true;
    panel.update(Message::Rows(vec![task.clone()]));
    let shown = hints(&mut panel);
    assert!(shown.contains("x stop") && !shown.contains("t attach"), "an open input is no terminal: {shown}");
    assert!(press(&mut panel, KeyCode::Char('t')).is_empty());
    assert!(text(&mut panel, 80, 24).contains("it has no terminal"));
    task.has_terminal = true;
    panel.update(Message::Row(Box::new(task.clone())));
    panel.update(Message::Now(at(-60)));
    assert!(hints(&mut panel).contains("t attach"));
    assert_eq!(press(&mut panel, KeyCode::Char('t')), [Effect::Attach("t-bbbbbbbbbb".to_owned())]);
    task.status = Status::Succeeded;
    panel.update(Message::Row(Box::new(task)));
    let shown = hints(&mut panel);
    assert!(!shown.contains("t attach") && !shown.contains("x stop") && shown.contains("r rerun"), "{shown}");
}

#[test]
fn a_line_that_goes_on_out_of_sight_says_so_and_can_be_brought_into_it() {
    let mut panel = empty(dark());
    panel.update(Message::Rows(vec![row("t-bbbbbbbbbb", "long", Status::Running, 5)]));
    panel.update(Message::OutputBegins { task: "t-bbbbbbbbbb".to_owned() });
    let long: String = (0..30).map(|number| format!("{number:03} ")).collect();
    let pieces = vec![Piece { bytes: format!("{long}fin\nshort\n").into_bytes(), ..Piece::default() }];
    panel.update(Message::Output { task: "t-bbbbbbbbbb".to_owned(), pieces });
    let line = |panel: &mut Panel, part: &str| {
        let shown = lines(&draw(panel, 40, 24));
        shown.into_iter().find(|line| line.contains(part)).unwrap_or_default()
    };
    assert!(line(&mut panel, "000").ends_with('›'));
    assert!(!line(&mut panel, "short").contains('›'));
    press(&mut panel, KeyCode::Right);
    let moved = line(&mut panel, "004");
    assert!(moved.contains('‹') && moved.ends_with('›'), "{moved}");
    for _ in 0..30 {
        press(&mut panel, KeyCode::Right);
    }
    let last = line(&mut panel, "fin");
    assert!(last.contains('‹') && last.trim_end().ends_with("fin"), "{last}");
}

#[test]
fn without_symbols_nothing_of_the_panel_s_own_is_beyond_ascii() {
    let mut panel = empty(Theme { symbols: false, ..dark() });
    let mut long = row("t-bbbbbbbbbb", &"a long command ".repeat(20), Status::Running, 5);
    (long.last_line, long.waiting_for_input) = ("words ".repeat(40), true);
    panel.update(Message::Rows(vec![long, row("t-cccccccccc", "x", Status::Failed, 9)]));
    panel.update(Message::OutputBegins { task: "t-bbbbbbbbbb".to_owned() });
    let pieces = vec![Piece { gap: 9, bytes: b"wide ".repeat(90), stream: Stream::Stderr }];
    panel.update(Message::Output { task: "t-bbbbbbbbbb".to_owned(), pieces });
    for (width, height) in [(20, 5), (40, 12), (80, 24), (200, 60)] {
        let shown = text(&mut panel, width, height);
        assert!(shown.is_ascii(), "{width}x{height}: {shown}");
    }
    assert!(text(&mut panel, 80, 24).contains('~'), "what was cut says so");
}
