//! `/metrics`: figures that are true, in a format that others read.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use homing_testkit::{Home, PATIENCE, Receiver, Script, gate, left_out, wait_for, wait_until};

fn url(receiver: &Receiver) -> String {
    format!("http://127.0.0.1:{}/hook", receiver.port())
}

fn page(home: &Home) -> String {
    let reply = home.get("/metrics");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    String::from_utf8(reply.body).unwrap()
}

/// Every sample by its series.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

#[test]
fn the_figures_follow_what_happens() {
    let home = super::home();
    let receiver = Receiver::new([Script::status(204)]);
    for line in ["true", "true", "exit 3"] {
        let id = home.submit(&["--notify", &url(&receiver)], line);
        let _ = home.ended(&id);
    }
    let running = home.submit(&[], &gate("go"));
    let _ = home.until_status(&running, "running");
    let expected = [
        ("homing_delivery_attempts_total{by=\"webhook\",result=\"delivered\"}", 3.0),
        ("homing_tasks{status=\"running\"}", 1.0),
        ("homing_tasks{status=\"succeeded\"}", 2.0),
        ("homing_tasks{status=\"failed\"}", 1.0),
        ("homing_tasks{status=\"queued\"}", 0.0),
        ("homing_tasks_submitted_total{kind=\"command\"}", 4.0),
        ("homing_tasks_ended_total{status=\"succeeded\"}", 2.0),
        ("homing_tasks_ended_total{status=\"failed\"}", 1.0),
        ("homing_task_start_seconds_count", 4.0),
        ("homing_task_record_seconds_count", 3.0),
        ("homing_attempts_attended", 1.0),
        ("homing_deliveries{state=\"dead\",target=\"webhook\"}", 0.0),
        ("homing_degraded", 0.0),
        ("homing_keeper_up", 1.0),
        ("homing_config_in_force", 1.0),
    ];
    // Figures follow what they count: a shim is attended until it has left, and a commit is counted before its time is.
    let seen = wait_until("the figures", PATIENCE, || {
        let seen = samples(&page(&home));
        let counted = [("homing_store_commit_seconds_count", seen["homing_store_commits_total"])];
        let differs = |(series, value): &&(&'static str, f64)| seen[*series] != *value;
        match expected.iter().chain(&counted).find(differs) {
            Some((series, value)) => Err(format!("{series} is {}, not {value}", seen[*series])),
            None => Ok(seen),
        }
    });
    assert!(seen["homing_store_commits_total"] >= 4.0);
    assert!(seen["homing_store_bytes{file=\"database\"}"] > 4096.0);
    assert!(seen["process_resident_memory_bytes"] > 1e6 && seen["process_open_fds"] > 5.0);
    assert!(
        seen["homing_http_answers_total{code=\"2xx\"}"] > 4.0
            && seen["homing_connections{at=\"socket\"}"] >= 1.0
    );
    let next = samples(&page(&home));
    for (series, value) in
        seen.iter().filter(|(series, _)| series.split('{').next().unwrap().ends_with("_total"))
    {
        assert!(next[series] >= *value, "{series} never goes back");
    }
    assert_eq!(
        seen.keys().collect::<Vec<_>>(),
        next.keys().collect::<Vec<_>>(),
        "the series are always the same"
    );
    home.open("go");
    let _ = home.ended(&running);
}

#[test]
fn a_parser_of_prometheus_reads_every_line() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let python = target.join("verifiers/prometheus-python/bin/python");
    let home = super::home();
    let id = home.submit(&[], "exit 1");
    let _ = home.ended(&id);
    let page = page(&home);
    let mut judged = 0;
    let read = "import sys\nfrom prometheus_client.parser import text_string_to_metric_families as read\n\
        for family in read(sys.stdin.read()):\n    assert family.documentation and family.type != 'unknown', family\n    \
        print(family.name, family.type, len(family.samples))\n";
    for (name, program, arguments) in [
        ("promtool", Path::new("promtool"), vec!["check", "metrics"]),
        ("prometheus_client", &python, vec!["-c", read]),
    ] {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let Ok(mut child) = command.spawn() else { continue };
        judged += 1;
        child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {said}{errors}");
        if name == "prometheus_client" {
            assert_eq!(said.lines().count(), page.matches("# TYPE ").count(), "{said}");
            assert!(said.contains("homing_task_start_seconds histogram 17"), "{said}");
        }
    }
    if judged == 0 {
        let ci = std::env::vars_os().any(|(name, value)| name == "CI" && !value.is_empty());
        assert!(!ci, "`cargo xtask test` installs prometheus_client");
        left_out("neither promtool nor prometheus_client is there; `cargo xtask test` installs the latter");
    }
}

#[test]
fn p11_on_the_listener_the_figures_need_the_token_like_everything_else() {
    let home = super::home();
    let _ = home.daemon_pid();
    std::fs::write(home.path().join("config.toml"), "[listener]\nenabled = true\n").unwrap();
    let port = wait_for("the listener, by the changed configuration alone", || {
        home.cli(["status", "--json"]).ok().json()["listener"]["port"].as_u64()
    });
    let token = home.cli(["token", "show"]).ok().text();
    let ask = |authorization: &str| {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).unwrap();
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{authorization}Connection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer
    };
    let refused = ask("");
    assert!(refused.starts_with("HTTP/1.1 401 ") && !refused.contains("homing_tasks"), "{refused}");
    let told = ask(&format!("Authorization: Bearer {token}\r\n"));
    assert!(
        told.starts_with("HTTP/1.1 200 ")
            && told.contains("homing_listener_refused_total{reason=\"token\"} 1\n"),
        "{told}"
    );
}
