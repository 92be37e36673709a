//! A turn by the inbox socket of the process that has the session open.
//!
//! A message joins the session's queue and is read with its next turn, which begins at once where the session is idle. What becomes of it is
//! reported to a socket of ours (`from`): the session's settings may refuse it, or hold it until its user decides. That the model gets it
//! says the session's transcript, and nothing else counts as delivered.

use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use homing_model::{Session, turn, wake};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::FOLDER;
use super::record::{open_in, transcript};
use crate::wake::told::{self, Told};
use crate::wake::transcript::Transcript;
use crate::wake::{Readiness, Surroundings, Verdict, WakeRequest, socket};

/// Between two looks at the transcript and at what the session reports.
const LOOK: Duration = Duration::from_millis(500);
/// A message that waits for a long turn, or for its user, is waited for as long as any wake may take.
const KEEPS: Duration = Duration::from_millis(wake::LONGEST_MS.unsigned_abs());
/// How long a report may take to arrive once its connection was made.
const REPORT: Duration = Duration::from_secs(2);
/// The path of a socket is short.
const TEMPORARY: &str = "/tmp";
/// A report that is longer is none.
const LONGEST_REPORT: usize = 64 * 1024;

pub(super) fn readiness(session: &Session, surroundings: &Surroundings) -> Readiness {
    let Some(folder) = surroundings.folder_of(session, FOLDER) else { return Readiness::Ready };
    match open_in(&folder, &session.id) {
        Some(record) if record.ipc_path.is_some() => Readiness::Ready,
        Some(_) => Readiness::Closed(
            "this session of Qwen Code takes no messages (agents.crossSessionMessaging in its settings); its hooks deliver what waits: \
             `homing install qwen`"
                .to_owned(),
        ),
        None => Readiness::Closed(
            "the session is not open; it is delivered when it is resumed (`homing install qwen`)".to_owned(),
        ),
    }
}

pub(super) fn wake(session: &Session, request: WakeRequest<'_>, surroundings: &Surroundings) -> Verdict {
    if let Readiness::Busy(why) | Readiness::Closed(why) = readiness(session, surroundings) {
        return Verdict::NotNow(why);
    }
    let Some(folder) = surroundings.folder_of(session, FOLDER) else {
        return Verdict::Failed("the folder of Qwen Code is not known".to_owned());
    };
    send(&folder, &session.id, request)
        .unwrap_or_else(|error| Verdict::Failed(format!("the inbox of Qwen Code: {error}")))
}

fn send(folder: &Path, id: &str, request: WakeRequest<'_>) -> io::Result<Verdict> {
    let Some(mut transcript) = transcript(folder, id) else {
        return Ok(Verdict::NotNow("the session has no transcript yet".to_owned()));
    };
    let told = transcript.told(request.tried)?;
    let news = told::untold(request.notices, &told, |told| told != Told::Failed);
    let Some(first) = news.first() else {
        return Ok(Verdict::Delivered("it is in the transcript since an attempt before this one".to_owned()));
    };
    let found = open_in(folder, id).and_then(|record| Some((record.pid, record.ipc_path?, record.ipc_token)));
    let Some((pid, path, token)) = found else {
        return Ok(Verdict::NotNow("the session was left just then".to_owned()));
    };
    let reports = Reports::new()?;
    let message = json!({
        "msgV": 1, "msgId": reports.id, "type": "user", "from": reports.path(), "replyToken": reports.token,
        "fromName": "homing", "fromMode": "prompting", "toSessionId": id, "priority": "next",
        "message": { "role": "user", "content": turn::compose(&news, 0).text },
    });
    let auth = token.map(|token| json!({ "msgV": 1, "type": "auth", "token": token }));
    let lines: String = auth.iter().chain([&message]).map(|line| format!("{line}\n")).collect();
    let still = || open_in(folder, id).is_some_and(|now| now.pid == pid);
    match socket::send_lines(&path, pid, &lines, still) {
        Ok(true) => arrival(&mut transcript, first.id.as_str(), &reports, pid, still),
        Ok(false) => Ok(Verdict::NotNow("the session was left just then".to_owned())),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Ok(Verdict::NotNow(format!("process {pid} does not serve its socket")))
        }
        Err(error) => Ok(Verdict::Failed(format!("the socket of process {pid}: {error}"))),
    }
}

/// Waits until the transcript has the words, or the session reports that it does not take them.
fn arrival(
    transcript: &mut Transcript,
    words: &str,
    reports: &Reports,
    pid: u32,
    still: impl Fn() -> bool,
) -> io::Result<Verdict> {
    let end = Instant::now() + KEEPS;
    let mut held = false;
    loop {
        if transcript.has(words, LOOK)? {
            return Ok(Verdict::Delivered(format!("inbox socket of process {pid}; it is in the transcript")));
        }
        match reports.next().as_deref() {
            Some("held") => held = true,
            Some("refused") => {
                return Ok(Verdict::GivenUp(
                    "the settings of Qwen Code refuse messages (agents.crossSessionInbound); its hooks deliver what waits"
                        .to_owned(),
                ));
            }
            Some("denied") => return Ok(Verdict::GivenUp("the user of the session declined it".to_owned())),
            Some("expired") => {
                return Ok(Verdict::Failed(
                    "Qwen Code held the message for its user, who did not decide; `\"crossSessionInbound\": \"accept\"` under `agents` in its \
                     settings takes it"
                        .to_owned(),
                ));
            }
            Some(refused @ ("dropped" | "misaddressed")) => {
                return Ok(Verdict::NotNow(format!("Qwen Code reports `{refused}`")));
            }
            Some(_) | None => {}
        }
        if !still() {
            // What it did last, it may have done since the look.
            return Ok(match transcript.has(words, Duration::ZERO)? {
                true => Verdict::Delivered(format!("inbox socket of process {pid}; it is in the transcript")),
                false => Verdict::NotNow("the session was left before it took up the message".to_owned()),
            });
        }
        if Instant::now() > end {
            let why = if held { "holds the message for its user" } else { "has had no time for the message" };
            return Ok(Verdict::NotNow(format!("Qwen Code {why}")));
        }
    }
}

/// A socket to which the session reports what became of a message.
struct Reports {
    folder: PathBuf,
    listener: UnixListener,
    id: String,
    token: String,
}

impl Reports {
    fn new() -> io::Result<Self> {
        let id = random()?;
        let folder = Path::new(TEMPORARY).join(format!("homing-{id}"));
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let listener = UnixListener::bind(folder.join("s"))?;
        listener.set_nonblocking(true)?;
        Ok(Self { folder, listener, id, token: random()?.replace('-', "") })
    }

    fn path(&self) -> PathBuf {
        self.folder.join("s")
    }

    /// The next thing that is reported of the message, if there is one by now.
    fn next(&self) -> Option<String> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(REPORT)).ok()?;
        let mut lines = BufReader::new(io::Read::take(stream, LONGEST_REPORT as u64)).lines();
        let mut next = || serde_json::from_str::<Value>(&lines.next()?.ok()?).ok();
        let (auth, report) = (next()?, next()?);
        let ours = auth["token"] == self.token && report["origMsgId"] == self.id;
        report["status"].as_str().filter(|_| ours).map(str::to_owned)
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A number that nobody guesses.
fn random() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_a_report_with_our_token_about_our_message_counts() {
        let reports = Reports::new().unwrap();
        let report = |token: &str, id: &str| {
            let lines = format!(
                "{}\n{}\n",
                json!({ "msgV": 1, "type": "auth", "token": token }),
                json!({ "msgV": 1, "type": "control", "action": "delivery_status", "status": "held", "origMsgId": id }),
            );
            UnixStream::connect(reports.path()).unwrap().write_all(lines.as_bytes()).unwrap();
            reports.next()
        };
        assert_eq!(reports.next(), None);
        assert_eq!(report(&reports.token, &reports.id).as_deref(), Some("held"));
        assert_eq!(report("other", &reports.id), None);
        assert_eq!(report(&reports.token, "other"), None);
        let path = reports.path();
        drop(reports);
        assert!(!path.exists());
    }
}
