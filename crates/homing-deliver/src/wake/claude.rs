//! Claude Code: by the inbox socket of a process that has the session open, or by one more turn where nobody has.
//!
//! A running Claude Code says in `sessions/PID.json` of its folder which session it is in, whether it is idle, and where its socket is
//! (since 2.1.224). It can change its session at any time, so the file is read anew for every wake, and the process behind the socket must be
//! the one that wrote it. The socket answers nothing: what counts is that our notice is in the session's transcript. A session that is at work, or
//! waits for its user, keeps the message until it has time: as long as the process has both it is waited for, and nothing is spent. Were it given
//! up before, its entry in the inbox would be told by the hooks at the end of the turn, and the message right after. One more turn
//! (`claude -p --resume`) is taken only where no live process has the session: two of them would write into one transcript. There our notice in the
//! transcript is no evidence, since one more turn that failed leaves it there as well; what the session said after it is.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use homing_model::{Notice, Session, turn, wake};
use homing_sys::peer::PeerProcess;
use homing_sys::{plain, process};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::program::{self, Running};
use super::told::Told;
use super::transcript::Transcript;
use super::{Order, Readiness, Surroundings, Verdict};
use super::{socket, told};

/// The folder in the user's own.
pub(super) const FOLDER: &str = ".claude";
/// An idle session has the notice in its transcript by then, or does not take it.
const EVIDENCE: Duration = Duration::from_secs(15);
/// Between two looks at how the session is: who was killed is not waited for, and what it was to be told is free again.
const LOOK: Duration = Duration::from_secs(1);
/// Settings that are larger were not written by a person.
const LARGEST_SETTINGS: u64 = 1 << 20;
/// A write that takes longer meets nobody who reads.
const WRITE: Duration = Duration::from_secs(5);
/// A message that Claude Code keeps is waited for as long as anybody is woken at all.
const KEEPS: Duration = Duration::from_millis(wake::LONGEST_MS.unsigned_abs());
/// A turn that takes longer is left to itself.
const TURN: Duration = Duration::from_secs(60 * 60);
/// A file that says more is none of these.
const LONGEST: u64 = 64 * 1024;

/// Errors of a turn that heal by no other attempt, as Claude Code names them
/// (`SDKAssistantMessageError`): the login, an account that may not use it, and a model that is not
/// there.
const UNHEALABLE: [&str; 7] = [
    "authentication_failed",
    "oauth_org_not_allowed",
    "cloud_credential_error",
    "account_on_hold",
    "verification_required",
    "billing_error",
    "model_not_found",
];

/// Why a session that is open is not spoken to.
const NO_SOCKET: &str = "this Claude Code takes no messages (it does since 2.1.224); its hooks bring what waits: `homing install claude`";

/// `sessions/PID.json`, as far as it matters.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    pid: u32,
    session_id: String,
    /// When the process was started, in the kernel's ticks.
    proc_start: Option<String>,
    /// Which pids its own is one of.
    pid_domain: Option<String>,
    status: Option<String>,
    messaging_socket_path: Option<PathBuf>,
}

impl Entry {
    /// Whether no turn is under way. With the status `shell` the session is idle while a command of its own runs in the background.
    fn is_idle(&self) -> bool {
        matches!(self.status.as_deref(), Some("idle" | "shell"))
    }

    fn is_of_same_process(&self, other: &Self) -> bool {
        (self.pid, &self.proc_start) == (other.pid, &other.proc_start)
    }
}

/// The live process that has a session open, if there is one.
fn open_in(folder: &Path, id: &str) -> Option<Entry> {
    let files = std::fs::read_dir(folder.join("sessions")).ok()?.flatten();
    let entries = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "json"));
    let read =
        |path: &Path| -> Option<Entry> { serde_json::from_slice(&plain::small(path, LONGEST).ok()?).ok() };
    entries.filter_map(|file| read(&file.path())).find(|entry| entry.session_id == id && is_live(entry))
}

/// The user's setting by which messages of others are not taken: what is held back all the same is told later, and once for each time it was said.
fn held_back(folder: &Path) -> Option<&'static str> {
    let settings = plain::small(&folder.join("settings.json"), LARGEST_SETTINGS).ok()?;
    let settings: Value = serde_json::from_slice(&settings).ok()?;
    ["hold", "refuse"].into_iter().find(|setting| settings["crossSessionInbound"] == *setting)
}

/// Whether the process that wrote an entry lives. One that was killed leaves its file behind, and its number to somebody else.
fn is_live(entry: &Entry) -> bool {
    let ours = std::fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned());
    if let (Some(domain), Ok(ours)) = (&entry.pid_domain, ours)
        && domain.contains("pid:[")
        && !domain.ends_with(&ours)
    {
        return false;
    }
    let start = entry.proc_start.as_ref().and_then(|start| start.parse::<u64>().ok());
    process::stat(entry.pid)
        .is_some_and(|found| !found.zombie && start.is_none_or(|start| start == found.start))
}

pub(super) fn readiness(session: &Session, runs: bool, surroundings: &Surroundings) -> Readiness {
    let Some(folder) = surroundings.folder_of(session, FOLDER) else { return Readiness::Ready };
    match open_in(&folder, &session.id) {
        // Whoever says not where it listens need not say either whether it has time.
        Some(entry) if entry.messaging_socket_path.is_none() => Readiness::Closed(NO_SOCKET.to_owned()),
        Some(entry) if entry.is_idle() => match held_back(&folder) {
            Some(setting) => Readiness::Closed(format!(
                "Claude Code's settings say `\"crossSessionInbound\": \"{setting}\"`: no message is taken; its hooks bring what waits \
                 (`homing install claude`)"
            )),
            None => Readiness::Ready,
        },
        Some(_) => Readiness::Busy("the session is in the middle of a turn".to_owned()),
        None if runs => Readiness::Ready,
        None => Readiness::Closed(
            "the session is not open; it is told when it is resumed (`homing install claude`), and `[wake] headless = true` runs it".to_owned(),
        ),
    }
}

pub(super) fn wake(session: &Session, order: &Order, surroundings: &Surroundings) -> Verdict {
    match readiness(session, order.runs, surroundings) {
        Readiness::Ready => {}
        Readiness::Busy(why) | Readiness::Closed(why) => return Verdict::NotNow(why),
    }
    let Some(folder) = surroundings.folder_of(session, FOLDER) else {
        return Verdict::Failed("the folder of Claude Code is not known".to_owned());
    };
    match open_in(&folder, &session.id) {
        Some(entry) => send(&entry, &folder, session, order, EVIDENCE),
        None => resume(&folder, session, order, surroundings),
    }
}

/// Writes to the socket of a process that has the session open, and waits for the notice to be in its transcript.
fn send(entry: &Entry, folder: &Path, session: &Session, order: &Order, patience: Duration) -> Verdict {
    let Some(socket) = &entry.messaging_socket_path else { return Verdict::NotNow(NO_SOCKET.to_owned()) };
    let Some(mut transcript) = Transcript::find(folder, &session.id) else {
        return Verdict::NotNow("the session has no transcript yet".to_owned());
    };
    // A turn that failed was run where nobody had the session open: who has it open since is to hear of it.
    let news = match untold(&mut transcript, order, |told| told != Told::Failed) {
        Ok(news) => news,
        Err(error) => return unreadable(&error),
    };
    let Some(notice) = news.first() else { return told_before() };
    let text = turn::compose(&news, 0).text;
    let message = json!({ "type": "user", "message": { "role": "user", "content": text } });
    let now = || open_in(folder, &session.id).filter(|now| now.is_of_same_process(entry));
    match speak(socket, entry.pid, &message, || now().is_some_and(|now| now.is_idle())) {
        Ok(true) => {}
        Ok(false) => return Verdict::NotNow("the session went on, or elsewhere, just then".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Verdict::NotNow(format!("process {} is there, and serves its socket no more", entry.pid));
        }
        Err(error) => return Verdict::Failed(format!("the socket of process {}: {error}", entry.pid)),
    }
    match arrives(&mut transcript, notice.id.as_str(), patience, KEEPS, now) {
        Ok(Arrival::Taken) => {
            Verdict::Delivered(format!("inbox socket of process {}; it is in the transcript", entry.pid))
        }
        Ok(Arrival::Left) => {
            Verdict::NotNow("Claude Code left the session before it took up the message".to_owned())
        }
        Ok(Arrival::Kept) => {
            Verdict::NotNow("Claude Code has the message, and had no time for it so far".to_owned())
        }
        Ok(Arrival::HeldBack) => Verdict::Failed(
            "Claude Code took the message and began no turn within 15 s; it may hold messages of others back (crossSessionInbound in its \
             settings, bypassed permissions)"
                .to_owned(),
        ),
        Err(error) => unreadable(&error),
    }
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
enum Arrival {
    /// It is in the transcript.
    Taken,
    /// The session is no longer open where it was said.
    Left,
    /// The session was at work all the time.
    Kept,
    /// The session had time, and did not take it up.
    HeldBack,
}

/// Waits until the session has what was said to it. While that is at work, Claude Code keeps a message until it has time; `now` says how it is.
fn arrives(
    transcript: &mut Transcript,
    words: &str,
    patience: Duration,
    limit: Duration,
    mut now: impl FnMut() -> Option<Entry>,
) -> io::Result<Arrival> {
    let end = Instant::now() + limit;
    // Since when it has had time, and taken nothing up.
    let mut idle = Some(Instant::now());
    while !transcript.has(words, patience.min(LOOK))? {
        let given_up = match (now(), idle) {
            (None, _) => Some(Arrival::Left),
            (Some(entry), _) if !entry.is_idle() => {
                idle = None;
                None
            }
            // Where it was at work before, it has time only since a moment.
            (Some(_), None) => {
                idle = Some(Instant::now());
                None
            }
            (Some(_), Some(since)) => (since.elapsed() >= patience).then_some(Arrival::HeldBack),
        };
        if let Some(given_up) = given_up {
            // What it did last, it may have done since the look.
            return Ok(if transcript.has(words, Duration::ZERO)? { Arrival::Taken } else { given_up });
        }
        if Instant::now() > end {
            return Ok(Arrival::Kept);
        }
    }
    Ok(Arrival::Taken)
}

/// What the session was not told yet, where that `counts`. Claude Code may keep a message for longer than an attempt waits: what came of the one before
/// is seen only now.
fn untold(
    transcript: &mut Transcript,
    order: &Order,
    counts: impl Fn(Told) -> bool,
) -> io::Result<Vec<Notice>> {
    Ok(told::untold(&order.notices, &transcript.told(&order.tried)?, counts))
}

fn told_before() -> Verdict {
    Verdict::Delivered("it is in the transcript since an attempt before this one".to_owned())
}

fn unreadable(error: &io::Error) -> Verdict {
    Verdict::Failed(format!("the transcript could not be read: {error}"))
}

/// Says it, if the session is `still` there and has time at the very last moment: whatever conversation the process is in takes what is said to it.
fn speak(socket: &Path, pid: u32, message: &Value, still: impl Fn() -> bool) -> io::Result<bool> {
    let mut stream = socket::connect(socket)?;
    stream.set_write_timeout(Some(WRITE))?;
    let peer = PeerProcess::of(&stream)?;
    let other = |what: &str| io::Error::new(io::ErrorKind::PermissionDenied, format!("{what} is behind it"));
    if peer.uid() != rustix::process::getuid().as_raw() {
        return Err(other("another user"));
    }
    if peer.pid() != Some(pid) || !peer.is_alive() {
        return Err(other("another process"));
    }
    // What was begun may have been said; only a connect that had no place has said nothing.
    let begun = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "nobody reads it"),
        _ => error,
    };
    if !still() {
        return Ok(false);
    }
    stream.write_all(format!("{message}\n").as_bytes()).map_err(begun)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    Ok(true)
}

/// One more turn of a session that nobody has open.
fn resume(folder: &Path, session: &Session, order: &Order, surroundings: &Surroundings) -> Verdict {
    let found = Transcript::find(folder, &session.id)
        .map(|mut transcript| untold(&mut transcript, order, |told| told == Told::Answered));
    let news = match found.transpose() {
        Ok(news) => news.unwrap_or_else(|| order.notices.clone()),
        Err(error) => return unreadable(&error),
    };
    if news.is_empty() {
        return told_before();
    }
    let path = surroundings.path_of(session);
    let Some(program) = program::of(session, path) else {
        return Verdict::Failed("`claude` is not where the session looked for programs".to_owned());
    };
    let mut command = Command::new(program);
    command.args(["-p", "--resume", &session.id, "--output-format", "stream-json", "--verbose"]);
    command.env("PATH", path);
    surroundings.prepare(&mut command);
    if surroundings.user.as_ref().is_none_or(|user| user.join(FOLDER) != folder) {
        command.env("CLAUDE_CONFIG_DIR", folder);
    }
    let text = turn::compose(&news, 0).text;
    let judged =
        program::start(command, text.as_bytes()).and_then(|mut running| follow(&mut running, &session.id));
    judged.unwrap_or_else(|error| Verdict::Failed(format!("`claude -p --resume` could not be run: {error}")))
}

fn follow(running: &mut Running, id: &str) -> io::Result<Verdict> {
    let over = running.ends_within(TURN)?;
    let seen = running.seen()?;
    let lines = || seen.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_session = |line: &Value| line["session_id"] == id;
    // Nobody logs in between two attempts, and each leaves the notice in the transcript.
    let refused = |line: Value| {
        UNHEALABLE.into_iter().find(|error| line["type"] == "assistant" && line["error"] == *error)
    };
    if let Some(result) = lines().rfind(|line| line["type"] == "result") {
        return Ok(match result["is_error"].as_bool() {
            Some(false) if of_session(&result) => {
                Verdict::Delivered("one more turn by `claude -p --resume`".to_owned())
            }
            Some(false) => Verdict::Failed("`claude -p --resume` answered for another session".to_owned()),
            Some(true) | None => {
                let said = result["result"]
                    .as_str()
                    .map(homing_model::sanitize::line)
                    .filter(|said| !said.is_empty());
                let why = format!("`claude -p --resume`: {}", said.unwrap_or_else(|| seen.last_line()));
                match lines().find_map(refused) {
                    Some(_) => Verdict::GivenUp(format!("{why}; `homing redeliver` tries again")),
                    None => Verdict::Failed(why),
                }
            }
        });
    }
    // What Claude Code says instead of its model is no turn.
    let answers = |line: &Value| line["type"] == "assistant" && line["message"]["model"] != "<synthetic>";
    if !over && lines().any(|line| answers(&line) && of_session(&line)) {
        return Ok(Verdict::Delivered("one more turn by `claude -p --resume`, which goes on".to_owned()));
    }
    if !over {
        running.end()?;
    }
    Ok(Verdict::Failed(format!("`claude -p --resume`: {}", seen.last_line())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn order() -> Order {
        let notice = json!({
            "id": "n-2222222222", "seq": 1, "at": "2026-01-01T00:00:00.000Z", "type": "task.quiet", "quiet_ms": 5, "waiting_for_input": false,
            "task": {"id": "t-2222222222", "name": null, "owner": "claude:s1", "command": "make", "cwd": null, "labels": {}},
        });
        serde_json::from_value(json!({ "notices": [notice], "route": null })).unwrap()
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
        let session = Session::new(homing_model::Agent::Claude, "s1").unwrap();
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
        let verdict = send(&entry, folder.path(), &session, &order(), Duration::from_millis(20));
        assert!(
            matches!(&verdict, Verdict::Failed(why) if why.contains("crossSessionInbound")),
            "{verdict:?}"
        );
    }

    #[test]
    fn what_came_into_the_transcript_after_the_attempt_that_told_it_is_not_told_again() {
        let (folder, listener, entry, session) = silent();
        listener.set_nonblocking(true).unwrap();
        let send = |order: &Order| send(&entry, folder.path(), &session, order, Duration::from_millis(20));
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
        std::fs::write(
            &path,
            format!("{late}{{\"type\":\"assistant\",\"message\":{{\"model\":\"claude\"}}}}\n"),
        )
        .unwrap();
        let first = Order::new(vec![order.notices[0].clone()], None, true, order.tried.clone());
        let nobody = Surroundings::default();
        assert!(matches!(resume(folder.path(), &session, &first, &nobody), Verdict::Delivered(_)));
        assert!(
            matches!(resume(folder.path(), &session, &order, &nobody), Verdict::Failed(_)),
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
            let mut transcript = Transcript::find(folder.path(), "s1").unwrap();
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
        let mut transcript = Transcript::find(folder.path(), "s1").unwrap();
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
            let verdict = resume(folder.path(), &session, &order, &nobody);
            assert!(
                matches!(&verdict, Verdict::Failed(why) if why.contains("not where")),
                "it is to be run: {verdict:?}"
            );
        }
        // Whoever opens the session after that is told as well.
        let _ = send(&entry, folder.path(), &session, &order, Duration::from_millis(20));
        assert!(listener.accept().is_ok());
        let answer = json!({ "type": "assistant", "sessionId": "s1", "message": { "model": "claude" } });
        std::fs::write(&path, format!("{ours}\n{error}\n{ours}\n{answer}\n")).unwrap();
        assert!(matches!(resume(folder.path(), &session, &order, &nobody), Verdict::Delivered(_)));
    }

    #[test]
    fn a_process_that_serves_its_socket_no_more_is_not_waited_for_and_costs_no_attempt() {
        let (folder, _listener, entry, session) = silent();
        let path = folder.path().join("hangs.sock");
        let (_hangs, waiting) = socket::clogged(&path);
        assert!(!waiting.is_empty());
        let entry = Entry { messaging_socket_path: Some(path), ..entry };
        let verdict = send(&entry, folder.path(), &session, &order(), Duration::from_millis(20));
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
            let verdict = send(&entry, folder.path(), &session, &order(), Duration::from_millis(20));
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
        let verdict = send(&entry, folder.path(), &session, &order(), Duration::from_millis(20));
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
        assert!(
            matches!(write(&start, None, "waiting"), Readiness::Busy(_)),
            "whatever it is, it is not idle"
        );
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
}
