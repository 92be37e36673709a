//! What all actors of a soak share: the home, the receivers, and where they note what they do.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use homing_testkit::{Home, Random, drift};
use serde_json::Value;

use super::receivers::Receivers;
use super::sessions::Sessions;
use super::stand_ins::StandIns;
use super::story::Story;

/// The field.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) home: Arc<Home>,
    /// Where tasks leave their own marks, and hooks what they were told.
    pub(crate) truth: PathBuf,
    pub(crate) told: PathBuf,
    pub(crate) receivers: Receivers,
    pub(crate) stand_ins: StandIns,
    pub(crate) sessions: Sessions,
    /// The next task's number.
    pub(crate) next: AtomicU64,
    /// Nothing new is begun any more.
    pub(crate) over: Arc<AtomicBool>,
    /// The last event that everybody must see, once it is known.
    pub(crate) last_event: AtomicU64,
    story: Mutex<Story>,
}

impl Field {
    pub(crate) fn new(home: Arc<Home>, over: Arc<AtomicBool>, receivers: Receivers) -> anyhow::Result<Self> {
        let (truth, told) = (home.scratch().join("truth"), home.scratch().join("told"));
        std::fs::create_dir(&truth)?;
        std::fs::create_dir(&told)?;
        let stand_ins = StandIns::new(&home, &truth)?;
        Ok(Self {
            home,
            truth,
            told,
            receivers,
            stand_ins,
            sessions: Sessions::new(),
            next: AtomicU64::new(0),
            over,
            last_event: AtomicU64::new(0),
            story: Mutex::default(),
        })
    }

    /// What is known so far.
    pub(crate) fn story(&self) -> MutexGuard<'_, Story> {
        self.story.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Asks the daemon; nothing if it is not there, dies meanwhile, or refuses.
    pub(crate) fn ask(&self, method: &str, target: &str, body: Option<&Value>) -> Option<Value> {
        let reply = self.ask_with(method, target, &[], body)?;
        serde_json::from_slice(&reply).ok()
    }

    /// The same with headers, and the bytes of the answer.
    pub(crate) fn ask_with(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Option<Vec<u8>> {
        let mut all = vec![("content-type", "application/json")];
        all.extend(headers);
        let body = body.map(ToString::to_string).unwrap_or_default();
        let answer = self.home.try_http(method, target, &all, body.as_bytes()).ok()?;
        let reply = answer.try_whole().ok()?;
        (reply.status < 300).then_some(reply.body)
    }

    /// Everything of a list, page by page.
    pub(crate) fn all(&self, target: &str) -> Option<Vec<Value>> {
        self.all_with(target, "")
    }

    /// The same of what this asks for.
    pub(crate) fn all_with(&self, target: &str, query: &str) -> Option<Vec<Value>> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.ask("GET", &format!("{target}?limit=1000{query}{cursor}"), None)?;
            items.extend(page["items"].as_array()?.iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Some(items),
            }
        }
    }

    /// One of the tasks that were acknowledged lately.
    pub(crate) fn some_task(&self, random: &mut Random) -> Option<String> {
        let story = self.story();
        let lately = &story.submits[story.submits.len().saturating_sub(30)..];
        random.pick(lately)?.answers.first().cloned()
    }

    /// Lets some time pass, up to so many milliseconds.
    pub(crate) fn pause(&self, random: &mut Random, most_ms: u64) {
        drift(Duration::from_millis(random.below(most_ms)));
    }
}
