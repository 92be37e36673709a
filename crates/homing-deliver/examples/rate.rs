//! How many webhooks a second go out to a receiver on this machine: `cargo run --release -p homing-deliver --example rate [COUNT [AT_ONCE]]`.

#![expect(clippy::print_stdout, reason = "a figure for a person")]

use std::error::Error;
use std::sync::Arc;

use homing_deliver::{Caller, Client, Endpoint, Message, Policy, Roots, Secret, deliver};
use homing_model::Timestamp;
use homing_model::schedule::Verdict;
use homing_testkit::{Receiver, Script};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// On one thread, as in the daemon.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().map_or(Ok(5_000), |text| text.parse())?;
    let at_once = arguments.next().map_or(Ok(8), |text| text.parse())?;
    let plain = Receiver::new([Script::status(200)]);
    let url = format!("http://127.0.0.1:{}/hook", plain.port());
    measure("http", Client::new(Policy::default()), &url, count, at_once).await?;
    let encrypted = Receiver::tls([Script::status(200)]);
    let roots = Roots::Only(vec![encrypted.certificate().to_vec().into()]);
    let url = format!("https://127.0.0.1:{}/hook", encrypted.port());
    measure("https", Client::new(Policy::default()).with_roots(roots), &url, count, at_once).await
}

async fn measure(
    what: &str,
    client: Client,
    url: &str,
    count: usize,
    at_once: usize,
) -> Result<(), Box<dyn Error>> {
    let to = Arc::new(Endpoint::parse(url, Caller::Local, &Policy::default())?);
    let secrets = Arc::new([Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?]);
    let body = format!("{{\"type\":\"task.completed\",\"data\":\"{}\"}}", "x".repeat(2_500));
    let message = Arc::new(Message::kept("ntc_1", body.into())?);
    let places = Arc::new(Semaphore::new(at_once));
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..count {
        let place = Arc::clone(&places).acquire_owned().await?;
        let (client, to, secrets, message) =
            (client.clone(), Arc::clone(&to), Arc::clone(&secrets), Arc::clone(&message));
        running.spawn(async move {
            let attempt = deliver(&client, &to, secrets.as_slice(), &message, Timestamp::default()).await;
            drop(place);
            attempt
        });
    }
    let mut times = Vec::with_capacity(count);
    while let Some(attempt) = running.join_next().await {
        let attempt = attempt?;
        if attempt.verdict != Verdict::Delivered {
            return Err(attempt.detail.into());
        }
        times.push(attempt.took_ms);
    }
    let seconds = begun.elapsed().as_secs_f64();
    times.sort_unstable();
    let rate = f64::from(u32::try_from(count)?) / seconds;
    println!(
        "{what}: {count} deliveries, {at_once} at once, {seconds:.2} s: {rate:.0} a second, slowest {:?} ms",
        times.last()
    );
    Ok(())
}
