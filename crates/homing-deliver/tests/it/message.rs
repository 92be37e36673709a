//! What is sent and how it is signed.

use bytes::Bytes;
use homing_deliver::{Message, Secret, deliver};
use homing_testkit::{Receiver, Script};
use standardwebhooks::Webhook;

use crate::support::{OTHER, SECRET, client, hook, message, now};

async fn sent(secrets: &[&str]) -> homing_testkit::Request {
    let receiver = Receiver::new([Script::status(200)]);
    let secrets: Vec<_> = secrets.iter().map(|text| Secret::parse(text).unwrap()).collect();
    deliver(&client(), &hook(&receiver), &secrets, &message(), now()).await;
    receiver.requests().remove(0)
}

#[tokio::test]
async fn the_notice_is_the_data_of_the_body() {
    let body = sent(&[SECRET]).await.json();
    assert_eq!(body["type"], "task.completed");
    assert_eq!(body["timestamp"], "2026-11-15T12:00:00.123Z");
    assert_eq!(body["data"]["id"], "ntc_1");
    assert_eq!(body.as_object().unwrap().len(), 3);
}

#[tokio::test]
async fn each_secret_signs_while_one_takes_over_from_another() {
    let request = sent(&[SECRET, OTHER]).await;
    let signatures: Vec<_> = request.header("webhook-signature").split(' ').collect();
    assert_eq!(signatures.len(), 2);
    let seconds = request.header("webhook-timestamp").parse().unwrap();
    for (secret, signature) in [SECRET, OTHER].into_iter().zip(signatures) {
        let expected = Webhook::new(secret).unwrap().sign("ntc_1", seconds, &request.body).unwrap();
        assert_eq!(signature, expected);
    }
}

#[tokio::test]
async fn without_a_secret_nothing_is_signed() {
    let request = sent(&[]).await;
    assert_eq!(request.header("webhook-signature"), "");
    assert_eq!(request.header("webhook-id"), "ntc_1");
}

#[test]
fn a_kept_body_is_sent_as_it_was() {
    let first = message();
    let again = Message::kept("ntc_1", first.body().clone()).unwrap();
    assert_eq!(again, first);
    assert_eq!(message(), first, "the same notice makes the same bytes");
}

#[test]
fn what_cannot_be_signed_clearly_is_refused() {
    for id in ["", "a.b", "a b", "a\nb", "ä"] {
        assert!(Message::kept(id, Bytes::from_static(b"{}")).is_err(), "{id:?}");
    }
    assert!(Message::kept("a", Bytes::from_static(b"\xff")).is_err());
}
