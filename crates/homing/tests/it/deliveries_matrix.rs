//! Receivers that do all they should not, at once, against the real daemon: the right state, the right next attempt, nobody else delayed,
//! no memory spent.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::process::Command;

use homing_model::Timestamp;
use homing_testkit::{Home, Receiver, Script, wait_for, wait_until};
use serde_json::Value;

/// What an attempt may take in these tests. Nothing here waits for the real one; those that are answered have time enough on a loaded machine.
const DEADLINE_MS: i64 = 5_000;
/// Between the end of an attempt and its place in the ledger, or the next attempt, on a loaded machine; no step of the schedule is mistaken for
/// another by it.
const SLACK_MS: i64 = 30_000;
const HOUR_MS: i64 = 3_600_000;

/// When the next attempt is due.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// On schedule: five seconds after the first, with a tenth of jitter.
    Scheduled,
    /// So long after the attempt.
    After(i64),
    /// At this very time.
    At(Timestamp),
    /// Never.
    Dead,
    /// Not needed.
    Delivered,
}

/// One receiver, and what must come of it.
struct Row {
    name: &'static str,
    receiver: Receiver,
    scheme: &'static str,
    status: Option<u16>,
    /// What its history says.
    said: &'static str,
    next: Next,
}

impl Row {
    fn url(&self) -> String {
        format!("{}://127.0.0.1:{}/hook", self.scheme, self.receiver.port())
    }
}

fn row(
    name: &'static str,
    receiver: Receiver,
    status: impl Into<Option<u16>>,
    said: &'static str,
    next: Next,
) -> Row {
    Row { name, receiver, scheme: "http", status: status.into(), said, next }
}

/// A home whose attempts have less time.
fn hasty() -> Home {
    let home = super::home();
    std::fs::create_dir_all(home.path()).unwrap();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let config = format!("[webhook]\ndeadline = \"{DEADLINE_MS}ms\"\n");
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    home
}

fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap_or_else(|| panic!("no time: {value}")).parse().unwrap()
}

/// When the first attempt had ended.
fn attempted(delivery: &Value) -> Timestamp {
    let first = &delivery["history"][0];
    time(&first["at"]).plus_millis(i64::try_from(first["took_ms"].as_u64().unwrap()).unwrap())
}

/// A time as HTTP writes it, some hours from now, and the same as a timestamp.
fn date_in(hours: u32) -> (String, Timestamp) {
    // Read once: between two looks a second may pass.
    let at = base() + u64::from(hours) * 3_600;
    let date = |form: &str| {
        let mut date = Command::new("date");
        date.env("LC_ALL", "C").args(["-u", "-d", &format!("@{at}"), form]);
        String::from_utf8(date.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    (date("+%a, %d %b %Y %H:%M:%S GMT"), date("+%Y-%m-%dT%H:%M:%SZ").parse().unwrap())
}

fn base() -> u64 {
    let now = Command::new("date").arg("+%s").output().unwrap();
    String::from_utf8(now.stdout).unwrap().trim().parse().unwrap()
}

fn rows() -> Vec<Row> {
    let answering = |script| Receiver::new([script]);
    let redirect = Script::status(307).header("location", "http://127.0.0.1:9/elsewhere");
    let wishing = |wish: &str| answering(Script::status(429).header("retry-after", wish));
    let (date, at) = date_in(2);
    vec![
        row("refuses", Receiver::refusing(), None, "refused", Next::Scheduled),
        row("hangs in connect", Receiver::full(), None, "connecting", Next::Scheduled),
        row("is silent", answering(Script::Silent), None, "waiting for the answer", Next::Scheduled),
        row(
            "hangs in headers",
            answering(Script::HangInHead),
            None,
            "waiting for the answer",
            Next::Scheduled,
        ),
        row("hangs in body", answering(Script::HangInBody(200)), 200, "the answer's body", Next::Scheduled),
        row("redirects", answering(redirect), 307, "redirects are not followed", Next::Scheduled),
        row(
            "sends a head without end",
            answering(Script::EndlessHead),
            None,
            "no answer in HTTP",
            Next::Scheduled,
        ),
        row("sends ten gigabytes", answering(Script::Endless), 200, "200", Next::Delivered),
        row("speaks something else", answering(Script::Garbage), None, "no answer in HTTP", Next::Scheduled),
        row("closes", answering(Script::Close), None, "no answer in HTTP", Next::Scheduled),
        row("fails", answering(Script::status(500)), 500, "500", Next::Scheduled),
        row("wishes in seconds", wishing("120"), 429, "429", Next::After(120_000)),
        row("wishes for a date", wishing(&date), 429, "429", Next::At(at)),
        row(
            "wishes for the year 2100",
            wishing("Fri, 31 Dec 2100 23:59:59 GMT"),
            429,
            "429",
            Next::After(24 * HOUR_MS),
        ),
        row("wishes garbage", wishing("when it pleases"), 429, "429", Next::Scheduled),
        row("wishes for yesterday", wishing("Sun, 06 Nov 1994 08:49:37 GMT"), 429, "429", Next::Scheduled),
        row("is gone", answering(Script::status(410)), 410, "410", Next::Dead),
        Row {
            scheme: "https",
            ..row(
                "has a certificate of its own",
                Receiver::tls([Script::status(200)]),
                None,
                "TLS",
                Next::Scheduled,
            )
        },
        Row {
            scheme: "https",
            ..row("has no TLS", answering(Script::status(200)), None, "TLS", Next::Scheduled)
        },
    ]
}

fn deliveries(home: &Home, id: &str) -> Vec<Value> {
    let answer = home.cli(["deliveries", "--task", id, "--json"]).ok().json();
    answer["items"].as_array().cloned().unwrap_or_default()
}

fn check(row: &Row, delivery: &Value) {
    let first = &delivery["history"][0];
    let name = row.name;
    assert_eq!(first["status"].as_u64(), row.status.map(u64::from), "{name}: {delivery}");
    assert!(first["result"].as_str().unwrap().contains(row.said), "{name}: {delivery}");
    let state = match row.next {
        Next::Dead => "dead",
        Next::Delivered => "delivered",
        Next::Scheduled | Next::After(_) | Next::At(_) => "pending",
    };
    let attempts = delivery["history"].as_array().unwrap().len();
    assert_eq!(
        (&delivery["state"], &delivery["attempts"]),
        (&state.into(), &attempts.into()),
        "{name}: {delivery}"
    );
    // Where the second was made already, while others still had their first, it tells when it was due.
    let second = &delivery["history"][1]["at"];
    let next_at = if second.is_null() { &delivery["next_at"] } else { second };
    let (least, most) = match row.next {
        Next::Dead | Next::Delivered => return assert!(delivery["next_at"].is_null(), "{name}: {delivery}"),
        Next::At(at) => return assert_eq!(time(&delivery["next_at"]), at, "{name}: {delivery}"),
        Next::Scheduled => (4_500, 5_500),
        Next::After(millis) => (millis, millis),
    };
    let pause = i64::try_from(time(next_at).millis_since(attempted(delivery))).unwrap();
    assert!((least..=most + SLACK_MS).contains(&pause), "{name}: {pause} ms in {delivery}");
}

/// A figure of the daemon's, in bytes.
fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

#[test]
fn p5_whatever_a_receiver_does_its_delivery_is_in_the_right_state_and_no_other_waits_for_it() {
    let home = hasty();
    let well = Receiver::new([Script::status(200)]);
    let rows = rows();
    let mut options: Vec<String> = Vec::new();
    for url in rows.iter().map(Row::url).chain([format!("http://127.0.0.1:{}/well", well.port())]) {
        options.extend(["--notify".to_owned(), url]);
    }
    let id = home.submit(&options.iter().map(String::as_str).collect::<Vec<_>>(), "true");
    let _ = well.wait_for(1);
    let all = wait_until("one attempt at each", homing_testkit::PATIENCE, || {
        let all = deliveries(&home, &id);
        let tried = all.iter().filter(|delivery| !delivery["history"][0].is_null()).count();
        if tried == rows.len() + 1 { Ok(all) } else { Err(format!("{tried} of {}", rows.len() + 1)) }
    });
    let of = |url: &str| all.iter().find(|delivery| delivery["target"] == url).unwrap();
    for row in &rows {
        check(row, of(&row.url()));
    }
    // Whoever answers has it before the first of those that hang was given up.
    let good = of(&format!("http://127.0.0.1:{}/well", well.port()));
    let hung = rows
        .iter()
        .map(|row| of(&row.url()))
        .filter(|delivery| delivery["history"][0]["took_ms"].as_u64() >= Some(DEADLINE_MS.unsigned_abs()));
    let hung: Vec<_> = hung.map(attempted).collect();
    assert_eq!(hung.len(), 4, "in connect, silent, in the head, in the body");
    assert!(hung.iter().all(|end| time(&good["ended_at"]) < *end), "{good} waited for one of {hung:?}");
}

#[test]
fn p5_of_ten_gigabytes_of_answer_the_daemon_keeps_nothing() {
    let home = super::home();
    let (well, endless) = (Receiver::new([Script::status(200)]), Receiver::new([Script::Endless]));
    let url = |receiver: &Receiver| format!("http://127.0.0.1:{}/hook", receiver.port());
    let deliver = |receiver: &Receiver| {
        let id = home.submit(&["--notify", &url(receiver)], "true");
        wait_for("the delivery", || {
            deliveries(&home, &id).into_iter().find(|delivery| delivery["state"] == "delivered")
        })
    };
    // What the first deliveries need is had before anything is measured.
    for _ in 0..5 {
        let _ = deliver(&well);
    }
    let daemon = home.daemon_pid();
    let before = memory(daemon, "VmRSS");
    // The highest mark so far is forgotten.
    let _ = std::fs::write(format!("/proc/{daemon}/clear_refs"), "5");
    for _ in 0..20 {
        let _ = deliver(&endless);
    }
    let (after, highest) = (memory(daemon, "VmRSS"), memory(daemon, "VmHWM"));
    assert!(
        after.max(highest) < before + (8 << 20),
        "{before} bytes before, {after} after, {highest} at most"
    );
    assert_eq!(home.daemon_pid(), daemon);
}

#[test]
fn p5_what_is_new_for_an_endpoint_does_not_wait_for_what_it_is_slow_to_answer() {
    let home = super::home();
    let receiver = Receiver::new([Script::HangInHead, Script::status(200)]);
    let url = format!("http://127.0.0.1:{}/hook", receiver.port());
    let slow = home.submit(&["--notify", &url], "true");
    let _ = receiver.wait_for(1);
    let quick = home.submit(&["--notify", &url], "true");
    let _ = receiver.wait_for(2);
    wait_for("the second", || (deliveries(&home, &quick)[0]["state"] == "delivered").then_some(()));
    let first = &deliveries(&home, &slow)[0];
    assert_eq!(
        (&first["state"], &first["attempts"]),
        (&"pending".into(), &0.into()),
        "still under way: {first}"
    );
}
