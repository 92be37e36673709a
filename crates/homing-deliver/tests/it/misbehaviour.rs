//! Receivers that do what they should not. Each is a failed attempt with a line that says where it stuck, and costs neither time beyond the
//! deadline nor memory.

use homing_deliver::Attempt;
use homing_model::schedule::Verdict;
use homing_testkit::{Receiver, Script};

use crate::support::{attempt_at, client, hasty, why};

/// What comes of a receiver that has until the short deadline.
async fn hung(receiver: &Receiver) -> Attempt {
    let attempt = attempt_at(&hasty(), receiver).await;
    assert!((390..5_000).contains(&attempt.took_ms), "{} ms", attempt.took_ms);
    assert!(why(&attempt).starts_with("no whole answer within 0.4 s: "), "{}", attempt.detail);
    attempt
}

#[tokio::test]
async fn nobody_listens() {
    let attempt = attempt_at(&client(), &Receiver::refusing()).await;
    assert!(why(&attempt).contains("refused"), "{}", attempt.detail);
    assert_eq!(attempt.status, None);
}

#[tokio::test]
async fn a_hang_in_connect_ends_with_the_deadline() {
    let attempt = hung(&Receiver::full()).await;
    assert!(attempt.detail.ends_with("connecting"), "{}", attempt.detail);
}

#[tokio::test]
async fn a_hang_before_the_head_ends_with_the_deadline() {
    let receiver = Receiver::new([Script::Silent]);
    let attempt = hung(&receiver).await;
    assert!(attempt.detail.ends_with("waiting for the answer"), "{}", attempt.detail);
    receiver.wait_idle();
}

#[tokio::test]
async fn a_hang_in_the_head_ends_with_the_deadline() {
    let receiver = Receiver::new([Script::HangInHead]);
    let attempt = hung(&receiver).await;
    assert!(attempt.detail.ends_with("waiting for the answer"), "{}", attempt.detail);
    receiver.wait_idle();
}

#[tokio::test]
async fn a_hang_in_the_body_ends_with_the_deadline_and_delivers_nothing() {
    let receiver = Receiver::new([Script::HangInBody(200)]);
    let attempt = hung(&receiver).await;
    assert!(attempt.detail.ends_with("reading the answer's body"), "{}", attempt.detail);
    assert_eq!(attempt.status, Some(200));
    receiver.wait_idle();
}

#[tokio::test]
async fn a_refusal_counts_even_if_its_body_hangs() {
    let attempt = attempt_at(&hasty(), &Receiver::new([Script::HangInBody(410)])).await;
    assert_eq!((attempt.verdict, attempt.status), (Verdict::Gone, Some(410)));
    assert!(attempt.detail.ends_with("half of it"), "{}", attempt.detail);
}

#[tokio::test]
async fn a_body_that_breaks_off_does_not_take_the_status_back() {
    for (status, delivered) in [(200, true), (500, false)] {
        let attempt = attempt_at(&client(), &Receiver::new([Script::BreakInBody(status)])).await;
        assert_eq!(attempt.verdict == Verdict::Delivered, delivered, "{}", attempt.detail);
        assert!(attempt.detail.ends_with("half of it"), "{}", attempt.detail);
    }
}

#[tokio::test]
async fn of_ten_gigabytes_only_the_beginning_is_read() {
    let receiver = Receiver::new([Script::Endless]);
    let attempt = attempt_at(&client(), &receiver).await;
    assert_eq!(attempt.verdict, Verdict::Delivered);
    assert!(attempt.detail.chars().count() <= 320 && attempt.detail.ends_with("x…"), "{}", attempt.detail);
    receiver.wait_idle();
    // What the buffers of both sockets hold was sent; nothing beyond.
    assert!(receiver.sent() < 64 << 20, "{} bytes", receiver.sent());
}

#[tokio::test]
async fn a_head_without_end_is_given_up() {
    let receiver = Receiver::new([Script::EndlessHead]);
    let attempt = attempt_at(&client(), &receiver).await;
    assert!(why(&attempt).starts_with("no answer in HTTP"), "{}", attempt.detail);
    receiver.wait_idle();
    assert!(receiver.sent() < 64 << 20, "{} bytes", receiver.sent());
}

#[tokio::test]
async fn too_many_headers_are_given_up() {
    let many =
        (0..200).fold(Script::status(200), |script, number| script.header(&format!("x-{number}"), "1"));
    let attempt = attempt_at(&client(), &Receiver::new([many])).await;
    assert!(why(&attempt).starts_with("no answer in HTTP"), "{}", attempt.detail);
}

#[tokio::test]
async fn what_is_not_http_says_so() {
    for script in [Script::Garbage, Script::Close] {
        let attempt = attempt_at(&client(), &Receiver::new([script])).await;
        assert!(why(&attempt).starts_with("no answer in HTTP: "), "{}", attempt.detail);
    }
}

#[tokio::test]
async fn an_answer_in_nasty_bytes_is_one_safe_line() {
    let nasty = [b"\x1b]0;title\x07a\r\nb\xff\xe2\x82".as_slice(), &[b'z'; 1_000]].concat();
    let attempt = attempt_at(&client(), &Receiver::new([Script::status(500).body(nasty)])).await;
    assert!(!attempt.detail.chars().any(char::is_control), "{:?}", attempt.detail);
    assert!(attempt.detail.chars().count() <= 340, "{:?}", attempt.detail);
}
