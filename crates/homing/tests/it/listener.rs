//! The loopback listener of a daemon, its token, and what callers on the network may do.
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the report; helpers outside of #[test] are tests too"
)]

use std::future::Future;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use homing_api::Code;
use homing_client::{Client, Error};
use homing_model::Spec;
use homing_model::notify::Notify;
use homing_testkit::{Home, Receiver, Script, gate, wait_for};
use serde_json::Value;

fn configured(text: &str) -> Home {
    let home = super::home();
    std::fs::create_dir(home.path()).unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
    configure(&home, text);
    home
}

fn configure(home: &Home, text: &str) {
    std::fs::write(home.path().join("config.toml"), text).unwrap();
}

/// The port, once the listener is open.
fn port(home: &Home) -> u16 {
    wait_for("the listener", || {
        let status = home.cli(["status", "--json"]).ok().json();
        u16::try_from(status["listener"]["port"].as_u64()?).ok()
    })
}

fn token(home: &Home) -> String {
    home.cli(["token", "show"]).ok().text()
}

fn client(home: &Home) -> Client {
    Client::over_tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port(home))), &token(home), "remote")
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn telling(target: &str, line: &str) -> Spec {
    let notify = Notify { targets: vec![target.parse().unwrap()], ..Notify::usual() };
    Spec { shell: Some(line.into()), notify: Some(notify), ..Spec::default() }
}

/// Holds 256 connections: with requests under way, or with requests whose token is wrong, anew after each answer.
const HOG: &str = r#"
import socket, sys
port, token = int(sys.argv[1]), sys.argv[2]
head = f"GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n"
def opened():
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(head.encode())
    return s
held = [opened() for _ in range(256)]
if token != "wrong":
    for s in held:
        s.recv(16)
print("held", flush=True)
while token == "wrong":
    held.append(opened())
    s = held.pop(0)
    try:
        while s.recv(65536):
            pass
    except ConnectionError:
        pass
sys.stdin.read()
"#;

#[test]
fn p11_one_task_does_not_lock_the_owner_out_of_the_listener() {
    let home = configured("[listener]\nenabled = true\n");
    let (port, token) = (port(&home), token(&home));
    let script = home.scratch().join("hog.py");
    std::fs::write(&script, HOG).unwrap();
    for (shown, name) in [(token.as_str(), "busy"), ("wrong", "wrong")] {
        let line = format!("exec python3 '{}' {port} '{shown}' > {name}", script.display());
        let id = home.submit(&["--stdin", "pipe"], &line);
        assert_eq!(home.told(name), "held");
        for _ in 0..3 {
            block_on(client(&home).healthy()).unwrap();
        }
        let connections = home.get("/v1/status").json()["listener"]["connections"].as_u64().unwrap();
        assert!(name == "wrong" || connections <= 70, "{connections} of one task");
        let _ = home.cli(["stop", "--grace", "0s", &id]).ok();
    }
    home.stop_daemon();
}

#[test]
fn p3_a_client_over_tcp_finds_the_next_daemon_at_the_same_address() {
    let home = configured("[listener]\nenabled = true\n");
    let client = client(&home);
    let before = port(&home);
    block_on(async {
        let spec = Spec { argv: vec!["true".into()], ..Spec::default() };
        let task = client.submit(&spec, None).await.unwrap().task;
        assert_eq!(task.owner, "remote");
        let killed = home.kill_daemon();
        let waited = client.wait(&[task.id], homing_client::Mode::All, None).await.unwrap();
        assert!(waited.done, "asked of the next daemon");
        let _ = home.next_daemon(killed);
    });
    assert_eq!(port(&home), before);
}

#[test]
fn what_was_turned_on_stays_on_and_what_was_turned_off_stays_off() {
    let home = super::home();
    let _ = home.daemon_pid();
    assert_eq!(home.get("/v1/status").json()["listener"]["enabled"], false);
    let on = home.post("/v1/listener", &Value::Null);
    assert_eq!(on.status, 400, "a body is an object or nothing");
    let on = home.http("POST", "/v1/listener", &[], b"").whole().json();
    home.does(["daemon", "restart"]);
    assert_eq!(u64::from(port(&home)), on["port"].as_u64().unwrap());
    let off = home.http("DELETE", "/v1/listener", &[], b"").whole().json();
    assert_eq!(off["enabled"], false);
    home.does(["daemon", "restart"]);
    assert_eq!(home.get("/v1/listener").json()["enabled"], false);
}

/// Both loopback addresses of a port, held.
type Held = (TcpListener, Option<TcpListener>);

/// Holds a port; none if another program has it at either address.
fn hold(port: u16) -> Option<Held> {
    let four = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    let port = four.local_addr().unwrap().port();
    match TcpListener::bind((Ipv6Addr::LOCALHOST, port)) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => None,
        // Or a machine without IPv6.
        six => Some((four, six.ok())),
    }
}

/// A port that is free at both addresses, at least just now; and none of these.
fn free_port(but: &[u16]) -> u16 {
    for _ in 0..100 {
        let held = hold(0).map(|(four, _six)| four.local_addr().unwrap().port());
        if let Some(port) = held.filter(|port| !but.contains(port)) {
            return port;
        }
    }
    panic!("no port is free");
}

/// Has the listener go to a free port, by these means; to another where somebody else was faster.
fn settle(home: &Home, but: &[u16], go: impl Fn(u16)) -> u16 {
    for _ in 0..10 {
        let port = free_port(but);
        go(port);
        let found = wait_for("the port, or why not", || {
            let listener = home.cli(["status", "--json"]).ok().json()["listener"].clone();
            let there = listener["port"].as_u64() == Some(port.into());
            let problem = listener["problem"].as_str().is_some_and(|why| why.contains(&port.to_string()));
            (there || problem).then_some(there)
        });
        if found {
            return port;
        }
    }
    panic!("no port stays free");
}

/// Has the daemon read its configuration again.
fn reload(home: &Home) {
    let pid = home.daemon_pid().to_string();
    assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
}

/// Until the daemon has looked around twice.
fn two_passes(home: &Home) {
    let passes = || home.cli(["status", "--json"]).ok().json()["reconcile"]["passes"].as_u64().unwrap();
    let before = passes();
    wait_for("two passes", || (passes() >= before + 2).then_some(()));
}

/// A quick look around, and a listener that is on; at this port, if one is named.
fn named(port: Option<u16>) -> String {
    let port = port.map_or_else(String::new, |port| format!("port = {port}\n"));
    format!("[reconcile]\ninterval = \"100ms\"\n[listener]\nenabled = true\n{port}")
}

#[test]
fn a_port_holds_for_as_long_as_the_configuration_names_it() {
    // Nobody listens yet: what is drawn later was never drawn before.
    let home = configured("");
    let _ = home.daemon_pid();
    let restarted = |port| {
        configure(&home, &named(Some(port)));
        home.does(["daemon", "restart"]);
    };
    let first = settle(&home, &[], restarted);
    let second = settle(&home, &[first], restarted);
    let other = home.post("/v1/listener", &serde_json::json!({ "port": first }));
    assert_eq!(other.status, 422, "{}", other.json());
    assert!(other.json()["detail"].as_str().unwrap().contains(&second.to_string()), "{}", other.json());
    let third = settle(&home, &[first, second], |port| {
        configure(&home, &named(Some(port)));
        reload(&home);
    });
    configure(&home, &named(None));
    reload(&home);
    let drawn = wait_for("any port", || Some(port(&home)).filter(|port| *port != third));
    home.does(["daemon", "restart"]);
    assert_eq!(port(&home), drawn, "one that was drawn is kept");
}

#[test]
fn once_no_port_is_named_any_more_the_one_that_was_drawn_before_is_waited_for() {
    let home = configured(&named(None));
    let _ = home.daemon_pid();
    let drawn = port(&home);
    let _named = settle(&home, &[drawn], |port| {
        configure(&home, &named(Some(port)));
        reload(&home);
    });
    let held = wait_for("the port that was drawn", || hold(drawn));
    configure(&home, &named(None));
    reload(&home);
    let problem = wait_for("why it is not open", || {
        home.get("/v1/listener").json()["problem"].as_str().map(str::to_owned)
    });
    assert!(problem.contains(&drawn.to_string()), "{problem}");
    two_passes(&home);
    assert_eq!(home.get("/v1/listener").json()["enabled"], false, "it is not exchanged for another");
    drop(held);
    assert_eq!(port(&home), drawn);
}

#[test]
fn whoever_turns_it_off_outweighs_the_configuration_until_that_changes() {
    let home = configured(&named(None));
    let _ = home.daemon_pid();
    let before = port(&home);
    let is_open = || home.get("/v1/listener").json()["enabled"].as_bool().unwrap();
    home.does(["mcp", "--http", "--off"]);
    two_passes(&home);
    assert!(!is_open(), "no look around turns it on again");
    home.does(["daemon", "restart"]);
    two_passes(&home);
    assert!(!is_open(), "nor does a restart");
    let killed = home.kill_daemon();
    let _ = home.next_daemon(killed);
    two_passes(&home);
    assert!(!is_open(), "nor does a crash");
    let _ = settle(&home, &[before], |port| {
        configure(&home, &named(Some(port)));
        reload(&home);
    });
    home.does(["mcp", "--http", "--off"]);
    configure(&home, &named(None));
    home.does(["daemon", "restart"]);
    assert_eq!(port(&home), before, "a change while no daemon looked counts as well");
}

#[test]
fn what_was_turned_off_and_on_again_stays_on_through_a_crash() {
    let home = configured(&named(None));
    let _ = home.daemon_pid();
    let before = port(&home);
    home.does(["mcp", "--http", "--off"]);
    assert_eq!(home.http("POST", "/v1/listener", &[], b"").whole().json()["enabled"], true);
    let killed = home.kill_daemon();
    let _ = home.next_daemon(killed);
    assert_eq!(port(&home), before);
}

#[test]
fn p11_the_token_is_shown_when_it_is_asked_for_and_is_nowhere_else() {
    let home = configured("[listener]\nenabled = true\n");
    let mut starting = home.command();
    assert!(starting.env("HOMING_LOG", "trace").arg("status").output().unwrap().status.success());
    let _ = port(&home);
    let path = home.cli(["token", "path"]).ok().text();
    assert_eq!(path, home.path().join("token").display().to_string());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let first = token(&home);
    assert_eq!(first, std::fs::read_to_string(&path).unwrap().trim());
    let client = client(&home);
    block_on(client.healthy()).unwrap();
    let wrong = Client::over_tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port(&home))), "wrong", "x");
    assert_eq!(block_on(wrong.healthy()).unwrap_err().code(), Some(Code::Unauthorized));

    home.does(["token", "rotate"]);
    let second = token(&home);
    assert_ne!(first, second);
    let refused = wait_for("the old one to be refused", || block_on(client.healthy()).err()?.code());
    assert_eq!(refused, Code::Unauthorized);
    for entry in std::fs::read_dir(home.path()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
        let expected = entry.file_name() == "token";
        assert_eq!(text.contains(&second), expected, "{}", entry.path().display());
        assert!(!text.contains(&first), "{}", entry.path().display());
    }
    home.stop_daemon();
    home.does(["token", "rotate"]);
    assert_ne!(token(&home), second, "nobody has to be there for it");
}

#[test]
fn a_token_that_others_can_read_is_not_used_and_the_doctor_says_so() {
    let home = configured("[listener]\nenabled = true\n");
    let _ = port(&home);
    let doctor = |home: &Home| {
        let checks = home.cli(["doctor", "--json"]).json();
        checks["checks"].as_array().unwrap().iter().find(|check| check["name"] == "listener").unwrap().clone()
    };
    assert!(doctor(&home)["detail"].as_str().unwrap().starts_with("open at http://127.0.0.1:"));
    std::fs::set_permissions(home.path().join("token"), PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!(doctor(&home)["state"], "fail");
    home.does(["daemon", "restart"]);
    let problem = wait_for("why it is not open", || {
        home.get("/v1/listener").json()["problem"].as_str().map(str::to_owned)
    });
    assert!(problem.contains("open to other users"), "{problem}");
    home.does(["token", "rotate"]);
    assert_eq!(home.http("POST", "/v1/listener", &[], b"").whole().json()["enabled"], true);
    assert_eq!(doctor(&home)["state"], "ok");
}

#[test]
fn p11_a_caller_on_the_network_sends_no_webhook_to_this_machine_at_any_attempt_unless_that_is_allowed() {
    let receiver = Receiver::new([Script::status(204)]);
    let url = format!("http://127.0.0.1:{}/hook", receiver.port());
    let allowed =
        format!("[listener]\nenabled = true\n[webhook]\nallow = [\"127.0.0.1:{}\"]\n", receiver.port());
    let closed = "[listener]\nenabled = true\n";
    let home = configured(closed);
    let remote = client(&home);
    let submit =
        |client: &Client, target: &str, line: &str| block_on(client.submit(&telling(target, line), None));
    let refused = submit(&remote, &url, "true").unwrap_err();
    assert_eq!(refused.code(), Some(Code::BadTarget), "{refused}");
    let own =
        submit(&Client::new(home.path(), "user"), &format!("http://127.0.0.1:{}/", port(&home)), "true");
    assert!(matches!(own, Err(Error::Problem(problem)) if problem.detail.contains("own listener")));

    configure(&home, &allowed);
    home.does(["daemon", "restart"]);
    let remote = client(&home);
    let here = home.scratch().display().to_string();
    let held = submit(&remote, &url, &format!("cd '{here}'; {}", gate("go"))).unwrap().task.id.to_string();
    let local = home.submit(&["--notify", &url], &gate("go"));
    configure(&home, closed);
    home.does(["daemon", "restart"]);
    home.open("go");
    let delivery =
        |id: &str| home.cli(["deliveries", "--task", id, "--json"]).ok().json()["items"][0].clone();
    wait_for("the local one", || (delivery(&local)["state"] == "delivered").then_some(()));
    let failed =
        wait_for("the other one", || delivery(&held)["history"][0]["result"].as_str().map(str::to_owned));
    assert!(failed.contains("loopback"), "{failed}");
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn who_has_the_token_is_the_user_and_top_level() {
    let home = configured("[listener]\nenabled = true\n[nested]\ndepth = 0\n");
    let remote = client(&home);
    let mark = home.scratch().join("mark");
    let target = format!("exec:touch '{}'", mark.display());
    let task = block_on(remote.submit(&telling(&target, "true"), None)).unwrap().task;
    assert_eq!((task.parent, task.depth), (None, 0));
    wait_for("the command that is told", || mark.exists().then_some(()));
}

#[test]
fn an_mcp_client_that_speaks_http_is_told_where_and_comes_in_with_the_token_alone() {
    let home = super::home();
    let told = home.cli(["mcp", "--http", "--json"]).ok().json();
    let url = told["url"].as_str().unwrap().to_owned();
    assert_eq!(url, format!("http://127.0.0.1:{}/mcp", port(&home)));
    let token = std::fs::read_to_string(told["token_path"].as_str().unwrap()).unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    let post = |authorization: &str| {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port(&home))).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: {}\r\n{authorization}content-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{hello}",
            url.trim_start_matches("http://").trim_end_matches("/mcp"),
            hello.len()
        )
        .unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let served = post(&format!("authorization: Bearer {}\r\n", token.trim()));
    assert!(served.starts_with("HTTP/1.1 200") && served.contains("serverInfo"), "{served}");
    assert!(post("").starts_with("HTTP/1.1 401"));
    let was = port(&home);
    let _ = home.cli(["mcp", "--http", "--off"]).ok();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, was)).is_err(), "nobody is there any more");
}
