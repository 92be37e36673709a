//! Receivers that do what they should not. Each is a failed attempt with a line that says where it stuck, and costs neither time beyond the
//! deadline nor memory.

use std::time::Duration;

use homing_deliver::AttemptResult;
use homing_model::schedule::Verdict;
use homing_testkit::{Receiver, Script};

use crate::support::{attempt_at, client, why};

/// What comes of a receiver that hangs there, however long it takes on a loaded machine to come so far.
async fn hung(receiver: &Receiver, place: &str) -> AttemptResult {
    for (deadline, said) in [(400, "0.4"), (2_000, "2"), (10_000, "10")] {
        let client = client().with_deadline(Duration::from_millis(deadline));
        let attempt = attempt_at(&client, receiver).await;
        assert!(attempt.took_ms + 10 >= deadline, "{} ms", attempt.took_ms);
        let start = format!("no whole answer within {said} s: ");
        assert!(why(&attempt).starts_with(&start), "{}", attempt.detail);
        if attempt.detail.ends_with(place) {
            return attempt;
        }
    }
    panic!("it never came to {place}");
}

#[tokio::test]
async fn nobody_listens() {
    let attempt = attempt_at(&client(), &Receiver::refusing()).await;
    assert!(why(&attempt).contains("refused"), "{}", attempt.detail);
    assert_eq!(attempt.status, None);
}

#[tokio::test]
async fn a_hang_in_connect_ends_with_the_deadline() {
    let _ = hung(&Receiver::full(), "connecting").await;
}

#[tokio::test]
async fn a_hang_before_the_head_ends_with_the_deadline() {
    let receiver = Receiver::new([Script::Silent]);
    let _ = hung(&receiver, "waiting for the answer").await;
    receiver.wait_idle();
}

#[tokio::test]
async fn a_hang_in_the_head_ends_with_the_deadline() {
    let receiver = Receiver::new([Script::HangInHead]);
    let _ = hung(&receiver, "waiting for the answer").await;
    receiver.wait_idle();
}

#[tokio::test]
async fn a_hang_in_the_body_ends_with_the_deadline_and_delivers_nothing() {
    let receiver = Receiver::new([Script::HangInBody(200)]);
    let attempt = hung(&receiver, "reading the answer's body").await;
    assert_eq!(attempt.status, Some(200));
    receiver.wait_idle();
}

#[tokio::test]
async fn a_refusal_counts_even_if_its_body_hangs() {
    let client = client().with_deadline(Duration::from_secs(3));
    let attempt = attempt_at(&client, &Receiver::new([Script::HangInBody(410)])).await;
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
