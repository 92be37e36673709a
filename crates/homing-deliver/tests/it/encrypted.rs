//! TLS: whom we believe, and what a failure says.

use homing_deliver::{AttemptResult, Client, Endpoint, Roots};
use homing_model::schedule::Verdict;
use homing_testkit::{Receiver, Script};

use crate::support::{attempt, client, endpoint, why};

fn trusting(client: Client, receiver: &Receiver) -> Client {
    client.with_roots(Roots::Only(vec![receiver.certificate().to_vec().into()]))
}

fn secure(host: &str, receiver: &Receiver) -> Endpoint {
    endpoint(&format!("https://{host}:{}/hook", receiver.port()))
}

async fn delivered(client: &Client, to: &Endpoint) -> AttemptResult {
    let attempt = attempt(client, to).await;
    assert_eq!(attempt.verdict, Verdict::Delivered, "{}", attempt.detail);
    attempt
}

#[tokio::test]
async fn a_certificate_that_is_trusted_delivers_by_name_and_by_address() {
    let receiver = Receiver::tls([Script::status(200)]);
    let client = trusting(client(), &receiver);
    delivered(&client, &secure("localhost", &receiver)).await;
    delivered(&client, &secure("127.0.0.1", &receiver)).await;
    assert_eq!(receiver.requests().len(), 2);
    assert_eq!(receiver.requests()[0].header("host"), format!("localhost:{}", receiver.port()));
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_delivers_nothing() {
    let receiver = Receiver::tls([Script::status(200)]);
    let stranger = Receiver::tls([Script::status(200)]);
    let attempt = attempt(&trusting(client(), &stranger), &secure("localhost", &receiver)).await;
    assert!(why(&attempt).starts_with("TLS failed: "), "{}", attempt.detail);
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn the_systems_certificates_do_not_include_ours() {
    let receiver = Receiver::tls([Script::status(200)]);
    let attempt = attempt(&client(), &secure("localhost", &receiver)).await;
    let why = why(&attempt);
    assert!(why.starts_with("TLS failed: ") || why.contains("ca-certificates"), "{why}");
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_certificate_for_another_name_delivers_nothing() {
    let receiver = Receiver::tls([Script::status(200)]);
    let attempt = attempt(&trusting(client(), &receiver), &secure("other.localhost", &receiver)).await;
    assert!(why(&attempt).starts_with("TLS failed: "), "{}", attempt.detail);
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_receiver_without_tls_is_a_failure() {
    let receiver = Receiver::new([Script::Garbage]);
    let plain = trusting(client(), &Receiver::tls([Script::status(200)]));
    let attempt =
        attempt(&plain.with_deadline(std::time::Duration::from_secs(2)), &secure("localhost", &receiver))
            .await;
    why(&attempt);
}

#[tokio::test]
async fn a_hang_in_the_handshake_ends_with_the_deadline() {
    let receiver = Receiver::tls([Script::Silent]);
    let hasty = client().with_deadline(std::time::Duration::from_secs(2));
    let attempt = attempt(&trusting(hasty, &receiver), &secure("localhost", &receiver)).await;
    assert!(why(&attempt).ends_with("shaking hands for TLS"), "{}", attempt.detail);
    receiver.wait_idle();
}

#[tokio::test]
async fn no_certificates_at_all_say_what_to_install() {
    let receiver = Receiver::tls([Script::status(200)]);
    let attempt =
        attempt(&client().with_roots(Roots::Only(Vec::new())), &secure("localhost", &receiver)).await;
    assert!(why(&attempt).contains("ca-certificates"), "{}", attempt.detail);
}

#[tokio::test]
async fn of_an_endless_encrypted_body_only_the_beginning_is_read() {
    let receiver = Receiver::tls([Script::Endless]);
    delivered(&trusting(client(), &receiver), &secure("localhost", &receiver)).await;
    receiver.wait_idle();
    assert!(receiver.sent() < 64 << 20, "{} bytes", receiver.sent());
}
