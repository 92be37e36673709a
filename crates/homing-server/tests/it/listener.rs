//! The same routes over TCP, for whoever has the token (P11).

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use homing_engine::Config;
use homing_server::{openapi_json, token};
use homing_testkit::wait_for;
use serde_json::{Value, json};

use crate::served::Served;

/// A listener that was turned on.
struct Open {
    served: Served,
    port: u16,
}

impl Open {
    fn start() -> Self {
        Self::of(Served::start())
    }

    fn of(served: Served) -> Self {
        let answer = served.post("/v1/listener", "");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let port = u16::try_from(answer.json()["port"].as_u64().unwrap()).unwrap();
        Self { served, port }
    }

    fn token(&self) -> String {
        token::read(self.served.home()).unwrap().unwrap()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// What every good request has.
    fn good(&self) -> Vec<(&'static str, String)> {
        vec![
            ("host", format!("127.0.0.1:{}", self.port)),
            ("authorization", format!("Bearer {}", self.token())),
        ]
    }

    /// Sends a head and a body as they are, and reads to the end.
    fn send(&self, method: &str, target: &str, headers: &[(&str, String)], body: &str) -> String {
        let mut stream = self.connect();
        send(&mut stream, method, target, headers, body);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// The same with all that is needed.
    fn ask(&self, method: &str, target: &str, body: &str) -> (u16, String) {
        let mut headers = self.good();
        headers.push(("content-type", "application/json".into()));
        headers.push(("connection", "close".into()));
        let answer = self.send(method, target, &headers, body);
        (status(&answer), answer)
    }

    fn info(&self) -> Value {
        self.served.get("/v1/listener").json()
    }
}

fn send(stream: &mut TcpStream, method: &str, target: &str, headers: &[(&str, String)], body: &str) {
    let mut head = format!("{method} {target} HTTP/1.1\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    // Who is refused may be answered, and cut off, before everything is said.
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
}

/// Reads to the end, which must come; answers what came before it.
fn until_closed(mut stream: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let end = stream.read_to_end(&mut rest);
    assert!(!end.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "it is still open");
    rest
}

fn status(answer: &str) -> u16 {
    answer
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or_else(|| panic!("no answer: {answer:?}"))
}

/// Every address there is, one that is to come, and one that never is.
fn addresses() -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let target = path.replace("{ref}", "x").replace("{owner}", "user").replace("{id}", "x");
            all.push((method.to_uppercase(), target));
        }
    }
    assert!(all.len() >= 28, "{}", all.len());
    for method in ["GET", "POST", "DELETE", "OPTIONS"] {
        all.push((method.into(), "/mcp".into()));
        all.push((method.into(), "/no/such/address".into()));
    }
    all
}

#[test]
fn p11_every_address_refuses_whoever_comes_by_another_name_from_another_site_or_without_the_token() {
    let open = Open::start();
    let (host, bearer) = (open.good()[0].clone(), open.good()[1].clone());
    let port = open.port;
    let with = |name: &'static str, value: &str| vec![host.clone(), bearer.clone(), (name, value.to_owned())];
    let bad = [
        (vec![("host", "evil.example".into()), bearer.clone()], 403, "HM0051"),
        (vec![("host", format!("evil.example:{port}")), bearer.clone()], 403, "HM0051"),
        (vec![("host", "127.0.0.1".into()), bearer.clone()], 403, "HM0051"),
        (vec![bearer.clone()], 403, "HM0051"),
        (with("origin", "null"), 403, "HM0051"),
        (with("origin", &format!("http://127.0.0.1:{}", port.wrapping_add(1))), 403, "HM0051"),
        (with("origin", "https://evil.example"), 403, "HM0051"),
        (with("sec-fetch-site", "cross-site"), 403, "HM0051"),
        (with("sec-fetch-site", "same-site"), 403, "HM0051"),
        (vec![host.clone()], 401, "HM0050"),
        (vec![host.clone(), ("authorization", format!("Bearer {}", "0".repeat(64)))], 401, "HM0050"),
    ];
    let addresses = addresses();
    let tried = std::sync::atomic::AtomicU64::new(0);
    // Guesses are made to wait: all at once.
    std::thread::scope(|scope| {
        for (method, target) in &addresses {
            let (bad, open, tried) = (&bad, &open, &tried);
            scope.spawn(move || {
                for (headers, expected, code) in bad {
                    let answer = open.send(method, target, headers, "");
                    assert_eq!(status(&answer), *expected, "{method} {target} {headers:?}: {answer}");
                    assert!(answer.contains(code) && !answer.contains(&open.token()), "{answer}");
                    tried.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    let tried = tried.into_inner();
    assert_eq!(tried, (addresses.len() * bad.len()) as u64);
    assert_eq!(open.info()["refused"], tried);
    assert_eq!(open.info()["failed_auth"], addresses.len() as u64 * 2);
    assert_eq!(open.served.get("/v1/status").json()["listener"]["failed_auth"], addresses.len() as u64 * 2);
    assert_eq!(open.ask("GET", "/healthz", "").0, 200, "and whoever has it all is served");
}

#[test]
fn p11_a_body_that_a_form_could_send_is_refused() {
    let open = Open::start();
    let body = r#"{"argv":["true"]}"#;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream"] {
        let mut headers = open.good();
        headers.push(("content-type", kind.into()));
        headers.push(("connection", "close".into()));
        let answer = open.send("POST", "/v1/tasks", &headers, body);
        assert!(status(&answer) == 415 && answer.contains("HM0004"), "{kind}: {answer}");
    }
    assert_eq!(open.ask("POST", "/v1/tasks", body).0, 201);
    assert_eq!(open.served.get("/v1/tasks").json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn it_is_off_until_it_is_turned_on_and_both_addresses_are_served() {
    let served = Served::start();
    assert_eq!(served.get("/v1/listener").json()["enabled"], false);
    assert!(!served.home().join("token").exists());
    let open = Open::of(served);
    assert_eq!(open.info()["addresses"][0], format!("http://127.0.0.1:{}", open.port));
    for name in ["127.0.0.1", "[::1]", "localhost"] {
        let mut headers = open.good();
        headers[0].1 = format!("{name}:{}", open.port);
        headers.push(("connection", "close".into()));
        assert_eq!(status(&open.send("GET", "/healthz", &headers, "")), 200, "{name}");
    }
    if open.info()["addresses"].as_array().unwrap().len() == 2 {
        TcpStream::connect((Ipv6Addr::LOCALHOST, open.port)).unwrap();
    }
    let again = open.served.post("/v1/listener", "").json();
    assert_eq!(again["port"], open.port, "asked for again it stays where it is");
    assert_eq!(open.served.ask("DELETE", "/v1/listener", &[], b"").json()["enabled"], false);
    wait_for("nobody to listen", || TcpStream::connect((Ipv4Addr::LOCALHOST, open.port)).err());
    assert_eq!(open.served.post("/v1/listener", "").json()["port"], open.port, "and comes back there");
}

#[test]
fn p11_nothing_listens_beyond_this_machine_unless_it_is_called_dangerous() {
    let open = Open::start();
    // An address of this machine that is not one of the two.
    let other = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), open.port));
    assert!(TcpStream::connect(other).is_err());
    let mut config = Config::default();
    config.listener.dangerously_bind = Some("0.0.0.0".into());
    let open = Open::of(Served::with(config));
    assert_eq!(open.info()["addresses"][0], format!("http://0.0.0.0:{}", open.port));
    assert!(TcpStream::connect(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), open.port))).is_ok());
    assert_eq!(open.ask("GET", "/healthz", "").0, 200);
}

#[test]
fn a_port_that_another_has_is_said_and_not_exchanged() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let served = Served::start();
    let refused = served.post("/v1/listener", &json!({ "port": port }).to_string());
    assert_eq!(refused.problem(), (503, "HM0052".into()));
    assert!(refused.text().contains(&port.to_string()), "{}", refused.text());
    let mut config = Config::default();
    config.listener.enabled = true;
    config.listener.port = port;
    let served = Served::with(config);
    let info = wait_for("why it is not open", || {
        Some(served.get("/v1/listener").json()).filter(|info| info["problem"].is_string())
    });
    assert_eq!(info["enabled"], false);
    drop(taken);
    assert_eq!(served.post("/v1/listener", "").json()["port"], port);
}

#[test]
fn p11_another_token_shuts_out_whoever_has_the_old_one() {
    let open = Open::start();
    let old = open.good();
    let mut kept = open.connect();
    send(&mut kept, "GET", "/healthz", &old, "");
    let mut answer = [0; 4096];
    let count = kept.read(&mut answer).unwrap();
    assert!(answer[..count].starts_with(b"HTTP/1.1 200"));
    let mut stream = open.connect();
    send(&mut stream, "GET", "/v1/events", &old, "");
    let count = stream.read(&mut answer).unwrap();
    assert!(answer[..count].starts_with(b"HTTP/1.1 200"));

    assert_eq!(open.served.post("/v1/token/rotate", "").json(), json!({ "rotated": true }));
    until_closed(kept);
    until_closed(stream);
    assert_ne!(old, open.good());
    assert_eq!(status(&open.send("GET", "/healthz", &old, "")), 401);
    assert_eq!(open.ask("GET", "/healthz", "").0, 200);
}

#[test]
fn p11_who_has_the_token_changes_neither_it_nor_the_listener() {
    let open = Open::start();
    let before = open.token();
    for (method, target) in
        [("POST", "/v1/token/rotate"), ("POST", "/v1/listener"), ("DELETE", "/v1/listener")]
    {
        let (status, answer) = open.ask(method, target, "");
        assert!(status == 403 && answer.contains("HM0017"), "{method} {target}: {answer}");
        assert!(answer.contains("Send it to the Unix socket"), "{answer}");
    }
    assert_eq!((open.token(), open.ask("GET", "/v1/listener", "").0), (before, 200));
}

#[test]
fn a_stranger_that_says_more_gets_to_read_that_it_is_refused() {
    let open = Open::start();
    let mut stream = open.connect();
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 2000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..2 {
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let early = stream.read(&mut [0; 1]).map_err(|error| error.kind());
        assert_eq!(early, Err(ErrorKind::WouldBlock), "it was answered before everything was said");
        stream.write_all(&[b'x'; 1000]).unwrap();
    }
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let answer = String::from_utf8(until_closed(stream)).unwrap();
    assert!(status(&answer) == 403 && answer.contains("HM0051"), "{answer}");
}

#[test]
fn a_client_that_says_nothing_is_let_go_and_one_that_sends_too_much_is_refused() {
    let open = Open::start();
    let silent = open.connect();
    let mut headers = open.good();
    headers.push(("x-padding", "x".repeat(200_000)));
    let answer = open.send("GET", "/healthz", &headers, "");
    assert!(answer.is_empty() || status(&answer) == 431, "{answer}");
    assert!(until_closed(silent).is_empty(), "it was closed without a word");
    assert_eq!(open.ask("GET", "/healthz", "").0, 200);
}
