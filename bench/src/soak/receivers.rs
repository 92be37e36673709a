//! Receivers of webhooks whose mood changes: well, slow, failing for a while, refusing, dying in the middle.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use homing_testkit::{Random, Receiver, Script};

use super::field::Field;
use super::story::Receipt;

/// How many there are.
const COUNT: usize = 5;

/// What a receiver does with a connection, by its mood.
fn script(mood: u64) -> Script {
    match mood {
        0 => Script::status(500),
        1 => Script::Late(Duration::from_millis(150)),
        2 => Script::Close,
        3 => Script::Slam,
        4 => Script::HangInHead,
        5 => Script::status(410),
        6 => Script::status(429).header("retry-after", "1"),
        _ => Script::status(200),
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Receivers(Vec<Moody>);

#[derive(Debug)]
struct Moody {
    endpoint: String,
    receiver: Receiver,
    mood: Arc<AtomicU64>,
}

impl Receivers {
    /// All of them well.
    pub(crate) fn new() -> Self {
        let all = (0..COUNT).map(|_| {
            let mood = Arc::new(AtomicU64::new(u64::MAX));
            let felt = Arc::clone(&mood);
            let receiver = Receiver::choosing(move |_| script(felt.load(Ordering::Relaxed)));
            Moody { endpoint: format!("http://127.0.0.1:{}/hook", receiver.port()), receiver, mood }
        });
        Self(all.collect())
    }

    /// The address of one; numbers beyond the last have none.
    pub(crate) fn endpoint(&self, number: u64) -> Option<&str> {
        Some(&self.0.get(usize::try_from(number).ok()?)?.endpoint)
    }

    /// Changes one mood after the other until it is over; the first receiver stays well, as most stay most of the time.
    pub(crate) fn sway(&self, field: &Field, seed: u64) {
        let mut random = Random::new(seed);
        while !field.is_over() {
            if let Some(one) = random.pick(self.0.get(1..).unwrap_or_default()) {
                one.mood.store(random.below(14), Ordering::Relaxed);
            }
            field.pause(&mut random, 1_500);
        }
        self.calm();
    }

    /// All are well from now on.
    pub(crate) fn calm(&self) {
        self.0.iter().for_each(|one| one.mood.store(u64::MAX, Ordering::Relaxed));
    }

    /// Everything that came.
    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        let of = |one: &Moody| {
            let requests = one.receiver.requests();
            let receipts = requests.iter().map(|request| {
                let mut hasher = DefaultHasher::new();
                request.body.hash(&mut hasher);
                let body = request.json();
                let text = |at: &str| {
                    body.pointer(at).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
                };
                Receipt {
                    endpoint: one.endpoint.clone(),
                    notice: request.header("webhook-id").to_owned(),
                    task: text("/data/task/id"),
                    about: text("/type"),
                    hash: hasher.finish(),
                }
            });
            receipts.collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }
}
