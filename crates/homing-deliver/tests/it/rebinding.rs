//! Names that change their meaning between check and use.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use homing_deliver::{Caller, Client, Endpoint, Error, Lookup, Policy, Resolver};
use homing_testkit::{Receiver, Script};

use crate::support::{attempt, client, why};

/// Answers with the next line of its script; the last one goes on.
struct Scripted {
    answers: Vec<Vec<IpAddr>>,
    asked: Arc<AtomicUsize>,
}

impl Resolver for Scripted {
    fn resolve<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.get(turn).or_else(|| self.answers.last()).cloned();
        Box::pin(std::future::ready(Ok(answer.unwrap_or_default())))
    }
}

/// A client whose names mean this, and how often it asked.
fn scripted(client: Client, answers: &[&[&str]]) -> (Client, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let answers = answers.iter().map(|all| all.iter().map(|text| text.parse().unwrap()).collect()).collect();
    let resolver = Scripted { answers, asked: Arc::clone(&asked) };
    (client.with_resolver(resolver), asked)
}

fn named(port: u16) -> Endpoint {
    let allow = vec![format!("rebind.test:{port}").parse().unwrap()];
    Endpoint::parse(&format!("http://rebind.test:{port}/hook"), Caller::Local, &Policy { allow, own: None })
        .unwrap()
}

/// Names that any policy takes.
fn secure(port: u16) -> Endpoint {
    Endpoint::parse(&format!("https://rebind.test:{port}/hook"), Caller::Local, &Policy::default()).unwrap()
}

#[tokio::test]
async fn p11_a_name_is_looked_up_once_and_only_filtered_addresses_are_used() {
    let trap = Receiver::new([Script::status(200)]);
    // 192.0.2.1 (documentation) stands for a public address that is not there; a range opens it.
    let allow = vec!["192.0.2.0/24".parse().unwrap()];
    let policy = Policy { allow, own: None };
    let base = client().with_policy(policy).with_deadline(std::time::Duration::from_millis(300));
    let (client, asked) = scripted(base, &[&["192.0.2.1"], &["127.0.0.1"]]);
    let failed = attempt(&client, &secure(trap.port())).await;
    let why = why(&failed);
    assert!(why.contains("connecting"), "it was the first answer that was used: {why}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(trap.taken(), 0, "the second answer was never asked for");
}

#[tokio::test]
async fn p11_a_name_that_means_this_machine_is_refused_where_the_connection_is_made() {
    let trap = Receiver::new([Script::status(200)]);
    for address in [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "64:ff9b::127.0.0.1",
        "0.0.0.0",
    ] {
        let (client, _) = scripted(client(), &[&[address]]);
        let failed = attempt(&client, &secure(trap.port())).await;
        let why = why(&failed);
        assert!(why.contains("rebind.test is not allowed"), "{address}: {why}");
    }
    assert_eq!(trap.taken(), 0);
}

#[tokio::test]
async fn p11_closed_addresses_among_open_ones_are_left_out() {
    let (client, _) = scripted(client(), &[&["10.0.0.1", "1.1.1.1", "::1", "2606:4700::1111"]]);
    let addresses = client.addresses(&secure(8443)).await.unwrap();
    let shown: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["1.1.1.1:8443", "[2606:4700::1111]:8443"]);
}

#[tokio::test]
async fn a_receiver_that_the_configuration_names_is_reached_by_its_name() {
    let receiver = Receiver::new([Script::status(200)]);
    let to = named(receiver.port());
    let allow = vec![format!("rebind.test:{}", receiver.port()).parse().unwrap()];
    let (client, _) = scripted(client().with_policy(Policy { allow, own: None }), &[&["127.0.0.1"]]);
    assert_eq!(attempt(&client, &to).await.status, Some(200));
    assert_eq!(receiver.requests()[0].header("host"), format!("rebind.test:{}", receiver.port()));
}

#[tokio::test]
async fn the_next_address_is_tried_where_the_first_refuses() {
    let receiver = Receiver::new([Script::status(200)]);
    let policy =
        || Policy { allow: vec![format!("rebind.test:{}", receiver.port()).parse().unwrap()], own: None };
    let (client, _) = scripted(client().with_policy(policy()), &[&["127.0.0.2", "::1", "127.0.0.1"]]);
    assert_eq!(attempt(&client, &named(receiver.port())).await.status, Some(200));
}

#[tokio::test]
async fn a_name_without_an_address_says_so() {
    let (client, _) = scripted(client(), &[&[]]);
    let error = client.addresses(&secure(443)).await.unwrap_err();
    assert!(matches!(error, Error::NoAddress(_)), "{error}");
    let nowhere = Endpoint::parse("https://nowhere.invalid/", Caller::Local, &Policy::default()).unwrap();
    let failed = attempt(&crate::support::client(), &nowhere).await;
    assert!(why(&failed).contains("looking"), "{}", failed.detail);
}

#[tokio::test]
async fn an_address_that_swallows_everything_leaves_time_for_the_next() {
    let receiver = Receiver::new([Script::status(200)]);
    let policy =
        Policy { allow: vec![format!("rebind.test:{}", receiver.port()).parse().unwrap()], own: None };
    let base = client().with_policy(policy).with_deadline(std::time::Duration::from_secs(8));
    // Packets to addresses for documentation go nowhere, or are refused at once: both are fine here.
    let (client, _) = scripted(base, &[&["192.0.2.1", "127.0.0.1"]]);
    let attempt = attempt(&client, &named(receiver.port())).await;
    assert_eq!(attempt.status, Some(200), "{}", attempt.detail);
}
