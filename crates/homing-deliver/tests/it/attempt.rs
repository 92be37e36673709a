//! Answers and what follows from them.

use homing_deliver::deliver;
use homing_model::schedule::{Next, Tries, Verdict, after};
use homing_testkit::{Receiver, Script};

use crate::support::{attempt_at, client, endpoint, hook, message, now, secret, why};

async fn answered(script: Script) -> homing_deliver::AttemptResult {
    let receiver = Receiver::new([script]);
    attempt_at(&client(), &receiver).await
}

#[tokio::test]
async fn any_2xx_delivers() {
    for status in [200, 201, 202, 204, 299] {
        let attempt = answered(Script::status(status)).await;
        assert_eq!((attempt.verdict, attempt.status), (Verdict::Delivered, Some(status)));
    }
}

#[tokio::test]
async fn gone_ends_and_other_errors_are_failures() {
    assert_eq!(answered(Script::status(410)).await.verdict, Verdict::Gone);
    for status in [400, 401, 404, 413, 429, 500, 503] {
        let attempt = answered(Script::status(status).body("no\u{1b}[2J, sorry\n")).await;
        assert_eq!(attempt.status, Some(status));
        assert!(why(&attempt).starts_with(&status.to_string()), "{}", attempt.detail);
        assert!(attempt.detail.ends_with(": no, sorry"), "{:?}", attempt.detail);
    }
}

#[tokio::test]
async fn p11_an_answer_that_repeats_the_address_gives_nothing_of_it_away() {
    let said = "no such place: /hook/canarycanarycanary?token=canary-query&x=1 (token canary-query)";
    let receiver = Receiver::new([Script::status(404).body(said)]);
    let to = format!("http://127.0.0.1:{}/hook/canarycanarycanary?token=canary-query&x=1", receiver.port());
    let attempt = crate::support::attempt(&client(), &endpoint(&to)).await;
    assert!(attempt.detail.contains("no such place: /hook/…?…"), "{}", attempt.detail);
    assert!(!attempt.detail.contains("canary") && !why(&attempt).contains("canary"), "{}", attempt.detail);
}

#[tokio::test]
async fn p11_redirects_are_failures_and_not_followed() {
    let inner = Receiver::new([Script::status(200)]);
    for status in [301, 302, 303, 307, 308] {
        let to = format!("http://127.0.0.1:{}/inner", inner.port());
        let attempt = answered(Script::status(status).header("location", &to)).await;
        assert!(why(&attempt).contains("redirects are not followed"), "{}", attempt.detail);
    }
    assert_eq!(inner.taken(), 0);
}

#[tokio::test]
async fn a_wish_to_be_left_alone_is_passed_on_however_it_is_said() {
    let begun = now();
    let wish = |attempt: &homing_deliver::AttemptResult| match &attempt.verdict {
        Verdict::Failed { retry_after, .. } => *retry_after,
        other => panic!("{other:?}"),
    };
    let seconds = wish(&answered(Script::status(429).header("retry-after", "120")).await).unwrap();
    assert!((120_000..180_000).contains(&seconds.millis_since(begun)), "{seconds}");
    let date =
        wish(&answered(Script::status(503).header("Retry-After", "Fri, 31 Dec 2100 23:59:59 GMT")).await);
    assert_eq!(date.unwrap().to_string(), "2100-12-31T23:59:59.000Z");
    let garbage = answered(Script::status(429).header("retry-after", "when it pleases")).await;
    assert_eq!(wish(&garbage), None);
    assert_eq!(wish(&answered(Script::status(429)).await), None);
    let first = Tries { attempts: 1, busy: 0 };
    assert_eq!(after(first, &garbage.verdict, begun, 0.5), Next::At(begun.plus_millis(5_000)));
}

#[tokio::test]
async fn p5_every_attempt_has_the_same_id_and_the_same_bytes_and_its_own_time() {
    let receiver = Receiver::new([Script::status(500), Script::status(500), Script::status(200)]);
    let message = message();
    for minute in 0..3 {
        let now = now().plus_millis(minute * 60_000);
        deliver(&client(), &hook(&receiver), &[secret()], &message, now).await;
    }
    let requests = receiver.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/hook"));
        assert_eq!(request.header("webhook-id"), "ntc_1");
        assert_eq!(request.header("content-type"), "application/json");
        assert_eq!(request.header("host"), format!("127.0.0.1:{}", receiver.port()));
        assert_eq!(request.body, *message.body());
    }
    let times: Vec<i64> =
        requests.iter().map(|request| request.header("webhook-timestamp").parse().unwrap()).collect();
    assert!(times[1] - times[0] >= 60 && times[2] - times[1] >= 60, "{times:?}");
    assert_ne!(requests[0].header("webhook-signature"), requests[1].header("webhook-signature"));
}

#[tokio::test]
async fn path_and_query_arrive_as_they_were_written() {
    let receiver = Receiver::new([Script::status(200)]);
    let base = format!("http://localhost:{}", receiver.port());
    for target in ["", "?a=1&b=%20", "//double/%2e%2e/x", "/a?b?c"] {
        crate::support::attempt(&client(), &endpoint(&format!("{base}{target}"))).await;
    }
    let targets: Vec<_> = receiver.requests().iter().map(|request| request.target.clone()).collect();
    assert_eq!(targets, ["/", "/?a=1&b=%20", "//double/%2e%2e/x", "/a?b?c"]);
}

#[tokio::test]
async fn p11_a_proxy_in_the_environment_is_not_asked() {
    let proxy = Receiver::new([Script::status(200)]);
    let receiver = Receiver::new([Script::status(200)]);
    let program = std::env::current_exe().unwrap();
    // The environment of this process is shared by other tests: the same attempt is made by a process of its own.
    let mut child = std::process::Command::new(program);
    child.args(["--exact", "attempt::in_another_process", "--ignored"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        child.env(name, format!("http://127.0.0.1:{}", proxy.port()));
    }
    let output = child.env("RECEIVER", receiver.port().to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((receiver.taken(), proxy.taken()), (1, 0));
}

#[tokio::test]
#[ignore = "called by p11_a_proxy_in_the_environment_is_not_asked"]
async fn in_another_process() {
    let Some((_, port)) = std::env::vars().find(|(name, _)| name == "RECEIVER") else { return };
    let attempt = crate::support::attempt(&client(), &endpoint(&format!("http://127.0.0.1:{port}/"))).await;
    assert_eq!(attempt.status, Some(200));
}
