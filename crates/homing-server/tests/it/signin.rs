//! A browser on the loopback listener: signed in by a code, known by a cookie (P11).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use homing_server::page;

use crate::served::Served;

/// A home with the page, and a browser that knows nothing but HTTP.
struct Web {
    served: Served,
    port: u16,
}

impl Web {
    fn start() -> Self {
        let served = Served::start();
        let port = served.post("/v1/listener", "").json()["port"].as_u64().unwrap();
        Self { served, port: u16::try_from(port).unwrap() }
    }

    /// The path of a new one-time address.
    fn invitation(&self) -> String {
        let answer = self.served.post("/v1/page", "{}");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["valid_ms"], 60_000);
        let url = answer.json()["url"].as_str().unwrap().to_owned();
        url.strip_prefix(&format!("http://127.0.0.1:{}", self.port)).unwrap().to_owned()
    }

    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(self.text(method, target, headers, body).as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Reply(String::from_utf8_lossy(&answer).into_owned())
    }

    fn text(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut text = format!("{method} {target} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            text.push_str(&format!("host: 127.0.0.1:{}\r\n", self.port));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        format!("{text}connection: close\r\n\r\n{body}")
    }

    /// The cookie of a browser that was signed in, as it sends it back.
    fn sign_in(&self) -> String {
        let answer = self.ask("GET", &self.invitation(), &[], "");
        assert_eq!(answer.status(), 303, "{}", answer.0);
        answer.header("set-cookie").split(';').next().unwrap().to_owned()
    }

    fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

struct Reply(String);

impl Reply {
    fn status(&self) -> u16 {
        self.0.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{:?}", self.0))
    }

    fn header(&self, name: &str) -> &str {
        let head = self.0.split("\r\n\r\n").next().unwrap();
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value)
    }

    fn refused(&self, status: u16, code: &str) {
        assert!(self.status() == status && self.0.contains(code), "{status} {code}: {}", self.0);
    }
}

#[test]
fn p11_a_one_time_address_becomes_a_cookie_that_no_script_and_no_other_site_gets() {
    let web = Web::start();
    let invitation = web.invitation();
    let answer = web.ask("GET", &invitation, &[("sec-fetch-site", "none")], "");
    assert_eq!((answer.status(), answer.header("location")), (303, "/"), "{}", answer.0);
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
    let cookie = answer.header("set-cookie").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", &format!("homing-{}=", web.port)] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let code = invitation.split('=').nth(1).unwrap();
    assert!(
        !cookie.contains("Max-Age") && !cookie.contains("Expires"),
        "it is not written to the disk: {cookie}"
    );
    assert!(!cookie.contains(code) && !answer.header("location").contains(code));
    web.ask("GET", &invitation, &[], "").refused(401, "HM0360");
    let cookie = cookie.split(';').next().unwrap();
    for target in page::paths().chain(["/v1/tasks", "/v1/status", "/healthz"]) {
        assert_eq!(web.ask("GET", target, &[("cookie", cookie)], "").status(), 200, "{target}");
    }
}

#[test]
fn p11_every_answer_tells_a_browser_to_run_and_frame_nothing_else() {
    let web = Web::start();
    let cookie = web.sign_in();
    for (target, headers) in [
        ("/", &[("cookie", cookie.as_str())][..]),
        ("/page/app.js", &[("cookie", &cookie)]),
        ("/v1/tasks", &[("cookie", &cookie)]),
        ("/nothing", &[("cookie", &cookie)]),
        ("/", &[]),
        ("/", &[("accept", "text/html")]),
    ] {
        let answer = web.ask("GET", target, headers, "");
        let policy = answer.header("content-security-policy").to_owned();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{target}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("x-frame-options"), "DENY");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
    }
}

#[test]
fn p11_no_file_of_the_page_is_served_without_a_token_or_a_cookie() {
    let web = Web::start();
    let foreign = format!("evil.example:{}", web.port);
    // Guesses are made to wait: all at once.
    std::thread::scope(|scope| {
        for target in page::paths().chain(["/signin"]) {
            let (web, foreign) = (&web, &foreign);
            scope.spawn(move || {
                web.ask("GET", target, &[], "").refused(401, "HM0050");
                web.ask("GET", target, &[("host", foreign)], "").refused(403, "HM0051");
                web.ask("GET", target, &[("sec-fetch-site", "cross-site")], "").refused(403, "HM0051");
            });
        }
    });
}

#[test]
fn p11_who_is_not_signed_in_is_told_how_on_a_page_and_nothing_else() {
    let web = Web::start();
    let answer = web.ask("GET", "/", &[("accept", "text/html,*/*")], "");
    answer.refused(401, "HM0362");
    assert!(answer.0.contains("<code>homing web</code>"), "{}", answer.0);
    let spent = web.ask("GET", "/signin?code=00112233", &[("accept", "text/html")], "");
    spent.refused(401, "HM0360");
    assert!(!spent.0.contains("00112233"), "{}", spent.0);
    let elsewhere =
        web.ask("GET", &web.invitation(), &[("accept", "text/html"), ("sec-fetch-site", "cross-site")], "");
    elsewhere.refused(403, "HM0051");
    assert_eq!(elsewhere.header("set-cookie"), "");
}

#[test]
fn p11_a_browser_of_another_site_or_name_changes_nothing() {
    let web = Web::start();
    let (cookie, origin) = (web.sign_in(), web.origin());
    let json = ("content-type", "application/json");
    let body = r#"{"argv":["true"]}"#;
    let submit = |headers: &[(&str, &str)]| {
        let all = [&[("cookie", cookie.as_str())], headers].concat();
        web.ask("POST", "/v1/tasks", &all, body)
    };
    let port = web.port;
    submit(&[json]).refused(403, "HM0051");
    submit(&[json, ("origin", "null")]).refused(403, "HM0051");
    submit(&[json, ("origin", "https://evil.example")]).refused(403, "HM0051");
    submit(&[json, ("origin", &format!("http://127.0.0.1:{}", port ^ 1))]).refused(403, "HM0051");
    submit(&[json, ("origin", &format!("http://localhost:{port}"))]).refused(403, "HM0051");
    submit(&[json, ("origin", &origin), ("sec-fetch-site", "same-site")]).refused(403, "HM0051");
    submit(&[json, ("origin", &origin), ("host", &format!("evil.example:{port}"))]).refused(403, "HM0051");
    submit(&[("origin", &origin)]).refused(415, "HM0004");
    submit(&[("origin", &origin), ("content-type", "text/plain")]).refused(415, "HM0004");
    let stop = [("cookie", cookie.as_str()), ("origin", &origin)];
    web.ask("POST", "/v1/tasks/x/stop", &stop, "").refused(415, "HM0004");
    web.ask("DELETE", "/v1/tasks/x", &stop, "").refused(415, "HM0004");
    assert_eq!(web.served.get("/v1/tasks").json()["items"].as_array().unwrap().len(), 0);
    assert_eq!(submit(&[json, ("origin", &origin), ("sec-fetch-site", "same-origin")]).status(), 201);
}

#[test]
fn p11_a_get_does_not_do_what_a_post_does() {
    let web = Web::start();
    let (cookie, origin) = (web.sign_in(), web.origin());
    let id = web.served.running("sleep 60", &serde_json::Value::Null);
    let headers = [("cookie", cookie.as_str()), ("origin", &origin)];
    let document = web.served.get("/openapi.json").json();
    let mut asked = 0;
    for (path, verbs) in document["paths"].as_object().unwrap() {
        if verbs.get("get").is_none() {
            let target = path.replace("{ref}", &id).replace("{owner}", "user").replace("{id}", "d-1");
            web.ask("GET", &target, &headers, "").refused(405, "HM0026");
            asked += 1;
        }
    }
    assert!(asked > 15, "{asked}");
    assert_eq!(web.served.get(&format!("/v1/tasks/{id}")).json()["status"], "running");
    let json = [&headers[..], &[("content-type", "application/json")]].concat();
    web.ask("POST", "/", &json, "{}").refused(405, "HM0026");
    // What only the socket may, a browser may not.
    for target in ["/v1/page", "/v1/token/rotate", "/v1/listener"] {
        web.ask("POST", target, &json, "{}").refused(403, "HM0017");
    }
}

#[test]
fn p11_another_token_signs_every_browser_out_and_takes_back_every_address() {
    let web = Web::start();
    let (cookie, invitation) = (web.sign_in(), web.invitation());
    assert_eq!(web.ask("GET", "/v1/tasks", &[("cookie", &cookie)], "").status(), 200);
    assert_eq!(web.served.post("/v1/token/rotate", "").status, 200);
    web.ask("GET", "/v1/tasks", &[("cookie", &cookie)], "").refused(401, "HM0362");
    let origin = web.origin();
    let headers = [("cookie", cookie.as_str()), ("origin", &origin), ("content-type", "application/json")];
    web.ask("POST", "/v1/tasks", &headers, r#"{"argv":["true"]}"#).refused(401, "HM0362");
    assert_eq!(web.served.get("/v1/tasks").json()["items"].as_array().unwrap().len(), 0);
    web.ask("GET", &invitation, &[], "").refused(401, "HM0360");
    let again = web.sign_in();
    assert_eq!(web.ask("GET", "/v1/tasks", &[("cookie", &again)], "").status(), 200);
}

#[test]
fn p11_a_program_of_another_user_gets_in_by_neither_code_nor_cookie() {
    if !rustix_is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let web = Web::start();
    let (cookie, invitation) = (web.sign_in(), web.invitation());
    let as_nobody = |request: String| {
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}; cat >&3; cat <&3", web.port);
        let mut child = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
        Reply(String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned())
    };
    as_nobody(web.text("GET", "/v1/tasks", &[("cookie", &cookie)], "")).refused(403, "HM0361");
    as_nobody(web.text("GET", &invitation, &[], "")).refused(403, "HM0361");
    assert_eq!(web.ask("GET", &invitation, &[], "").status(), 303, "and the code was not spent");
}

#[test]
fn p11_a_cookie_in_another_process_opens_no_sandbox() {
    let web = Web::start();
    let cookie = web.sign_in();
    let confined = |request: String| {
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}; cat >&3; cat <&3", web.port);
        let mut child = Command::new("setpriv")
            .args(["--no-new-privs", "bash", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
        Reply(String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned())
    };
    confined(web.text("GET", "/v1/tasks", &[("cookie", &cookie)], "")).refused(401, "HM0362");
    let token = std::fs::read_to_string(web.served.home().join("token")).unwrap();
    let bearer = format!("Bearer {}", token.trim());
    confined(web.text("GET", "/v1/tasks", &[("authorization", &bearer)], "")).refused(403, "HM0016");
    assert_eq!(web.ask("GET", "/v1/tasks", &[("authorization", &bearer)], "").status(), 200);
}

fn rustix_is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t0"))
}

#[test]
fn a_whole_output_is_saved_as_a_file() {
    let served = Served::start();
    let id = served.run_to_end("head -c 1000000 /dev/zero; echo end");
    let answer = served.get(&format!("/v1/tasks/{id}/output/file"));
    assert_eq!((answer.status, answer.body.len()), (200, 1_000_004));
    assert!(answer.body.ends_with(b"end\n"));
    assert_eq!(answer.header("content-disposition"), format!("attachment; filename=\"{id}.log\""));
    assert_eq!(answer.header("homing-dropped"), "0");
}
