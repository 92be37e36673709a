//! Wakes of Claude Code, with a transcript, a `sessions` file and a socket that no agent serves.

use std::io::{self, Write as _};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::Duration;

use homing_model::{Notice, NoticeId, Session, turn, wake};
use homing_sys::process;
use serde_json::json;

use super::process::{Entry, readiness};
use super::resume::{UNHEALABLE, follow, resume};
use super::socket::{Arrival, KEEPS, arrives, send};
use super::transcript;
use super::{Claude, version};
use crate::agent::Agent as _;
use crate::registry;
use crate::wake::{Readiness, Surroundings, Verdict, WakeRequest, program, socket};

/// What a request refers to.
struct Order {
    notices: Vec<Notice>,
    tried: Vec<NoticeId>,
    runs: bool,
}

impl Order {
    fn request(&self) -> WakeRequest<'_> {
        WakeRequest { notices: &self.notices, tried: &self.tried, runs: self.runs }
    }
}

fn order() -> Order {
    let notice = json!({
        "id": "n-2222222222", "seq": 1, "at": "2026-01-01T00:00:00.000Z", "type": "task.quiet", "quiet_ms": 5, "waiting_for_input": false,
        "task": {"id": "t-2222222222", "name": null, "owner": "claude:s1", "command": "make", "cwd": null, "labels": {}},
    });
    Order { notices: vec![serde_json::from_value(notice).unwrap()], tried: Vec::new(), runs: false }
}

/// A folder with a transcript and a socket that nobody reads.
fn silent() -> (tempfile::TempDir, UnixListener, Entry, Session) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("projects/-w")).unwrap();
    std::fs::create_dir_all(folder.path().join("sessions")).unwrap();
    std::fs::write(folder.path().join("projects/-w/s1.jsonl"), "").unwrap();
    let socket = folder.path().join("s1.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let entry = Entry {
        pid: std::process::id(),
        session_id: "s1".into(),
        proc_start: process::stat(std::process::id()).map(|me| me.start.to_string()),
        pid_domain: None,
        status: Some("idle".into()),
        messaging_socket_path: Some(socket),
    };
    let session = registry::session(&Claude, "s1").unwrap();
    let written = json!({ "pid": entry.pid, "sessionId": "s1", "procStart": entry.proc_start, "status": "idle", "messagingSocketPath": "s" });
    std::fs::write(folder.path().join("sessions/1.json"), written.to_string()).unwrap();
    (folder, listener, entry, session)
}

#[test]
fn a_turn_that_no_other_attempt_heals_is_given_up() {
    let verdict = |error: &str| {
        let said = json!({ "type": "assistant", "error": error, "message": { "model": "<synthetic>" } });
        let result = json!({ "type": "result", "is_error": true, "result": "why", "session_id": "s1" });
        let printed = format!("{said}\n{result}\n");
        let mut running = program::start(Command::new("cat"), printed.as_bytes()).unwrap();
        follow(&mut running, "s1").unwrap()
    };
    for error in UNHEALABLE {
        assert!(matches!(verdict(error), Verdict::GivenUp(_)), "{error}");
    }
    for error in ["rate_limit", "overloaded", "server_error", "unknown"] {
        assert!(matches!(verdict(error), Verdict::Failed(_)), "{error}");
    }
}

#[test]
fn a_message_that_is_taken_and_not_in_the_transcript_was_not_delivered() {
    let (folder, _listener, entry, session) = silent();
    let verdict = send(&entry, folder.path(), &session, order().request(), Duration::from_millis(20));
    assert!(matches!(&verdict, Verdict::Failed(why) if why.contains("crossSessionInbound")), "{verdict:?}");
}

#[test]
fn what_came_into_the_transcript_after_the_attempt_that_told_it_is_not_told_again() {
    let (folder, listener, entry, session) = silent();
    listener.set_nonblocking(true).unwrap();
    let send =
        |order: &Order| send(&entry, folder.path(), &session, order.request(), Duration::from_millis(20));
    let mut order = order();
    order.tried = vec![order.notices[0].id.clone()];
    assert!(matches!(send(&order), Verdict::Failed(_)), "it is not there yet");
    let heard = || {
        let mut heard = String::new();
        let (mut stream, _) = listener.accept().ok()?;
        io::Read::read_to_string(&mut stream, &mut heard).unwrap();
        Some(heard)
    };
    let late = heard().unwrap();
    std::fs::write(folder.path().join("projects/-w/s1.jsonl"), late).unwrap();
    assert!(matches!(send(&order), Verdict::Delivered(_)));
    assert_eq!(heard(), None, "nothing is said");
    let mut other = order.notices[0].clone();
    other.id = "n-3333333333".parse().unwrap();
    order.notices.push(other);
    assert!(matches!(send(&order), Verdict::Failed(_)));
    let heard_now = heard().unwrap();
    assert!(heard_now.contains("n-3333333333") && !heard_now.contains("n-2222222222"), "{heard_now}");
    // Nor does a session that was left get another turn for it, if it had one: it went on since.
    let path = folder.path().join("projects/-w/s1.jsonl");
    let late = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{late}{{\"type\":\"assistant\",\"message\":{{\"model\":\"claude\"}}}}\n"))
        .unwrap();
    let first = Order { notices: vec![order.notices[0].clone()], tried: order.tried.clone(), runs: true };
    let nobody = Surroundings::default();
    assert!(matches!(resume(folder.path(), &session, first.request(), &nobody), Verdict::Delivered(_)));
    assert!(
        matches!(resume(folder.path(), &session, order.request(), &nobody), Verdict::Failed(_)),
        "there is no program"
    );
    // What somebody asks for again is told again.
    (order.notices, order.tried) = (vec![order.notices[0].clone()], Vec::new());
    let _ = send(&order);
    assert!(heard().is_some_and(|heard| heard.contains("n-2222222222")));
}

#[test]
fn a_session_that_is_at_work_is_waited_for_and_one_that_is_left_has_not_failed() {
    let (folder, _listener, ..) = silent();
    let path = folder.path().join("projects/-w/s1.jsonl");
    let add = |line: &str| {
        let mut file = std::fs::File::options().append(true).open(&path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    };
    // How it is at each look; at "says" the message comes into the transcript.
    let arrival = |course: &[&str]| {
        std::fs::write(&path, "").unwrap();
        let mut transcript = transcript::find(folder.path(), "s1").unwrap();
        let mut course = course.iter();
        let arrival = arrives(&mut transcript, "n-2222222222", Duration::ZERO, KEEPS, || {
            let status = match *course.next()? {
                "says" => {
                    add("{\"type\":\"user\",\"content\":\"n-2222222222\"}\n");
                    "busy"
                }
                // It takes it up, and is gone.
                "says, and leaves" => {
                    add("{\"type\":\"user\",\"content\":\"n-2222222222\"}\n");
                    return None;
                }
                // It waits for its turn, and goes with the process.
                "queues" => {
                    add("{\"type\":\"queue-operation\",\"content\":\"n-2222222222\"}\n");
                    "busy"
                }
                status => status,
            };
            Some(Entry { status: Some(status.to_owned()), ..silent().2 })
        });
        assert_eq!(course.next(), None, "it was waited for as long as it takes");
        arrival.unwrap()
    };
    assert_eq!(arrival(&["busy", "waiting", "says"]), Arrival::Taken);
    assert_eq!(arrival(&["busy", "idle", "says"]), Arrival::Taken, "it has time only just now");
    assert_eq!(arrival(&["busy", "idle", "idle"]), Arrival::HeldBack);
    assert_eq!(arrival(&["idle"]), Arrival::HeldBack);
    assert_eq!(arrival(&["busy"]), Arrival::Left);
    assert_eq!(arrival(&["busy", "says, and leaves"]), Arrival::Taken, "what it did last counts");
    assert_eq!(arrival(&["queues", "busy", "says"]), Arrival::Taken);
    assert_eq!(arrival(&["queues", "busy"]), Arrival::Left, "what only waited went with the process");
}

#[test]
fn a_message_that_is_kept_is_waited_for_as_long_as_anybody_is_woken() {
    // Whoever gives up before lets the hooks tell what Claude Code is about to tell.
    assert!(KEEPS.as_millis() >= u128::from(wake::LONGEST_MS.unsigned_abs()));
    let (folder, _listener, entry, _) = silent();
    let mut transcript = transcript::find(folder.path(), "s1").unwrap();
    let at_work = || Some(Entry { status: Some("busy".into()), ..silent().2 });
    let mut arrival = |now: &mut dyn FnMut() -> Option<Entry>| {
        arrives(&mut transcript, "n-2", Duration::ZERO, Duration::ZERO, now).unwrap()
    };
    assert_eq!(arrival(&mut { at_work }), Arrival::Kept);
    // Another process by the same number has not got it.
    let other = Entry { proc_start: Some("1".into()), ..silent().2 };
    assert!(!other.is_of_same_process(&entry) && entry.is_of_same_process(&silent().2));
}

#[test]
fn one_more_turn_that_failed_was_none_though_it_left_our_words_in_the_transcript() {
    let (folder, listener, entry, session) = silent();
    listener.set_nonblocking(true).unwrap();
    let path = folder.path().join("projects/-w/s1.jsonl");
    let mut order = order();
    order.tried = vec![order.notices[0].id.clone()];
    let text = turn::compose(&order.notices, 0).text;
    let ours = json!({ "type": "user", "sessionId": "s1", "message": { "content": text } });
    let error = json!({ "type": "assistant", "sessionId": "s1", "isApiErrorMessage": true, "message": { "model": "<synthetic>" } });
    let nobody = Surroundings::default();
    let last = json!({ "type": "last-prompt", "sessionId": "s1", "lastPrompt": text });
    for left in [format!("{ours}\n"), format!("{ours}\n{error}\n{last}\n")] {
        std::fs::write(&path, left).unwrap();
        let verdict = resume(folder.path(), &session, order.request(), &nobody);
        assert!(
            matches!(&verdict, Verdict::Failed(why) if why.contains("not where")),
            "it is to be run: {verdict:?}"
        );
    }
    // Whoever opens the session after that is told as well.
    let _ = send(&entry, folder.path(), &session, order.request(), Duration::from_millis(20));
    assert!(listener.accept().is_ok());
    let answer = json!({ "type": "assistant", "sessionId": "s1", "message": { "model": "claude" } });
    std::fs::write(&path, format!("{ours}\n{error}\n{ours}\n{answer}\n")).unwrap();
    assert!(matches!(resume(folder.path(), &session, order.request(), &nobody), Verdict::Delivered(_)));
}

#[test]
fn a_process_that_serves_its_socket_no_more_is_not_waited_for_and_costs_no_attempt() {
    let (folder, _listener, entry, session) = silent();
    let path = folder.path().join("hangs.sock");
    let (_hangs, waiting) = socket::clogged(&path);
    assert!(!waiting.is_empty());
    let entry = Entry { messaging_socket_path: Some(path), ..entry };
    let verdict = send(&entry, folder.path(), &session, order().request(), Duration::from_millis(20));
    assert!(matches!(&verdict, Verdict::NotNow(why) if why.contains("no more")), "{verdict:?}");
}

#[test]
fn a_process_that_went_to_another_conversation_at_the_last_moment_is_not_spoken_to() {
    let (folder, listener, entry, session) = silent();
    // Its file says so by now; the entry is what it said a moment ago.
    for (id, status) in [("s2", "idle"), ("s1", "busy")] {
        let now =
            json!({ "pid": entry.pid, "sessionId": id, "procStart": entry.proc_start, "status": status });
        std::fs::write(folder.path().join("sessions/1.json"), now.to_string()).unwrap();
        let verdict = send(&entry, folder.path(), &session, order().request(), Duration::from_millis(20));
        assert!(matches!(&verdict, Verdict::NotNow(why) if why.contains("just then")), "{verdict:?}");
        let mut heard = String::new();
        let (mut stream, _) = listener.accept().unwrap();
        io::Read::read_to_string(&mut stream, &mut heard).unwrap();
        assert_eq!(heard, "");
    }
}

#[test]
fn a_socket_that_another_process_serves_is_not_spoken_to() {
    let (folder, listener, entry, session) = silent();
    let entry = Entry { pid: 1, ..entry };
    let verdict = send(&entry, folder.path(), &session, order().request(), Duration::from_millis(20));
    assert!(matches!(&verdict, Verdict::Failed(why) if why.contains("another process")), "{verdict:?}");
    let mut heard = String::new();
    let (mut stream, _) = listener.accept().unwrap();
    io::Read::read_to_string(&mut stream, &mut heard).unwrap();
    assert_eq!(heard, "");
}

#[test]
fn who_lives_is_found_by_more_than_a_number() {
    let (folder, _listener, entry, session) = silent();
    let surroundings = Surroundings::default();
    let session = Session { folder: Some(folder.path().display().to_string()), ..session };
    let write = |start: &str, domain: Option<&str>, status: &str| {
        let text = json!({
            "pid": entry.pid, "sessionId": "s1", "procStart": start, "pidDomain": domain, "status": status, "messagingSocketPath": "s",
        });
        std::fs::write(folder.path().join("sessions/1.json"), text.to_string()).unwrap();
        readiness(&session, false, &surroundings)
    };
    let start = entry.proc_start.clone().unwrap();
    assert_eq!(write(&start, None, "idle"), Readiness::Ready);
    assert!(matches!(write(&start, None, "busy"), Readiness::Busy(_)));
    assert!(matches!(write(&start, None, "waiting"), Readiness::Busy(_)), "whatever it is, it is not idle");
    assert!(matches!(write("1", None, "idle"), Readiness::Closed(_)), "its number is another's by now");
    assert!(
        matches!(write(&start, Some("linux:x:pid:[1]"), "idle"), Readiness::Closed(_)),
        "its numbers are others"
    );
    for (setting, taken) in [("hold", false), ("refuse", false), ("accept", true)] {
        let settings = json!({ "crossSessionInbound": setting }).to_string();
        std::fs::write(folder.path().join("settings.json"), settings).unwrap();
        let readiness = write(&start, None, "idle");
        assert_eq!(readiness == Readiness::Ready, taken, "{setting}: {readiness:?}");
    }
    // One that listens nowhere is not tried again and again, whatever it says of its time.
    let deaf = json!({ "pid": entry.pid, "sessionId": "s1", "procStart": start });
    std::fs::write(folder.path().join("sessions/1.json"), deaf.to_string()).unwrap();
    let found = readiness(&session, false, &surroundings);
    assert!(matches!(&found, Readiness::Closed(why) if why.contains("takes no messages")), "{found:?}");
    // What another puts there is passed over, and nobody waits for it.
    let strange = |name: &str| folder.path().join("sessions").join(name);
    let pipe = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, strange("0.json"), pipe, rustix::fs::Mode::RUSR, 0).unwrap();
    std::os::unix::fs::symlink("/dev/zero", strange("2.json")).unwrap();
    std::fs::create_dir(strange("3.json")).unwrap();
    assert_eq!(write(&start, None, "idle"), Readiness::Ready);
    std::fs::write(folder.path().join("sessions/1.json"), "{").unwrap();
    assert!(matches!(readiness(&session, false, &surroundings), Readiness::Closed(_)));
    assert_eq!(readiness(&session, true, &surroundings), Readiness::Ready, "it may be run");
}

#[test]
fn a_session_is_known_by_its_transcript() {
    let user = tempfile::tempdir().unwrap();
    let surroundings = Surroundings { user: Some(user.path().to_owned()), ..Surroundings::default() };
    let known = |id: &str| Claude.has_traces(&registry::session(&Claude, id).unwrap(), &surroundings);
    assert_eq!(known("a"), Some(false));
    let project = user.path().join(".claude/projects/-x-y");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join("a.jsonl"), "").unwrap();
    assert_eq!((known("a"), known("aa")), (Some(true), Some(false)));
}

#[test]
fn versions_are_read_and_what_is_none_is_not() {
    assert_eq!(version("claude-code_2-1-325_agent").as_deref(), Some("2.1.325"));
    for text in ["claude-code", "claude-code__agent", "claude-code_x_agent", "other_1-2_agent"] {
        assert_eq!(version(text), None, "{text}");
    }
}
